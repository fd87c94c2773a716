package crd

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func TestAProtectedClusterIsNotDeleted(t *testing.T) {
	c, ctx := api(t), context.Background()
	const refusal = "Cluster precious is protected from deletion. To delete it, first run: " +
		"kubectl annotate cluster precious --namespace default cnmsql.cnmsql.co/deletion-protection-"
	for name, r := range map[string]struct {
		annotations map[string]string
		refused     string
	}{
		"without the annotation": {nil, ""},
		"true":                   {map[string]string{v1alpha1.AnnotationDeletionProtection: "true"}, refusal},
		"any other word":         {map[string]string{v1alpha1.AnnotationDeletionProtection: "enabled"}, refusal},
		"without a value":        {map[string]string{v1alpha1.AnnotationDeletionProtection: ""}, refusal},
		"false":                  {map[string]string{v1alpha1.AnnotationDeletionProtection: "false"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := protected(t, "default", r.annotations)
			judge(t, c.Delete(ctx, u, client.DryRunAll), r.refused)
			all := &unstructured.Unstructured{}
			all.SetGroupVersionKind(u.GroupVersionKind())
			judge(t, c.DeleteAllOf(ctx, all, client.InNamespace("default"),
				client.MatchingFields{"metadata.name": "precious"}, client.DryRunAll), r.refused)
		})
	}
}

// Nothing is kept in a namespace that goes: the protection would only have it stay for ever.
func TestAProtectedClusterGoesWithItsNamespace(t *testing.T) {
	c, ctx := api(t), context.Background()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
	judge(t, c.Create(ctx, ns), "")
	u := protected(t, "leaving", map[string]string{v1alpha1.AnnotationDeletionProtection: "true"})
	judge(t, c.Delete(ctx, u, client.DryRunAll), "protected from deletion")
	judge(t, c.Delete(ctx, ns), "")
	await(t, "the API server sees that the namespace goes", func() bool {
		return c.Delete(ctx, u, client.DryRunAll) == nil
	})
}

// protected makes a Cluster, and takes its annotations off before it is removed.
func protected(t *testing.T, namespace string, annotations map[string]string) *unstructured.Unstructured {
	t.Helper()
	c, ctx := api(t), context.Background()
	u := cluster(t, "precious", "{}")
	u.SetNamespace(namespace)
	u.SetAnnotations(annotations)
	judge(t, c.Create(ctx, u), "")
	t.Cleanup(func() {
		judge(t, c.Patch(ctx, u, merge(`{"metadata":{"annotations":null}}`)), "")
		judge(t, c.Delete(ctx, u), "")
	})
	return u
}
