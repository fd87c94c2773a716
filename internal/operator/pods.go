package operator

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
)

// endedKept is how many ended Pods are remembered for an instance.
const endedKept = 8

// endedPods remembers which Pods the kubelet reported terminated before they were
// deleted: the report is a proof that the deleted object can no longer give. They are
// kept by the Cluster that controls them: a Pod of somebody else pushes none of them out.
type endedPods struct {
	mu   sync.Mutex
	uids map[endedKey][]string
}

// endedKey names the Pods of one instance of a Cluster.
type endedKey struct {
	cluster types.UID
	name    string
}

func newEndedPods() *endedPods {
	return &endedPods{uids: map[endedKey][]string{}}
}

func (e *endedPods) note(pod *corev1.Pod) {
	by := metav1.GetControllerOfNoCopy(pod)
	if by == nil || !observation.HasEnded(pod) {
		return
	}
	key, uid := endedKey{by.UID, pod.Name}, string(pod.UID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.uids[key], uid) {
		return
	}
	kept := append(e.uids[key], uid)
	e.uids[key] = kept[max(0, len(kept)-endedKept):]
}

func (e *endedPods) of(c *v1alpha1.Cluster, name string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.uids[endedKey{c.UID, name}])
}

func (e *endedPods) forget(cluster types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.uids, func(key endedKey, _ []string) bool { return key.cluster == cluster })
}
