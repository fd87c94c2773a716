package operator

import (
	"context"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// The caches go by a label. Whoever takes it off a claim has not deleted the claim: the Pod that
// uses it must not be taken for one that lost its data, and the label is put back.
func TestAClaimThatLostItsLabelIsNotTakenForDeleted(t *testing.T) {
	c := aCluster()
	labelled := aVolume("c-2", "v-2")
	labelled.Labels = map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: "c-2"}
	api := newAPI(t, c, aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2"), aVolume("c-1", "v-1"), labelled)
	cached := newFake(t).WithObjects(aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2"), labelled).Build()
	r := newTestReconciler(t, cached, api)

	objs, err := r.observer.read(t.Context(), c)
	must(t, err)
	for _, name := range []string{"c-1", "c-2"} {
		if objs.Volumes[name] == nil {
			t.Errorf("the claim %s is taken for deleted", name)
		}
	}

	r.prerequisites.applier.client = writesTo{cached, api}
	must(t, r.prerequisites.claim(t.Context(), c, "c-1"))
	var claim corev1.PersistentVolumeClaim
	must(t, api.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c-1"}, &claim))
	if claim.Labels[v1alpha1.LabelCluster] != "c" || claim.Labels[v1alpha1.LabelInstance] != "c-1" {
		t.Errorf("the label was not put back: it has %v", claim.Labels)
	}
}

// A label that was changed is as little a deletion as one that was taken off: the caches still have the claim.
func TestAClaimWhoseLabelWasChangedIsNotTakenForDeleted(t *testing.T) {
	c := aCluster()
	c.Status.InstanceNames = []string{"c-1", "c-2"}
	changed := aVolume("c-2", "v-2")
	changed.Labels = map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: "c-1"}
	changed.Annotations = map[string]string{v1alpha1.AnnotationServerID: "77"}
	api := newAPI(t, c, aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2"), changed)
	r := newTestReconciler(t, api, api)

	objs, err := r.observer.read(t.Context(), c)
	must(t, err)
	if objs.Volumes["c-2"] == nil || len(objs.ForeignVolumes) > 0 {
		t.Errorf("the claim c-2 is taken for deleted; others' are %v", objs.ForeignVolumes)
	}
	if o := anActor(api).podOptions(t.Context(), c, "c-2", 2); o.ServerID != 77 {
		t.Errorf("its Pod would be another one, with the server_id %d", o.ServerID)
	}

	must(t, r.prerequisites.claim(t.Context(), c, "c-2"))
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(changed), changed))
	if changed.Labels[v1alpha1.LabelInstance] != "c-2" {
		t.Errorf("the label was not put back: it has %v", changed.Labels)
	}
}

// Without its label the caches do not have the Pod, and no Service leads to it.
func TestAPodThatLostItsLabelGetsItBack(t *testing.T) {
	c := aCluster()
	unlabelled := aPod("c-1", "first", "n1")
	unlabelled.Labels = map[string]string{"theirs": "stays"}
	api, cached := newAPI(t, c, unlabelled), newFake(t).Build()
	r := newTestReconciler(t, cached, api)
	r.prerequisites.applier.client = writesTo{cached, api}

	must(t, r.prerequisites.pod(t.Context(), c, "c-1"))
	must(t, api.Get(t.Context(), client.ObjectKeyFromObject(unlabelled), unlabelled))
	want := map[string]string{"theirs": "stays", v1alpha1.LabelCluster: "c", v1alpha1.LabelInstance: "c-1"}
	if !maps.Equal(unlabelled.Labels, want) {
		t.Errorf("the Pod has the labels %v, want %v", unlabelled.Labels, want)
	}
}

// writesTo reads from a cache, and patches at the API server.
type writesTo struct {
	client.Client
	server client.Client
}

func (w writesTo) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return w.server.Patch(ctx, obj, patch, opts...)
}
