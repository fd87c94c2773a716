package operator

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// refusal is a growth that the API server refused, and by what it went.
type refusal struct {
	core.RefusedGrowth
	cluster    types.NamespacedName
	generation int64
	class      string // its resource version
}

// refusedGrowths remembers the last one of each claim.
type refusedGrowths struct {
	mu  sync.Mutex
	all map[types.UID]refusal
}

func newRefusedGrowths() *refusedGrowths { return &refusedGrowths{all: map[types.UID]refusal{}} }

func (r *refusedGrowths) note(claim types.UID, last refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[claim] = last
}

func (r *refusedGrowths) of(claim types.UID) (last refusal, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known = r.all[claim]
	return last, known
}

// forget drops those of a Cluster's claims.
func (r *refusedGrowths) forget(cluster types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.all, func(_ types.UID, of refusal) bool { return of.cluster == cluster })
}

// readRefused finds the growths that were refused, and that neither another spec nor another StorageClass tells
// to be refused no more.
func (ob *observer) readRefused(ctx context.Context, c *v1alpha1.Cluster, objs *observation.Objects) {
	objs.RefusedGrowths = map[string]*core.RefusedGrowth{}
	for name, claim := range objs.Volumes {
		last, known := ob.growths.of(claim.UID)
		if known && last.generation == c.Generation && last.class == classVersion(ctx, ob.client, claim) {
			objs.RefusedGrowths[name] = &last.RefusedGrowth
		}
	}
}

// growVolume has a claim ask for a size if it is still the one that was meant, and asks for less. What was refused
// is remembered.
func (a *actor) growVolume(ctx context.Context, c *v1alpha1.Cluster, e core.GrowVolume) error {
	size, err := resource.ParseQuantity(e.To)
	if err != nil {
		return err
	}
	claim, err := find(ctx, a.client, &corev1.PersistentVolumeClaim{}, types.NamespacedName{Namespace: c.Namespace,
		Name: e.Instance})
	if err != nil || claim == nil || string(claim.UID) != e.VolumeUID || claim.DeletionTimestamp != nil ||
		!observation.IsInstances(c, claim) {
		return err
	}
	if have := claim.Spec.Resources.Requests[corev1.ResourceStorage]; have.Cmp(size) >= 0 {
		return nil
	}
	last := refusal{cluster: client.ObjectKeyFromObject(c), generation: c.Generation,
		class: classVersion(ctx, a.client, claim)}
	// Somebody may have asked for more since it was read.
	patch := client.MergeFromWithOptions(claim.DeepCopy(), client.MergeFromWithOptimisticLock{})
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = size
	err = a.client.Patch(ctx, claim, patch, client.FieldOwner(resources.FieldManager))
	switch {
	case apierrors.IsConflict(err):
		return nil // it is looked at again when the cache has what it has become
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // a request that got no answer is no refusal
		last.RefusedGrowth = core.RefusedGrowth{At: time.Now(), Why: err.Error()}
		a.prerequisites.growths.note(types.UID(e.VolumeUID), last)
	}
	return err
}

// classVersion changes whenever the StorageClass of a claim does.
func classVersion(ctx context.Context, from client.Reader, claim *corev1.PersistentVolumeClaim) string {
	var class storagev1.StorageClass
	if name := claim.Spec.StorageClassName; name == nil ||
		from.Get(ctx, types.NamespacedName{Name: *name}, &class) != nil {
		return ""
	}
	return class.ResourceVersion
}
