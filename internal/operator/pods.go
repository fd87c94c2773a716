package operator

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// endedPods remembers which Pods have ended. They are kept by the Cluster that controls
// them: a Pod of somebody else pushes none of them out.
type endedPods struct {
	mu   sync.Mutex
	uids map[podKey]core.EndedPods
}

// podKey names the Pods of one instance of a Cluster.
type podKey struct {
	cluster types.NamespacedName
	uid     types.UID // of the Cluster: another of its name has other Pods
	name    string
}

func podKeyOf(c *v1alpha1.Cluster, instance string) podKey {
	return podKey{client.ObjectKeyFromObject(c), c.UID, instance}
}

// podKeyBy is that of a Pod by its owner; false if that is not the Cluster which the Pod wakes, for
// nobody else would forget it.
func podKeyBy(pod *corev1.Pod) (podKey, bool) {
	by, wakes := metav1.GetControllerOfNoCopy(pod), clusterOf(pod).NamespacedName
	if by == nil || by.Name != wakes.Name {
		return podKey{}, false
	}
	return podKey{wakes, by.UID, pod.Name}, true
}

// ofFormer tells what is of another Cluster of that name than the one of that UID; "" is none.
func ofFormer[V any](cluster types.NamespacedName, uid types.UID) func(podKey, V) bool {
	return func(key podKey, _ V) bool { return key.cluster == cluster && key.uid != uid }
}

func newEndedPods() *endedPods {
	return &endedPods{uids: map[podKey]core.EndedPods{}}
}

func (e *endedPods) note(pod *corev1.Pod) {
	key, is := podKeyBy(pod)
	if !is || !observation.HasEnded(pod) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.uids[key] = e.uids[key].With(string(pod.UID))
}

func (e *endedPods) of(c *v1alpha1.Cluster, name string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.uids[podKeyOf(c, name)])
}

// keepOnly forgets the Pods of all Clusters of that name but the one of that UID.
func (e *endedPods) keepOnly(cluster types.NamespacedName, uid types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.uids, ofFormer[core.EndedPods](cluster, uid))
}
