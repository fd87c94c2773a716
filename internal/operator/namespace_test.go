package operator

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// namespaceReader counts how often a namespace is asked for, and does not answer if it is deaf.
type namespaceReader struct {
	client.Client
	asked int
	deaf  bool
}

func (n *namespaceReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object,
	o ...client.GetOption) error {
	if _, is := obj.(*corev1.Namespace); is {
		if n.asked++; n.deaf {
			return errors.New("no answer")
		}
	}
	return n.Client.Get(ctx, key, obj, o...)
}

// TestAClusterEndsWithItsNamespace: its Pods are deleted before it, and their primary
// would wait for a successor.
func TestAClusterEndsWithItsNamespace(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, pod, deaf bool
		asked                int
		ends                 bool
	}{
		"nothing is deleted":              {},
		"a Pod is":                        {pod: true, asked: 1},
		"the namespace, and no Pod yet":   {namespace: true},
		"the namespace, and a Pod by now": {namespace: true, pod: true, asked: 1, ends: true},
		"nobody tells of the namespace":   {namespace: true, pod: true, deaf: true, asked: 1},
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
			live := &namespaceReader{Client: a, deaf: c.deaf}
			r := newTestReconciler(t, a, live)
			r.actor = anActor(a)
			if ends := r.endsWithNamespace(quietly(t), cluster); ends != c.ends {
				t.Errorf("ends: %t", ends)
			}
			err := a.Get(t.Context(), clusterKey, &v1alpha1.Cluster{})
			if gone := apierrors.IsNotFound(err); gone != c.ends {
				t.Errorf("gone: %t (%v)", gone, err)
			}
			if live.asked != c.asked {
				t.Errorf("the namespace is asked for %d times", live.asked)
			}
		})
	}
}

// TestAClusterThatIsNotDeletedIsLookedAfter holds that an operator which may not delete it goes on, and that
// another Cluster of its name is spared.
func TestAClusterThatIsNotDeletedIsLookedAfter(t *testing.T) {
	ns, pod := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Finalizers: []string{"kubernetes"}}},
		aPod("c-1", "first", "n1")
	pod.Finalizers = []string{"test/stays"}
	a := newAPI(t, ns, pod, aCluster())
	must(t, a.Delete(t.Context(), ns))
	must(t, a.Delete(t.Context(), pod))
	r := newTestReconciler(t, a, a)
	r.actor = anActor(a)
	former := aCluster()
	former.UID = "former"
	r.endsWithNamespace(quietly(t), former)
	must(t, a.Get(t.Context(), clusterKey, &v1alpha1.Cluster{}))
	a.refuseDelete = errors.New("it may not")
	if r.endsWithNamespace(quietly(t), aCluster()) {
		t.Error("it is taken for deleted")
	}
}
