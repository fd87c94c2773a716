package operator

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// endsWithNamespace deletes a Cluster whose namespace is being deleted. Kubernetes
// deletes a namespace's Pods first and all else when they are gone: until then the
// Cluster would be wanted, and its primary would wait for a successor that nobody can
// make any more. An instance that sees its Cluster deleted does not wait. Nobody asks
// for the namespace while no Pod is being stopped; an unanswered question is no yes.
func (r *Reconciler) endsWithNamespace(ctx context.Context, c *v1alpha1.Cluster) bool {
	var pods corev1.PodList
	if err := r.Client.List(ctx, &pods, those(c)); err != nil {
		return false
	}
	stopping := false
	for i := range pods.Items {
		stopping = stopping || pods.Items[i].DeletionTimestamp != nil
	}
	if !stopping {
		return false
	}
	var ns corev1.Namespace
	if err := r.Live.Get(ctx, types.NamespacedName{Name: c.Namespace}, &ns); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot see whether the namespace is being deleted", "why", err.Error())
		return false
	}
	if ns.DeletionTimestamp == nil {
		return false
	}
	if err := r.Client.Delete(ctx, c, client.Preconditions{UID: &c.UID}); client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Info("cannot delete the Cluster with its namespace", "why", err.Error())
		return false
	}
	return true
}
