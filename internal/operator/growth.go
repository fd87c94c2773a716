package operator

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// growAgain is when a growth that was refused is asked for again, although neither
// the spec nor the StorageClass has changed: a quota may have.
const growAgain = time.Minute

// refusal is a growth that the API server refused.
type refusal struct {
	cluster    types.NamespacedName
	generation int64
	class      string // its resource version
	at         time.Time
	why        error
}

// growVolume raises the size of an instance's claim to spec.storage.size. Whether
// the volume then grows, and when, is the storage class's to say. repeated tells
// that the error is an earlier one and that nothing was asked for now.
func (p *prerequisites) growVolume(ctx context.Context, c *v1alpha1.Cluster,
	instance string) (repeated bool, err error) {
	var claim corev1.PersistentVolumeClaim
	err = p.client.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: instance}, &claim)
	if err != nil || claim.DeletionTimestamp != nil || !observation.IsInstances(c, &claim) {
		return false, client.IgnoreNotFound(err)
	}
	size, err := resource.ParseQuantity(c.Spec.Storage.Size)
	if err != nil {
		return false, err
	}
	if have := claim.Spec.Resources.Requests[corev1.ResourceStorage]; have.Cmp(size) >= 0 {
		return false, nil
	}
	now := refusal{cluster: client.ObjectKeyFromObject(c), generation: c.Generation, class: p.classVersion(ctx,
		&claim), at: time.Now()}
	if why := p.refused(claim.UID, now); why != nil {
		return true, why
	}
	// Somebody may have asked for more since it was read.
	patch := client.MergeFromWithOptions(claim.DeepCopy(), client.MergeFromWithOptimisticLock{})
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
	err = p.client.Patch(ctx, &claim, patch, client.FieldOwner(resources.FieldManager))
	if apierrors.IsConflict(err) {
		return false, nil // it is looked at again when the cache has what it has become
	}
	if err != nil {
		now.why = fmt.Errorf("grow the volume of %s to %s: %w", instance, c.Spec.Storage.Size, err)
		p.noteRefusal(claim.UID, now)
		return false, now.why
	}
	return false, nil
}

// classVersion changes whenever the StorageClass of a claim does.
func (p *prerequisites) classVersion(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	var class storagev1.StorageClass
	if name := claim.Spec.StorageClassName; name == nil ||
		p.client.Get(ctx, types.NamespacedName{Name: *name}, &class) != nil {
		return ""
	}
	return class.ResourceVersion
}

// refused returns why a growth was refused lately under the same circumstances.
func (p *prerequisites) refused(claim types.UID, now refusal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.refusals[claim]
	if !known || last.generation != now.generation || last.class != now.class || now.at.Sub(last.at) >= growAgain {
		return nil
	}
	return last.why
}

// noteRefusal remembers a refusal. A request that got no answer is no refusal.
func (p *prerequisites) noteRefusal(claim types.UID, r refusal) {
	if !apierrors.IsForbidden(r.why) && !apierrors.IsInvalid(r.why) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals[claim] = r
}
