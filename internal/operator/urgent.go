package operator

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// urgent is the priority of clusters that nobody can write to. All others have that of
// controller-runtime, which is lower.
const urgent = 10

// urgentFirst is a queue in which clusters that nobody can write to come before all others.
// When a node is lost that many clusters have an instance on, most of them have lost a replica,
// and that can wait. Among equals the first comes first.
type urgentFirst struct {
	priorityqueue.PriorityQueue[reconcile.Request]
	isUrgent func(cluster types.NamespacedName) bool
}

// newQueue makes the queue of the controller of Clusters.
func (r *Reconciler) newQueue(name string,
	limiter workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return &urgentFirst{isUrgent: r.cannotBeWritten, PriorityQueue: priorityqueue.New(name,
		func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter })}
}

// Add goes through AddWithOpts, so that the cluster is queued by its urgency.
func (q *urgentFirst) Add(cluster reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, cluster) }

// AddAfter goes through AddWithOpts, so that the cluster is queued by its urgency now, and not by
// that after the while.
func (q *urgentFirst) AddAfter(cluster reconcile.Request, after time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: after}, cluster)
}

// AddRateLimited goes through AddWithOpts, as Add does.
func (q *urgentFirst) AddRateLimited(cluster reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, cluster)
}

// AddWithOpts adds clusters by how urgent they are now: they come with the priority that they
// had when they were looked at.
func (q *urgentFirst) AddWithOpts(o priorityqueue.AddOpts, clusters ...reconcile.Request) {
	for _, cluster := range clusters {
		own := o
		switch had := o.Priority; {
		case q.isUrgent(cluster.NamespacedName):
			own.Priority = new(urgent)
		case had != nil && *had == urgent:
			own.Priority = nil
		}
		q.PriorityQueue.AddWithOpts(own, cluster)
	}
}

// cannotBeWritten reports whether a cluster has a primary that is not heard, or that does not
// take writes.
func (r *Reconciler) cannotBeWritten(cluster types.NamespacedName) bool {
	primary := r.clusters.primary(cluster)
	return primary != "" && !r.streams.isPrimary(cluster.Namespace, primary)
}
