package backups

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/queue"
)

// SetupWithManager wakes the Reconciler when a Backup, its Job or its Cluster changes.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).Named("backup").
		For(&v1alpha1.Backup{}).
		Owns(&batchv1.Job{}).
		Watches(&v1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.waitingFor)).
		WithOptions(queue.Unmeasured()).
		Complete(r)
}

// waitingFor are the Backups of a Cluster that have not begun.
func (r *Reconciler) waitingFor(ctx context.Context, cluster client.Object) []reconcile.Request {
	var all v1alpha1.BackupList
	if err := r.Client.List(ctx, &all, client.InNamespace(cluster.GetNamespace())); err != nil {
		return nil // they look again by themselves
	}
	var out []reconcile.Request
	for i := range all.Items {
		b := &all.Items[i]
		if b.Spec.Cluster.Name == cluster.GetName() && !isOver(b) && b.Status.JobName == "" {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return out
}
