package observation_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// A claim that outlives its Cluster has no owner: it belongs to the Cluster whose UID it has.
func TestAClaimIsAnInstancesByTheUIDOfItsCluster(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	claim := func(name, uid string, kept bool) corev1.PersistentVolumeClaim {
		v := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "claim",
			Annotations: map[string]string{v1alpha1.AnnotationClusterUID: uid},
			Labels:      map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: name}}}
		if kept {
			v.Annotations[v1alpha1.AnnotationKept] = "2026-01-01T00:00:00Z"
		}
		return v
	}
	another := claim("c-6", "mine", false)
	another.OwnerReferences =
		[]metav1.OwnerReference{*metav1.NewControllerRef(&v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c",
			UID: "former"}}, v1alpha1.GroupVersion.WithKind("Cluster"))}
	copied := claim("data-c-1", "mine", false)
	copied.Labels[v1alpha1.LabelInstance] = "c-1"
	var objs observation.Objects
	objs.SetVolumes(c, []corev1.PersistentVolumeClaim{claim("c-1", "mine", false), claim("c-2", "former", false),
		claim("c-3", "mine", true), claim("c-4", "former", true), claim("c-5", "", false), another, copied})
	if len(objs.Volumes) != 1 || objs.Volumes["c-1"] == nil {
		t.Errorf("taken for instances': %v", objs.Volumes)
	}
	if len(objs.KeptVolumes) != 1 || objs.KeptVolumes["c-3"] == nil {
		t.Errorf("taken for kept: %v", objs.KeptVolumes)
	}
	if want := []string{"c-5", "c-6", "data-c-1"}; !slices.Equal(objs.ForeignVolumes, want) {
		t.Errorf("foreign are %v, want %v", objs.ForeignVolumes, want)
	}
	o, err := observation.Cluster(c, &objs)
	if want := []core.FormerVolume{{Instance: "c-2", UID: "claim", Of: "former"}, {Instance: "c-4", UID: "claim",
		Of: "former", Removed: true}}; !slices.Equal(o.FormerVolumes, want) {
		t.Errorf("of deleted Clusters are %v, want %v", o.FormerVolumes, want)
	}
	if err != nil || !o.KeepVolumes || !slices.Equal(o.KeptVolumes, []string{"c-3"}) {
		t.Errorf("the cluster keeps volumes: %t, and has kept %v: %v", o.KeepVolumes, o.KeptVolumes, err)
	}
	if names := observation.InstanceNames(c, &objs); !slices.Equal(names, []string{"c-1"}) {
		t.Errorf("instances are %v", names)
	}
	// While its Pod stops, the instance is still seen to go.
	objs.SetPods(c, nil)
	objs.Pods["c-3"] = &corev1.Pod{}
	vol, _ := observation.Instance(c, "c-3", &objs, observation.Wanted{}).Volume.Get()
	if vol != (core.Volume{Exists: true, UID: "claim", Deleting: true}) {
		t.Errorf("its volume is %+v", vol)
	}
}

// Labels are copied with a manifest, and changed by hand: what there is of the name tells one from the other.
func TestAClaimWithTheLabelOfAnotherInstanceIsACopyUnlessItsOwnIsThere(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	c.Status.InstanceNames = []string{"c-1", "c-2"}
	var claims []corev1.PersistentVolumeClaim
	for _, name := range []string{"c-1", "c-2", "c-3", "c-9"} {
		claims = append(claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name,
			Annotations: map[string]string{v1alpha1.AnnotationClusterUID: "mine"},
			Labels:      map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: "c-1"}}})
	}
	claims[2].Annotations[v1alpha1.AnnotationKept] = "2026-01-01T00:00:00Z"
	var objs observation.Objects
	objs.SetVolumes(c, claims)
	if names := observation.InstanceNames(c, &objs); !slices.Equal(names, []string{"c-1", "c-2"}) ||
		objs.Volumes["c-2"] == nil {
		t.Errorf("instances are %v, with the claims %v", names, objs.Volumes)
	}
	if objs.KeptVolumes["c-3"] == nil || !slices.Equal(objs.ForeignVolumes, []string{"c-9"}) {
		t.Errorf("kept are %v, foreign %v", objs.KeptVolumes, objs.ForeignVolumes)
	}
}

