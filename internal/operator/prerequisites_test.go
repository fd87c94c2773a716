package operator

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnmsql.co/api/v1alpha1"
)

func TestAUsersSecretIsReadOnceAMinuteAndAfterEachChangeOfTheSpec(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"},
		Data: map[string][]byte{"username": []byte("app"), "password": []byte("one")}}
	cached, live := newAPI(t), newAPI(t, secret)
	p, c := newPrerequisites(cached, live), aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	read := func(want int) {
		t.Helper()
		live.gets = 0
		for range 3 {
			s, err := p.appSecret(t.Context(), nil)(c, nil, nil)
			must(t, err)
			if string(s.Data["password"]) != "one" {
				t.Errorf("the password is %q", s.Data["password"])
			}
		}
		if live.gets != want {
			t.Errorf("the Secret was read %d times, want %d", live.gets, want)
		}
	}
	read(1)
	c.Generation++
	read(1)
	known := p.users[clusterKey]
	known.read = known.read.Add(-userSecretLife)
	p.users[clusterKey] = known
	read(1)
	c.UID = "another"
	read(1)
	p.forget(clusterKey)
	read(1)
}

func TestASecretThatIsBeingMendedIsReadEachTime(t *testing.T) {
	live := newAPI(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}})
	p, c := newPrerequisites(newAPI(t), live), aCluster()
	c.Spec.Bootstrap =
		&v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{Secret: &v1alpha1.LocalObjectReference{Name: "mine"}}}
	for range 3 {
		_, err := p.appSecret(t.Context(), nil)(c, nil, nil)
		var h *hindranceError
		if !errors.As(err, &h) || h.Reason != "SecretIncomplete" {
			t.Errorf("an empty Secret: %v", err)
		}
	}
	if live.gets != 3 {
		t.Errorf("it was read %d times", live.gets)
	}
}

func TestARefusedGrowthIsAskedForAgainWhenSomethingChangedOrAfterAMinute(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fixed"}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c-1", UID: "claim",
		OwnerReferences: aPod("c-1", "", "").OwnerReferences}}
	claim.Spec.StorageClassName = &class.Name
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	server := newAPI(t, class, claim)
	server.refusePatch = apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "c-1",
		errors.New("it cannot be resized"))
	r, c := newTestReconciler(t, server, server), aCluster()
	c.Status.InstanceNames = []string{"c-1"}
	c.Spec.Storage.Size = "2Gi"
	grow := func(what string, want int) {
		t.Helper()
		server.patches = 0
		for range 3 {
			var done failures
			r.growVolumes(t.Context(), c, &done)
			if len(done.changes)+len(done.standing) != 1 {
				t.Errorf("%s: the refusal is not told: %+v", what, done)
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
	old := r.prerequisites.refusals["claim"]
	old.at = old.at.Add(-time.Minute)
	r.prerequisites.refusals["claim"] = old
	grow("a minute later", 1)
	server.refusePatch = errors.New("no answer")
	c.Generation++
	grow("no answer is no refusal", 3)
}
