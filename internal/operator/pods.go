package operator

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/internal/observation"
)

// endedKept is how many ended Pods are remembered for an instance.
const endedKept = 8

// endedPods remembers which Pods the kubelet reported terminated before they were
// deleted: the report is a proof that the deleted object can no longer give.
type endedPods struct {
	mu   sync.Mutex
	uids map[types.NamespacedName][]string
}

func newEndedPods() *endedPods {
	return &endedPods{uids: map[types.NamespacedName][]string{}}
}

func (e *endedPods) note(pod *corev1.Pod) {
	if !observation.HasEnded(pod) {
		return
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, uid := range e.uids[key] {
		if uid == string(pod.UID) {
			return
		}
	}
	kept := append(e.uids[key], string(pod.UID))
	e.uids[key] = kept[max(0, len(kept)-endedKept):]
}

func (e *endedPods) of(namespace, name string) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.uids[types.NamespacedName{Namespace: namespace, Name: name}]...)
}
