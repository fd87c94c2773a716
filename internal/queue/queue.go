// Package queue makes the queues of controllers that have little to do.
package queue

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Unmeasured are options of a controller whose queue has no metrics (workqueue_*). A queue that
// has them looks twice a second for how long its work has taken, whether there is any or not, and
// wakes the process for it.
func Unmeasured() controller.Options {
	return controller.Options{NewQueue: func(_ string, limiter workqueue.TypedRateLimiter[reconcile.Request],
	) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return priorityqueue.New("", // one without a name is not measured
			func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })
	}}
}
