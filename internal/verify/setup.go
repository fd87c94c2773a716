package verify

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/queue"
)

// SetupWithManager wakes the Reconciler when a Cluster changes, or its throw-away one.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("verification").
		For(&v1alpha1.Cluster{}).
		Owns(&v1alpha1.Cluster{}).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}
