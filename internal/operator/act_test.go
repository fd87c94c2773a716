package operator

import (
	"context"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func aVolume(instance, uid string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: instance,
		UID: types.UID(uid), OwnerReferences: aPod(instance, "", "").OwnerReferences}}
}

func isThere(t *testing.T, server *api, obj client.Object, name string) bool {
	t.Helper()
	err := server.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: name}, obj)
	must(t, client.IgnoreNotFound(err))
	return !apierrors.IsNotFound(err)
}

// An order to delete an instance may come late: after the instance went, and another was
// made under its name.
func TestOnlyThePodAndTheVolumeThatWereMeantAreDeleted(t *testing.T) {
	meant := core.Owned{PodUID: "pod-2", VolumeUID: "volume-2"}
	for _, effect := range []core.Effect{
		core.DeleteInstance{Instance: "c-2", Owned: meant},
		core.ReinitInstance{Instance: "c-2", Owned: meant},
	} {
		_, isWhole := effect.(core.DeleteInstance)
		for _, c := range []struct {
			name                string
			volume, pod         string
			volumeGoes, podGoes bool
		}{
			{"what was meant", "volume-2", "pod-2", true, true},
			{"another volume", "volume-3", "pod-2", false, false},
			{"another Pod", "volume-2", "pod-3", true, false},
			{"all is another", "volume-3", "pod-3", false, false},
		} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.TLSSecret("c-2"),
				UID: "secret", OwnerReferences: aPod("c-2", "", "").OwnerReferences}}
			server := newAPI(t, aVolume("c-2", c.volume), aPod("c-2", c.pod, "n2"), secret)
			a := anActor(server)
			must(t, a.change(t.Context(), aCluster(), nil, effect))
			if there := isThere(t, server, &corev1.PersistentVolumeClaim{}, "c-2"); there == c.volumeGoes {
				t.Errorf("%s: %s: the volume is there: %t", effect, c.name, there)
			}
			if there := isThere(t, server, &corev1.Pod{}, "c-2"); there == c.podGoes {
				t.Errorf("%s: %s: the Pod is there: %t", effect, c.name, there)
			}
			if there := isThere(t, server, &corev1.Secret{}, secret.Name); there == (isWhole && c.podGoes) {
				t.Errorf("%s: %s: the Secret is there: %t", effect, c.name, there)
			}
		}
	}
}

func TestWhatWasNotThereWhenItWasDecidedIsNotDeleted(t *testing.T) {
	server := newAPI(t, aVolume("c-2", "volume-3"), aPod("c-2", "pod-3", "n2"))
	a := anActor(server)
	must(t, a.change(t.Context(), aCluster(), nil, core.ReinitInstance{Instance: "c-2"}))
	if !isThere(t, server, &corev1.PersistentVolumeClaim{}, "c-2") || !isThere(t, server, &corev1.Pod{}, "c-2") {
		t.Error("it is deleted")
	}
}

// A claim that could not be deleted is asked for again, for the human's wish still stands; that for
// another instance, whose claim was deleted, is taken away.
func TestTheWishToRecreateDataStandsUntilTheyAreDeleted(t *testing.T) {
	made := aCluster()
	made.Annotations = map[string]string{v1alpha1.AnnotationReinit: "c-2,c-3"}
	server := newAPI(t, made, aVolume("c-2", "volume-2"))
	wish := func() string {
		t.Helper()
		c := aCluster()
		must(t, server.Get(t.Context(), clusterKey, c))
		plan := []core.Effect{core.ReinitInstance{Instance: "c-3"}, core.ClearReinit{Instance: "c-3"},
			core.ReinitInstance{Instance: "c-2", Owned: core.Owned{VolumeUID: "volume-2"}},
			core.ClearReinit{Instance: "c-2"}}
		done := anActor(server).act(t.Context(), c, nil, plan)
		if failed := server.refuseDelete != nil; failed != (len(done.changes) == 1) {
			t.Errorf("failed: %v", done.changes)
		}
		must(t, server.Get(t.Context(), clusterKey, c))
		return c.Annotations[v1alpha1.AnnotationReinit]
	}
	server.refuseDelete = apierrors.NewTooManyRequests("the server is busy", 1)
	if left := wish(); left != "c-2" || !isThere(t, server, &corev1.PersistentVolumeClaim{}, "c-2") {
		t.Errorf("after a refusal the wish is %q", left)
	}
	server.refuseDelete = nil
	if left := wish(); left != "" || isThere(t, server, &corev1.PersistentVolumeClaim{}, "c-2") {
		t.Errorf("after the deletion the wish is %q", left)
	}
}

// waiting is an API server that takes no status until it was told where writes are led.
func waiting(t *testing.T, objs ...client.Object) client.Client {
	led := make(chan struct{})
	tell := sync.OnceFunc(func() { close(led) })
	b := newFake(t).WithReturnManagedFields().WithObjects(objs...)
	return b.WithStatusSubresource(&v1alpha1.Cluster{}).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration,
			o ...client.ApplyOption) error {
			defer tell()
			return c.Apply(ctx, obj, o...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, obj client.Object,
			o ...client.SubResourceUpdateOption) error {
			select {
			case <-led:
			case <-time.After(5 * time.Second):
				t.Error("writes are led nowhere while the status is written")
			}
			return c.SubResource(sub).Update(ctx, obj, o...)
		},
	}).Build()
}

func TestWritesAreLedWhileTheStatusIsWritten(t *testing.T) {
	c := aCluster()
	before := resources.WriteServices(c, "c-2")[0]
	server := waiting(t, c, aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2"), before)
	r := operatorOf(t, server)
	r.says("c-1", core.Report{Instance: "c-1", PodUID: "first", Node: "n1", State: core.Running,
		WritableEpoch: 1, Server: &core.Server{}})
	_, _, err := r.pass(quietly(t), &c, nil, nil)
	must(t, err)
	if to := led(t, server)["c-rw"]; to != "c-1" {
		t.Errorf("writes are led to %q", to)
	}
}

// What is bound is one instance's, and the others' requests stay as they are.
func TestAWishToRecreateDataIsBoundInItsPlace(t *testing.T) {
	made := aCluster()
	made.Annotations = map[string]string{v1alpha1.AnnotationReinit: "c-2,c-3@1/u/diverged"}
	server := newAPI(t, made)
	c := aCluster()
	must(t, server.Get(t.Context(), clusterKey, c))
	must(t, anActor(server).change(t.Context(), c, nil, core.BindReinit{Request: core.ReinitRequest{Instance: "c-2",
		Epoch: 4, Volume: "volume-2"}}))
	must(t, server.Get(t.Context(), clusterKey, c))
	if got := c.Annotations[v1alpha1.AnnotationReinit]; got != "c-2@4/volume-2,c-3@1/u/diverged" {
		t.Errorf("the wish is %q", got)
	}
}
