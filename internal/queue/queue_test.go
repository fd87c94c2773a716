package queue

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestUnmeasuredHasNoMetricsAndHandsOutWhatWasAdded(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	measured := priorityqueue.New[reconcile.Request]("measured")
	t.Cleanup(measured.ShutDown)
	q := Unmeasured().NewQueue("unmeasured", limiter)
	t.Cleanup(q.ShutDown)
	added := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "db"}}
	q.AddRateLimited(added)
	if got, over := q.Get(); got != added || over {
		t.Errorf("the queue hands out %v, want %v", got, added)
	}
	if !hasMetrics(t, "measured") || hasMetrics(t, "unmeasured") {
		t.Error("a queue has metrics that should have none, or none that should have them")
	}
}

// hasMetrics reports whether anything is exported of the queue of that name.
func hasMetrics(t *testing.T, queue string) bool {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == queue {
					return true
				}
			}
		}
	}
	return false
}
