package operator

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
)

// TestAClusterEndsWithItsNamespace: its Pods are deleted before it, and their primary
// would wait for a successor.
func TestAClusterEndsWithItsNamespace(t *testing.T) {
	for name, c := range map[string]struct{ namespace, pod, ends bool }{
		"nothing is deleted":              {false, false, false},
		"a Pod is":                        {false, true, false},
		"the namespace, and no Pod yet":   {true, false, false},
		"the namespace, and a Pod by now": {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ns, pod, cluster := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns",
				Finalizers: []string{"kubernetes"}}}, aPod("c-1", "first", "n1"), aCluster()
			pod.Finalizers = []string{"test/stays"}
			a := newAPI(t, ns, pod, cluster)
			if c.namespace {
				must(t, a.Delete(t.Context(), ns))
			}
			if c.pod {
				must(t, a.Delete(t.Context(), pod))
			}
			r := newTestReconciler(t, a, a)
			if ends := r.endsWithNamespace(t.Context(), cluster); ends != c.ends {
				t.Errorf("ends: %t", ends)
			}
			err := a.Get(t.Context(), clusterKey, &v1alpha1.Cluster{})
			if gone := apierrors.IsNotFound(err); gone != c.ends {
				t.Errorf("gone: %t (%v)", gone, err)
			}
		})
	}
}
