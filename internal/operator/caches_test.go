package operator

import (
	"reflect"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
	"cnmsql.co/internal/resources"
)

// TestWhatTheCachesLeaveOutIsNotRead holds what is concluded from a slim object against what
// is from the whole one.
func TestWhatTheCachesLeaveOutIsNotRead(t *testing.T) {
	c := aCluster()
	pod := resources.Pod(c, "c-1", resources.PodOptions{OperatorImage: "operator:2", DefaultImage: "mysql:9.7"})
	pod.Spec.NodeName = "n1"
	pod.Status = aPod("c-1", "first", "n1").Status
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	wanted := observation.Wanted{Made: resources.Made{Spec: "another"}, Installer: resources.Installer(pod)}
	whole := observation.PodFacts(pod, wanted)
	delete(pod.Annotations, v1alpha1.AnnotationManagerImage) // of a release that had none
	byContainer := observation.PodFacts(pod, wanted)
	kept, err := slim(pod.DeepCopy())
	must(t, err)
	if got := observation.PodFacts(kept.(*corev1.Pod), wanted); !reflect.DeepEqual(got, byContainer) ||
		!reflect.DeepEqual(got, whole) {
		t.Errorf("of the slim Pod is concluded %+v, of the whole one %+v", got, whole)
	}
	if p := kept.(*corev1.Pod); p.Size() > 2*pod.Size()/3 {
		t.Errorf("%d of %d bytes are kept", p.Size(), pod.Size())
	}
	node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true,
		Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService}}},
		Status: corev1.NodeStatus{Images: make([]corev1.ContainerImage, 50)}}
	kept, err = slim(node.DeepCopy())
	must(t, err)
	n := kept.(*corev1.Node)
	if got, want := observation.NodeFacts(n), observation.NodeFacts(node); got != want || len(n.Status.Images) > 0 {
		t.Errorf("of the slim Node is concluded %+v, of the whole one %+v", got, want)
	}
}

// TestTheCachesKeepOnlyWhatIsOfACluster: the operator's memory does not grow with the Secrets and
// Pods of others.
func TestTheCachesKeepOnlyWhatIsOfACluster(t *testing.T) {
	options, err := cacheOptions()
	must(t, err)
	kept := map[reflect.Type]bool{}
	for kind, by := range options.ByObject {
		kept[reflect.TypeOf(kind)] = true
		if by.Label == nil || by.Label.Matches(labels.Set{"app": "another"}) ||
			!by.Label.Matches(labels.Set{v1alpha1.LabelCluster: "db"}) {
			t.Errorf("of each %T the caches keep those with %v", kind, by.Label)
		}
	}
	for _, kind := range slices.Concat(listed, []client.Object{&corev1.Secret{}, &coordination.Lease{},
		&batchv1.Job{}, &corev1.ServiceAccount{}}) {
		if !kept[reflect.TypeOf(kind)] {
			t.Errorf("the caches keep each %T there is", kind)
		}
	}
}