func TestAnAcceptedLossIsOfOneEpoch(t *testing.T) {
	for text, want := range map[string]core.Override{
		"c-2@7": {To: "c-2", Epoch: 7}, "c-2@0": {To: "c-2"}, "c-2": {To: "c-2", Epoch: -1},
		"c-2@": {To: "c-2", Epoch: -1}, "c-2@x": {To: "c-2", Epoch: -1},
	} {
		c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1alpha1.AnnotationAcceptLoss: text}}}
		if got := observation.OverrideWish(c); *got != want {
			t.Errorf("%q is %+v, want %+v", text, *got, want)
		}
	}
}

// What is empty in the spec is the default class, and in a claim none at all: an earlier operator
// made such claims, and they stay as they are.
func TestAClaimWaitsForTheClassThatItHas(t *testing.T) {
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "mine"}}
	c.Spec.Storage.StorageClass = new("")
	usual := []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "usual",
		Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}}}
	for name, k := range map[string]struct {
		has     *string
		classes []storagev1.StorageClass
		problem core.Reason
	}{
		"the default one":                      {nil, usual, ""},
		"the default one, by name":             {new("usual"), usual, ""},
		"none, for there is no default":        {nil, nil, core.ProblemNoDefaultClass},
		"none at all, though there is default": {new(""), usual, core.ProblemClassNotFound},
	} {
		claim := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: k.has}}
		var got core.Reason
		if p := observation.VolumeFacts(c, claim, k.classes).Problem; p != nil {
			got = p.Reason
		}
		if got != k.problem {
			t.Errorf("%s: the problem is %q, not %q", name, got, k.problem)
		}
		claim.Status.Phase = corev1.ClaimBound
		if p := observation.VolumeFacts(c, claim, k.classes).Problem; p != nil {
			t.Errorf("%s, bound: %v", name, p)
		}
	}
}

// A claim whose volume is gone had one, and data on it: nobody may take it for one that was never
// used, and delete it.
func TestAClaimThatLostItsVolumeHadOne(t *testing.T) {
	for phase, want := range map[corev1.PersistentVolumeClaimPhase]bool{
		corev1.ClaimBound: true, corev1.ClaimLost: true, corev1.ClaimPending: false, "": false} {
		claim := &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}}
		if got := observation.VolumeFacts(&v1alpha1.Cluster{}, claim, nil).Bound; got != want {
			t.Errorf("phase %q: it had a volume: %t", phase, got)
		}
	}
}

// TestWhatAClaimAsksForIsHeldAgainstTheSpec also where the two are written otherwise.
func TestWhatAClaimAsksForIsHeldAgainstTheSpec(t *testing.T) {
	refused := &core.RefusedGrowth{Why: "over the quota"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c-1", UID: "claim"}}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2048Mi")}
	objs := &observation.Objects{Volumes: map[string]*corev1.PersistentVolumeClaim{"c-1": claim},
		RefusedGrowths: map[string]*core.RefusedGrowth{"c-1": refused}}
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	vol, _ := observation.Instance(c, "c-1", objs, observation.Wanted{}).Volume.Get()
	for text, want := range map[string]core.Size{"2Gi": {Bytes: vol.Asks, Text: "2Gi"}, "2": {Bytes: 2, Text: "2"},
		"": {}, "much": {}} {
		c.Spec.Storage.Size = text
		if o, err := observation.Cluster(c, objs); err != nil || o.VolumeSize != want {
			t.Errorf("%q is %+v, not %+v: %v", text, o.VolumeSize, want, err)
		}
	}
	if vol.Asks != 2<<30 || vol.Refused != refused {
		t.Errorf("the claim is %+v", vol)
	}
}
