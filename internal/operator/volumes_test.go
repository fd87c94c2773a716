package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/resources"
)

// ownedClaims are claims that go with the Cluster: one of an instance, one that was kept, and one of another
// name, none of which has a label; one that somebody else copied, and one of another Cluster.
func ownedClaims(c *v1alpha1.Cluster) (its, others []*corev1.PersistentVolumeClaim) {
	claim := func(name string, owner *v1alpha1.Cluster) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name,
			Annotations: map[string]string{}, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner,
				v1alpha1.GroupVersion.WithKind("Cluster"))}}}
	}
	kept := claim("c-3", c)
	kept.Annotations[v1alpha1.AnnotationKept] = "2026-01-01T00:00:00Z"
	another := c.DeepCopy()
	another.UID = "another"
	copied := claim("c-9", c)
	copied.OwnerReferences, copied.Labels = nil, map[string]string{v1alpha1.LabelInstance: "c-1"}
	copied.Annotations[v1alpha1.AnnotationClusterUID] = string(c.UID)
	return []*corev1.PersistentVolumeClaim{claim("c-1", c), kept, claim("by-hand", c)},
		[]*corev1.PersistentVolumeClaim{claim("d-1", another), copied}
}

func objectsOf(more client.Object, claims ...*corev1.PersistentVolumeClaim) []client.Object {
	out := []client.Object{more}
	for _, claim := range claims {
		out = append(out, claim.DeepCopy())
	}
	return out
}

// The caches go by a label. A claim that lost it, of an instance or of one that was removed, would go with
// the Cluster after it is said that all stay.
func TestAGenerationIsObservedWhenClaimsWithoutLabelsFollowIt(t *testing.T) {
	c := aCluster()
	c.Generation, c.Status.ObservedGeneration = 2, 1
	its, others := ownedClaims(c)
	server := newAPI(t, objectsOf(c, append(its, others...)...)...)
	cached := newFake(t).WithObjects(c.DeepCopy()).Build()
	r := newTestReconciler(t, cached, server)
	r.prerequisites.client = writesTo{cached, server}
	for _, when := range []v1alpha1.VolumeRetention{v1alpha1.RetainVolume, v1alpha1.DeleteVolume} {
		c.Spec.Storage.WhenDeleted = when
		if follow, failed := r.ownVolumes(t.Context(), c, nil); !follow || len(failed) > 0 {
			t.Errorf("%s: not all claims follow: %v", when, failed)
		}
		for _, claim := range its {
			now := &corev1.PersistentVolumeClaim{}
			must(t, server.Get(t.Context(), client.ObjectKeyFromObject(claim), now))
			isNamed := claim.Name != "by-hand" // who is nobody's instance is never taken
			if metav1.IsControlledBy(now, c) != (when == v1alpha1.DeleteVolume && isNamed) ||
				!resources.Belongs(c, now) {
				t.Errorf("%s: %s has the owners %v", when, now.Name, now.OwnerReferences)
			}
		}
		for _, claim := range others {
			now := &corev1.PersistentVolumeClaim{}
			must(t, server.Get(t.Context(), client.ObjectKeyFromObject(claim), now))
			if !apiequality.Semantic.DeepEqual(now.OwnerReferences, claim.OwnerReferences) {
				t.Errorf("%s: %s is another one: %v", when, now.Name, now.ObjectMeta)
			}
		}
		c.Generation++
	}
}

// Once all follow, a generation that is not observed yet for another reason costs no question.
func TestTheClaimsOfAGenerationAreLookedForOnce(t *testing.T) {
	c := aCluster()
	c.Generation, c.Status.ObservedGeneration = 2, 1
	its, _ := ownedClaims(c)
	server := newAPI(t, objectsOf(c, its...)...)
	r, live := newTestReconciler(t, server, server), &lists{Reader: server}
	r.Live = live
	for range 3 {
		if follow, failed := r.ownVolumes(t.Context(), c, nil); !follow {
			t.Errorf("not all claims follow: %v", failed)
		}
	}
	if live.asked != 1 {
		t.Errorf("it was asked %d times", live.asked)
	}
}

// A deletion may wait for its archive, or for a finalizer of somebody else. Who says meanwhile that the claims
// stay, says it in time; and what does not go with the Cluster, as with --cascade=orphan, never does again.
func TestClaimsAreFreedWhileADeletionWaits(t *testing.T) {
	for when, owned := range map[v1alpha1.VolumeRetention]bool{
		v1alpha1.RetainVolume: false, v1alpha1.DeleteVolume: true} {
		c := aCluster()
		c.Finalizers = []string{"example.com/wait"}
		c.Spec.Storage.WhenDeleted = when
		its, _ := ownedClaims(c)
		orphan := its[0].DeepCopy()
		orphan.Name, orphan.OwnerReferences = "c-2", nil
		orphan.Annotations[v1alpha1.AnnotationClusterUID] = string(c.UID)
		server := newAPI(t, objectsOf(c, append(its, orphan)...)...)
		must(t, server.Delete(t.Context(), c.DeepCopy()))
		r, live := newTestReconciler(t, server, server), &lists{Reader: server}
		r.Live, r.Metrics = live, NewMetrics(prometheus.NewRegistry())
		for range 3 {
			_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
			must(t, err)
		}
		for _, claim := range append(its, orphan) {
			now := &corev1.PersistentVolumeClaim{}
			must(t, server.Get(t.Context(), client.ObjectKeyFromObject(claim), now))
			if metav1.IsControlledBy(now, c) != (owned && claim != orphan) {
				t.Errorf("%s: %s has the owners %v", when, now.Name, now.OwnerReferences)
			}
		}
		if live.asked > 1 {
			t.Errorf("%s: it was asked %d times", when, live.asked)
		}
	}
}

// A claim that cannot be freed is told of, and is tried again.
func TestAClaimThatCannotBeFreedIsTold(t *testing.T) {
	c := aCluster()
	c.Finalizers = []string{"example.com/wait"}
	its, _ := ownedClaims(c)
	server := newAPI(t, objectsOf(c, its...)...)
	must(t, server.Delete(t.Context(), c.DeepCopy()))
	server.refusePatch = errors.New("a webhook")
	r, told := newTestReconciler(t, server, server), events.NewFakeRecorder(9)
	r.Recorder, r.Metrics = told, NewMetrics(prometheus.NewRegistry())
	for range 2 {
		_, err := r.Reconcile(quietly(t), ctrl.Request{NamespacedName: clusterKey})
		if err == nil || !strings.Contains(err.Error(), "PersistentVolumeClaim c-1 follow spec.storage.whenDeleted") {
			t.Errorf("it is not tried again: %v", err)
		}
	}
	if n := len(told.Events); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// lists counts how often it is asked for all of a kind.
type lists struct {
	client.Reader
	asked int
}

func (l *lists) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	l.asked++
	return l.Reader.List(ctx, all, opts...)
}
