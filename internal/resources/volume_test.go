package resources

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

func TestAClaimGoesWithItsClusterOnlyIfThatIsWished(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	c.Spec.Storage.Size = "1Gi"
	make := func(when v1alpha1.VolumeRetention) *corev1.PersistentVolumeClaim {
		c.Spec.Storage.WhenDeleted = when
		claim, err := VolumeClaim(c, "c-1", 7)
		if err != nil {
			t.Fatal(err)
		}
		if Owned(c, claim) {
			t.Errorf("%q: a new claim is not as it should be", when)
		}
		return claim
	}
	for _, when := range []v1alpha1.VolumeRetention{"", v1alpha1.RetainVolume, v1alpha1.DeleteVolume} {
		claim := make(when)
		if goes := metav1.IsControlledBy(claim, c); goes != (when == v1alpha1.DeleteVolume) || !Belongs(c, claim) {
			t.Errorf("%q: it goes with the Cluster: %t; it belongs to it: %t", when, goes, Belongs(c, claim))
		}
	}
	// The wish changes, there and back; owners of other kinds stay.
	claim := make(v1alpha1.RetainVolume)
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: "Other", Name: "x", UID: "x"}}
	c.Spec.Storage.WhenDeleted = v1alpha1.DeleteVolume
	if !Owned(c, claim) || !metav1.IsControlledBy(claim, c) || len(claim.OwnerReferences) != 2 || Owned(c, claim) {
		t.Errorf("it is to go, and has the owners %v", claim.OwnerReferences)
	}
	c.Spec.Storage.WhenDeleted = v1alpha1.RetainVolume
	if !Owned(c, claim) || len(claim.OwnerReferences) != 1 ||
		claim.OwnerReferences[0].Name != "x" || !Belongs(c, claim) {
		t.Errorf("it is to stay, and has the owners %v", claim.OwnerReferences)
	}
	// One of an operator that knew no UIDs.
	delete(claim.Annotations, v1alpha1.AnnotationClusterUID)
	claim.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c,
		v1alpha1.GroupVersion.WithKind("Cluster"))}
	if !Belongs(c, claim) || !Owned(c, claim) || !Belongs(c, claim) || metav1.IsControlledBy(claim, c) {
		t.Errorf("a claim of before has %v, %v", claim.OwnerReferences, claim.Annotations)
	}
	former := c.DeepCopy()
	former.UID = "former"
	if Belongs(former, claim) || Belongs(&v1alpha1.Cluster{}, &corev1.PersistentVolumeClaim{}) {
		t.Error("it belongs to another Cluster, too")
	}
}

func TestAnEmptyStorageClassIsTheDefaultOne(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	for name, class := range map[string]*string{"none": nil, "empty": new(""), "fast": new("fast")} {
		c.Spec.Storage = v1alpha1.StorageSpec{Size: "1Gi", StorageClass: class}
		claim, err := VolumeClaim(c, "c-1", 7)
		if err != nil {
			t.Fatal(err)
		}
		switch got := claim.Spec.StorageClassName; {
		case name == "fast" && (got == nil || *got != "fast"), name != "fast" && got != nil:
			t.Errorf("%s: the claim's class is %v", name, got)
		}
	}
}
