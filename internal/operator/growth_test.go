package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// noGrowth is the answer of an API server of which a StorageClass or a quota lets nothing grow.
var noGrowth = apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "c-1",
	errors.New("it cannot be resized"))

const toldOfGrowth = "grow the volume of c-1 to 2Gi: "

// growing is an operator, a Cluster that is to have volumes of 2 GiB, and the claim of c-1 with 1 GiB.
func growing(t *testing.T) (*Reconciler, *api, *v1alpha1.Cluster, *storagev1.StorageClass) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	claim := aVolumeOf("1Gi", "1Gi")
	claim.Spec.StorageClassName = &class.Name
	server, c := newAPI(t, class, claim), aCluster()
	c.Spec.Storage.Size = "2Gi"
	return operatorOf(t, server), server, c, class
}

// grow carries out what a look decides about the sizes of volumes, and tells what failed.
func (r *Reconciler) grow(t *testing.T, c *v1alpha1.Cluster) string {
	t.Helper()
	_, plan, err := r.decide(t.Context(), c, nil)
	must(t, err)
	done := r.actor.act(t.Context(), c, nil, slices.DeleteFunc(plan.Effects, func(e core.Effect) bool {
		_, grows := e.(core.GrowVolume)
		return !grows
	}))
	done.repeat(plan)
	if err := errors.Join(append(done.standing, done.changes...)...); err != nil {
		return err.Error()
	}
	return ""
}

func TestARefusedGrowthIsAskedForAgainWhenSomethingChangedOrAfterAMinute(t *testing.T) {
	r, server, c, class := growing(t)
	server.refusePatch = noGrowth
	grow := func(what string, want int) {
		t.Helper()
		server.patches = 0
		for range 3 {
			if told := r.grow(t, c); told != toldOfGrowth+server.refusePatch.Error() {
				t.Errorf("%s: told is %q", what, told)
			}
		}
		if server.patches != want {
			t.Errorf("%s: asked %d times, want %d", what, server.patches, want)
		}
	}
	grow("at first", 1)
	grow("nothing has changed", 0)
	c.Generation++
	grow("the spec has changed", 1)
	must(t, server.Update(t.Context(), class))
	grow("the class has changed", 1)
	old, _ := r.prerequisites.growths.of("claim")
	old.At = old.At.Add(-time.Minute)
	r.prerequisites.growths.note("claim", old)
	grow("a minute later", 1)
	r.prerequisites.forget(clusterKey)
	grow("the Cluster is another one", 1)
	server.refusePatch = errors.New("no answer")
	c.Generation++
	grow("no answer is no refusal", 3)
}

// TestAGrowthThatIsNotAskedForAgainStaysTold holds a whole look to that: the status has it for as long as it stands.
func TestAGrowthThatIsNotAskedForAgainStaysTold(t *testing.T) {
	c := aCluster()
	c.Spec.Storage.Size = "2Gi"
	server := newFake(t).WithReturnManagedFields().WithStatusSubresource(&v1alpha1.Cluster{}).WithObjects(c,
		aVolumeOf("1Gi", "1Gi")).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return noGrowth
		}}).Build()
	r := operatorOf(t, server)
	for _, look := range []string{"at first", "and then"} {
		_, _, err := r.pass(quietly(t), &c, nil, nil)
		must(t, err)
		if failed := r.state(c).failed; !strings.Contains(failed, toldOfGrowth+noGrowth.Error()) {
			t.Errorf("%s, told is %q", look, failed)
		}
	}
}

// TestOnlyTheClaimThatWasMeantGrows holds the one who carries it out to what there is by then.
func TestOnlyTheClaimThatWasMeantGrows(t *testing.T) {
	for name, k := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   string
	}{
		"it is as it was":   {func(*corev1.PersistentVolumeClaim) {}, "2Gi"},
		"it is another one": {func(claim *corev1.PersistentVolumeClaim) { claim.UID = "another" }, "1Gi"},
		"it is somebody's":  {func(claim *corev1.PersistentVolumeClaim) { claim.OwnerReferences = nil }, "1Gi"},
		"it is being deleted": {func(claim *corev1.PersistentVolumeClaim) {
			claim.Finalizers = []string{"test/stays"}
		}, "1Gi"},
		"it asks for more": {func(claim *corev1.PersistentVolumeClaim) {
			claim.Spec.Resources = aVolumeOf("3Gi", "1Gi").Spec.Resources
		}, "3Gi"},
	} {
		claim := aVolumeOf("1Gi", "1Gi")
		k.change(claim)
		server := newAPI(t, claim)
		if len(claim.Finalizers) > 0 {
			must(t, server.Delete(t.Context(), claim))
		}
		grow := core.GrowVolume{Instance: "c-1", VolumeUID: "claim", To: "2Gi"}
		must(t, anActor(server).change(t.Context(), aCluster(), nil, grow))
		must(t, server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-1"}, claim))
		if asks := claim.Spec.Resources.Requests.Storage().String(); asks != k.want {
			t.Errorf("%s: it asks for %s, not %s", name, asks, k.want)
		}
	}
}
