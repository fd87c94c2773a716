package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// ownVolume has a claim of the Cluster deleted with it, or not, as the spec says now, and tells
// whether that is so. Somebody else's claim is left alone.
func (p *prerequisites) ownVolume(ctx context.Context, c *v1alpha1.Cluster, name string) (follows bool, err error) {
	var claim corev1.PersistentVolumeClaim
	err = p.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, &claim)
	if err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	before := claim.DeepCopy()
	if claim.DeletionTimestamp != nil || !resources.Belongs(c, &claim) || !resources.Owned(c, &claim) {
		return true, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = p.client.Patch(ctx, &claim, patch, client.FieldOwner(resources.FieldManager))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil // the next pass sees what it has become
	}
	return false, fmt.Errorf("have the PersistentVolumeClaim %s follow spec.storage.whenDeleted: %w", name, err)
}

// keepVolume marks the claim that an instance had when its removal was decided as one that
// no instance uses. It tells whether another one is there: it is left alone.
func (a *actor) keepVolume(ctx context.Context, c *v1alpha1.Cluster, instance, uid string) (another bool, err error) {
	return a.annotateClaim(ctx, c, instance, uid, v1alpha1.AnnotationKept, time.Now().UTC().Format(time.RFC3339))
}

// adoptVolume makes the Cluster's a claim that outlived another, which it was when that
// was decided.
func (a *actor) adoptVolume(ctx context.Context, c *v1alpha1.Cluster, e core.AdoptVolume) error {
	var claim corev1.PersistentVolumeClaim
	err := a.live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: e.Instance}, &claim)
	if err != nil || string(claim.UID) != e.UID || resources.FormerOwner(c, &claim) != e.Of {
		return client.IgnoreNotFound(err)
	}
	_, err = a.annotateClaim(ctx, c, e.Instance, e.UID, v1alpha1.AnnotationClusterUID, string(c.UID))
	return err
}

// annotateClaim annotates one claim, and tells whether another one has its name.
func (a *actor) annotateClaim(ctx context.Context, c *v1alpha1.Cluster, instance, uid, annotation,
	value string) (another bool, err error) {
	key := types.NamespacedName{Namespace: c.Namespace, Name: instance}
	return patchMeta(ctx, a.client, &corev1.PersistentVolumeClaim{}, key, types.UID(uid),
		map[string]any{"annotations": map[string]any{annotation: value}})
}
