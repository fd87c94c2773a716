package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func anActor(a *api) *actor {
	streams := NewStreams(context.Background(), logr.Discard(), func(types.NamespacedName) {})
	return &actor{client: a, live: a, prerequisites: newPrerequisites(a, a), unmade: newUnmadePods(),
		streams: streams, requests: newRequests(), operatorImage: "cnmsql", defaultImage: "mysql"}
}

// foreign is everything that an instance c-1 has, by name, and is somebody else's.
func foreign() []client.Object {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "c-1", UID: "theirs"}
	tls := m
	tls.Name = resources.TLSSecret("c-1")
	return []client.Object{&corev1.PersistentVolumeClaim{ObjectMeta: m}, &corev1.Pod{ObjectMeta: m},
		&corev1.Service{ObjectMeta: m},
		&rbacv1.Role{ObjectMeta: m}, &rbacv1.RoleBinding{ObjectMeta: m}, &corev1.ServiceAccount{ObjectMeta: m},
		&corev1.Secret{ObjectMeta: tls}}
}

func TestWhatIsSomebodyElsesIsNeitherTakenNorDeleted(t *testing.T) {
	for _, theirs := range foreign() {
		a, c := newAPI(t, theirs.DeepCopyObject().(client.Object)), aCluster()
		act, ca := anActor(a), anAuthority(t)
		volume := act.change(t.Context(), c, ca, core.CreateVolume{Instance: "c-1", Ordinal: 1})
		pod := act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1})
		var taken *nameTakenError
		if !errors.As(errors.Join(volume, pod), &taken) {
			t.Errorf("%T: %v, %v", theirs, volume, pod)
		}
		if problem := problemFrom(pod); problem.Reason != "NameTaken" {
			t.Errorf("%T: the problem is %+v", theirs, problem)
		}
		must(t, act.change(t.Context(), c, ca, core.LabelPod{Instance: "c-1", Role: "primary", Routable: true}))
		must(t, act.change(t.Context(), c, ca, core.ReinitInstance{Instance: "c-1", Owned: core.Owned{PodUID: "mine",
			VolumeUID: "mine"}}))
		must(t, act.change(t.Context(), c, ca, core.DeleteInstance{Instance: "c-1", Owned: core.Owned{PodUID: "mine",
			VolumeUID: "mine"}}))
		found := theirs.DeepCopyObject().(client.Object)
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(theirs), found))
		if found.GetUID() != "theirs" || len(found.GetLabels()) > 0 {
			t.Errorf("%T is touched: %+v", theirs, found)
		}
		var made corev1.Pod
		if err := a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-1"}, &made); err == nil &&
			made.UID != "theirs" {
			t.Errorf("%T: a Pod is made beside it", theirs)
		}
	}
}

// Without a claim a Pod would wait for one, and mount whatever is made under the name.
func TestNoPodIsMadeBeforeItsClaim(t *testing.T) {
	a, c := newAPI(t), aCluster()
	act, ca := anActor(a), anAuthority(t)
	giveAccounts(t, a)
	if err := act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1}); err == nil {
		t.Error("it is made")
	}
	for range 2 { // what is there already is no failure
		must(t, act.change(t.Context(), c, ca, core.CreateVolume{Instance: "c-1", Ordinal: 1}))
		must(t, act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1}))
	}
	// The fake API server gives no UIDs.
	for _, obj := range foreign() {
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		obj.SetUID("uid")
		must(t, a.Update(t.Context(), obj))
	}
	must(t, act.change(t.Context(), c, ca, core.DeleteInstance{Instance: "c-1",
		Owned: core.Owned{PodUID: "uid", VolumeUID: "uid"}}))
	for _, obj := range foreign() {
		if err := a.Get(context.Background(), client.ObjectKeyFromObject(obj), obj); !apierrors.IsNotFound(err) {
			t.Errorf("%T is left behind: %v", obj, err)
		}
	}
}

func TestTheVolumeOfARemovedInstanceIsKept(t *testing.T) {
	a, c := newAPI(t), aCluster()
	act, ca := anActor(a), anAuthority(t)
	giveAccounts(t, a)
	must(t, act.change(t.Context(), c, ca, core.CreateVolume{Instance: "c-1", Ordinal: 1}))
	must(t, act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1}))
	for _, obj := range foreign() { // the fake API server gives no UIDs
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
		obj.SetUID("uid")
		must(t, a.Update(t.Context(), obj))
	}
	for range 2 {
		must(t, act.change(t.Context(), c, ca, core.DeleteInstance{Instance: "c-1", Owned: core.Owned{PodUID: "uid",
			VolumeUID: "uid"}, KeepVolume: true}))
	}
	for _, obj := range foreign() {
		err := a.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)
		_, isClaim := obj.(*corev1.PersistentVolumeClaim)
		if isClaim && (err != nil || !resources.IsKept(obj) || len(obj.GetOwnerReferences()) > 0) ||
			!isClaim && !apierrors.IsNotFound(err) {
			t.Errorf("%T: %v, %v", obj, err, obj.GetAnnotations())
		}
	}
	if err := act.change(t.Context(), c, ca, core.CreatePod{Instance: "c-1", Ordinal: 1}); err == nil ||
		!strings.Contains(err.Error(), "was kept when its instance was removed") {
		t.Errorf("a Pod mounts it: %v", err)
	}
}

