package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// ownVolumes has the claims of instances, and those that were kept, follow the spec. It tells whether all do.
// Of a generation that was not observed yet the API server is asked which there are: the caches do not have a
// claim that somebody took the label off.
func (r *Reconciler) ownVolumes(ctx context.Context, c *v1alpha1.Cluster, kept []string) (follow bool, failed []error) {
	if c.Status.ObservedGeneration != c.Generation && r.state(c).followed != c.Generation {
		return r.ownAllVolumes(ctx, c)
	}
	follow = true
	for _, name := range slices.Concat(c.Status.InstanceNames, kept) {
		follows, err := r.prerequisites.ownVolume(ctx, c, name)
		follow = follow && follows
		if err != nil {
			failed = append(failed, err)
		}
	}
	return follow, failed
}

// ownAllVolumes has all claims follow the spec that the Cluster controls, whatever their labels, and those of
// instances, also of removed ones, that it does not control.
func (r *Reconciler) ownAllVolumes(ctx context.Context, c *v1alpha1.Cluster) (follow bool, failed []error) {
	var all corev1.PersistentVolumeClaimList
	if err := r.Live.List(ctx, &all, client.InNamespace(c.Namespace)); err != nil {
		return false, []error{fmt.Errorf("see which PersistentVolumeClaims follow spec.storage.whenDeleted: %w", err)}
	}
	var its observation.Objects
	its.SetVolumes(c, all.Items)
	follow = true
	for i := range all.Items {
		claim := &all.Items[i]
		name := claim.Name
		if its.Volumes[name] == nil && its.KeptVolumes[name] == nil && !metav1.IsControlledBy(claim, c) {
			continue
		}
		follows, err := r.prerequisites.own(ctx, c, claim)
		follow = follow && follows
		if err != nil {
			failed = append(failed, err)
		}
	}
	if follow {
		r.state(c).followed = c.Generation
	}
	return follow, failed
}

// freeVolumes has the claims of a Cluster that is deleted, and waits for something, stay if its spec says so by
// now. The other way round nothing is done: who deletes with --cascade=orphan has Kubernetes take the owner off
// what shall stay, and no claim may get it back.
func (r *Reconciler) freeVolumes(ctx context.Context, c *v1alpha1.Cluster) (ctrl.Result, error) {
	if c.DeletionTimestamp == nil || resources.VolumesGo(c) || r.state(c).followed == c.Generation {
		return ctrl.Result{}, nil
	}
	follow, failed := r.ownAllVolumes(ctx, c)
	r.noteFailure(ctx, c, failures{changes: failed})
	if err := errors.Join(failed...); err != nil || follow {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: time.Second}, nil
}

// ownVolume is own of the claim of that name, as the caches have it. What they do not have was looked for
// when the spec changed.
func (p *prerequisites) ownVolume(ctx context.Context, c *v1alpha1.Cluster, name string) (follows bool, err error) {
	claim, err := find(ctx, p.client, &corev1.PersistentVolumeClaim{}, types.NamespacedName{Namespace: c.Namespace,
		Name: name})
	if err != nil || claim == nil {
		return err == nil, err
	}
	return p.own(ctx, c, claim)
}

// own has a claim of the Cluster deleted with it, or not, as the spec says now, and tells
// whether that is so. Somebody else's claim is left alone.
func (p *prerequisites) own(ctx context.Context, c *v1alpha1.Cluster, claim *corev1.PersistentVolumeClaim,
) (follows bool, err error) {
	before := claim.DeepCopy()
	if claim.DeletionTimestamp != nil || !resources.Belongs(c, claim) || !resources.Owned(c, claim) {
		return true, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err = p.client.Patch(ctx, claim, patch, client.FieldOwner(resources.FieldManager))
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, nil // the next pass sees what it has become
	}
	return false, fmt.Errorf("have the PersistentVolumeClaim %s follow spec.storage.whenDeleted: %w", before.Name, err)
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
