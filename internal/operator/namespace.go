package operator

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// endsWithNamespace carries out what is to be done about a Cluster because of its namespace, and reports whether
// the Cluster ends by that. It comes before all else: an operator that has not heard the instances yet, or that
// cannot read the status, would let the primary wait meanwhile.
func (r *Reconciler) endsWithNamespace(ctx context.Context, c *v1alpha1.Cluster) bool {
	effects := core.EndWithNamespace(string(c.UID), r.observer.namespaceEnds(ctx, c))
	if len(effects) == 0 {
		return false
	}
	done := r.actor.act(ctx, c, nil, effects)
	if err := errors.Join(done.err(), errors.Join(done.conflicts...)); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot delete the Cluster with its namespace", "error", err.Error())
		return false
	}
	return true
}

// namespaceEnds is whether the Cluster's namespace is being deleted. While no Pod of the Cluster is being stopped
// nobody asks, and it is not known.
func (ob *observer) namespaceEnds(ctx context.Context, c *v1alpha1.Cluster) (unknown core.Fact[bool]) {
	var pods corev1.PodList
	if err := ob.client.List(ctx, &pods, those(c)); err != nil ||
		!slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil }) {
		return unknown
	}
	var ns corev1.Namespace
	asked := time.Now()
	if err := ob.live.Get(ctx, types.NamespacedName{Name: c.Namespace}, &ns); err != nil {
		ctrl.LoggerFrom(ctx).Info("cannot read whether the namespace is being deleted", "error", err.Error())
		return unknown
	}
	return core.Known(ns.DeletionTimestamp != nil, asked, time.Now())
}
