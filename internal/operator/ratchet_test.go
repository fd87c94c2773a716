package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// TestARealAPIServerTakesTheStatusOfWhatAnEarlierSchemaAllowed: a label that is refused by now stands
// in a Cluster that was made before, and a failover has to be written down all the same.
func TestARealAPIServerTakesTheStatusOfWhatAnEarlierSchemaAllowed(t *testing.T) {
	server := realAPIServer(t)
	c := aNewCluster()
	c.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "old"}
	c.Spec.InheritedMetadata = &v1alpha1.InheritedMetadata{
		Labels: map[string]v1alpha1.LabelValue{"team": "data platform"}}
	labels := withoutRules(t, server)
	awaitTaken(t, func() bool { return server.Create(t.Context(), c) == nil })
	withLabels(t, server, labels)
	awaitTaken(t, func() bool {
		other := aNewCluster()
		other.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "other"}
		other.Spec.InheritedMetadata = c.Spec.InheritedMetadata
		return server.Create(t.Context(), other, client.DryRunAll) != nil
	})
	c.Status.Promotion = &v1alpha1.PromotionStatus{Instance: "old-2", Epoch: 7}
	must(t, server.Status().Update(t.Context(), c))
	c.Spec.Instances++
	must(t, server.Update(t.Context(), c))
}

func awaitTaken(t *testing.T, is func() bool) {
	t.Helper()
	for range 100 {
		if is() {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal("the schema does not change")
}

var labelsOf = []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", "inheritedMetadata",
	"properties", "labels", "additionalProperties"}

// withoutRules takes the rules on labels out of the schema, and returns them.
func withoutRules(t *testing.T, server client.Client) map[string]any {
	t.Helper()
	return withLabels(t, server, map[string]any{"type": "string"})
}

func withLabels(t *testing.T, server client.Client, labels map[string]any) map[string]any {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"})
	must(t, server.Get(t.Context(), client.ObjectKey{Name: "clusters.mysql.cnmsql.co"}, crd))
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	version := versions[0].(map[string]any)
	before, _, _ := unstructured.NestedMap(version, labelsOf...)
	must(t, unstructured.SetNestedMap(version, labels, labelsOf...))
	must(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	must(t, server.Update(t.Context(), crd))
	return before
}
