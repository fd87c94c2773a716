package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

func aVolume(instance, uid string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: instance, UID: types.UID(uid), OwnerReferences: aPod(instance, "", "").OwnerReferences}}
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
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.TLSSecret("c-2"), UID: "secret", OwnerReferences: aPod("c-2", "", "").OwnerReferences}}
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