func TestClaimsFollowWhatTheSpecSaysOfADeletedCluster(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1",
		OwnerReferences: aPod("c-1", "", "").OwnerReferences}}
	kept := claim.DeepCopy()
	kept.Name, kept.Annotations = "c-3", map[string]string{v1alpha1.AnnotationKept: "2026-01-01T00:00:00Z"}
	server := newAPI(t, claim, kept)
	r, c := newTestReconciler(t, server, server), aCluster()
	for _, when := range []v1alpha1.VolumeRetention{v1alpha1.RetainVolume, v1alpha1.DeleteVolume,
		v1alpha1.RetainVolume} {
		c.Spec.Storage.WhenDeleted = when
		server.patches = 0
		for range 2 {
			if follow, failed := r.ownVolumes(t.Context(), c, []string{"c-3"}); !follow {
				t.Errorf("%s: not all claims follow: %v", when, failed)
			}
		}
		for _, name := range []string{"c-1", "c-3"} {
			var now corev1.PersistentVolumeClaim
			must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &now))
			if metav1.IsControlledBy(&now, c) != (when == v1alpha1.DeleteVolume) || !resources.Belongs(c, &now) {
				t.Errorf("%s: %s has the owners %v", when, name, now.OwnerReferences)
			}
		}
		if server.patches != 2 {
			t.Errorf("%s: it took %d requests", when, server.patches)
		}
	}
}

func TestOnlyTheVolumeThatWasMeantIsAdopted(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1", UID: "claim",
		Labels:      map[string]string{v1alpha1.LabelCluster: "c"},
		Annotations: map[string]string{v1alpha1.AnnotationClusterUID: "former"}}}
	a, c := newAPI(t, claim), aCluster()
	act, ca := anActor(a), anAuthority(t)
	var taken *nameTakenError
	if err := act.change(t.Context(), c, ca, core.CreateVolume{Instance: "c-1", Ordinal: 1}); !errors.As(err, &taken) ||
		!strings.Contains(err.Error(), "of UID former, which was deleted") {
		t.Errorf("a former claim is no hindrance: %v", err)
	}
	for _, r := range []struct {
		e    core.AdoptVolume
		want string
	}{
		{core.AdoptVolume{Instance: "c-1", UID: "another", Of: "former"}, "former"},
		{core.AdoptVolume{Instance: "c-1", UID: "claim", Of: "earlier"}, "former"},
		{core.AdoptVolume{Instance: "c-2", UID: "claim", Of: "former"}, "former"},
		{core.AdoptVolume{Instance: "c-1", UID: "claim", Of: "former"}, string(c.UID)},
	} {
		must(t, act.change(t.Context(), c, ca, r.e))
		must(t, a.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
		if got := claim.Annotations[v1alpha1.AnnotationClusterUID]; got != r.want {
			t.Errorf("after %+v it is of %s, want %s", r.e, got, r.want)
		}
	}
	must(t, act.change(t.Context(), c, ca, core.CreateVolume{Instance: "c-1", Ordinal: 1}))
}

// The generation counts as observed when kubectl delete cluster does what it says: not while a claim
// still has the Cluster as owner although it is to stay.
func TestAGenerationIsObservedWhenTheClaimsFollowIt(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, refusal := range map[string]error{
		"":         nil,
		"conflict": apierrors.NewConflict(claims, "c-1", errors.New("the object has been modified")),
		"busy":     apierrors.NewTooManyRequests("busy", 1),
		"refused":  apierrors.NewForbidden(claims, "c-1", errors.New("a webhook")),
	} {
		t.Run(name, func(t *testing.T) {
			c := aCluster()
			c.Generation, c.Status.ObservedGeneration = 2, 1
			c.Spec.Storage.WhenDeleted = v1alpha1.DeleteVolume
			claim, err := resources.VolumeClaim(c, "c-1", 1)
			must(t, err)
			c.Spec.Storage.WhenDeleted = v1alpha1.RetainVolume
			refuse := refusal
			server := newFake(t).WithReturnManagedFields().WithStatusSubresource(c).WithObjects(c,
				claim).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, p client.Patch,
					o ...client.PatchOption) error {
					if refuse != nil && obj.GetName() == "c-1" {
						return refuse
					}
					return w.Patch(ctx, obj, p, o...)
				}}).Build()
			r, ca := operatorOf(t, server), anAuthority(t)
			look := func() int64 {
				now := aCluster()
				must(t, server.Get(t.Context(), clusterKey, now))
				_, _, err := r.pass(quietly(t), &now, ca, nil)
				must(t, err)
				must(t, server.Get(t.Context(), clusterKey, now))
				return now.Status.ObservedGeneration
			}
			if got := look(); (got == 2) != (refuse == nil) {
				t.Errorf("observed is generation %d", got)
			}
			refuse = nil
			if got := look(); got != 2 {
				t.Errorf("when all follow, observed is generation %d", got)
			}
		})
	}
}
