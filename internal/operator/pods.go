package operator

import (
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
)

// podFacts turns a Pod into facts; a nil Pod is the fact that there is none.
func podFacts(pod *corev1.Pod, wantedHash string) core.Pod {
	if pod == nil {
		return core.Pod{}
	}
	facts := core.Pod{
		Exists: true, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Ready: isReady(pod), Terminating: pod.DeletionTimestamp != nil,
		Terminated:   hasEnded(pod),
		Current:      pod.Annotations[v1alpha1.AnnotationPodSpecHash] == wantedHash,
		NeverStarted: true,
		Role:         pod.Labels[v1alpha1.LabelRole],
		Routable:     pod.Labels[v1alpha1.LabelRoutable] == "true",
	}
	_, facts.DemoteRequested = pod.Annotations[v1alpha1.AnnotationDemote]
	fence, wished := pod.Annotations[v1alpha1.AnnotationFencing]
	facts.FencingRequested = wished && fence != "off" && fence != "false"
	if s := mainStatus(pod); s != nil && (s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0) {
		facts.NeverStarted = false
	}
	facts.Waiting = waiting(pod)
	return facts
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hasEnded: the kubelet reported that the Pod is over. A container that ended is
// not enough, whether or not the Pod is being deleted: the kubelet may have
// started it again before it learned of the deletion. Once all of a deleted Pod's
// containers have ended, it says so by the phase, in the same report.
func hasEnded(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
		return false
	}
	s := mainStatus(pod)
	return s == nil || s.State.Running == nil
}

func mainStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == layout.Container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// advice by the kubelet's reason for not running a container.
var advice = map[string]string{
	"ErrImagePull":               "correct spec.imageName, or spec.imagePullSecrets if the registry wants a login",
	"ImagePullBackOff":           "correct spec.imageName, or spec.imagePullSecrets if the registry wants a login",
	"ErrImageNeverPull":          "load the image on the node, or change spec.imagePullPolicy",
	"InvalidImageName":           "correct spec.imageName",
	"CreateContainerConfigError": "see kubectl describe pod",
	"CreateContainerError":       "see kubectl describe pod",
	"RunContainerError":          "see kubectl describe pod",
	"CrashLoopBackOff":           "see kubectl logs of the Pod",
}

// waiting tells why a Pod does not run, in the kubelet's or the scheduler's words
// and with what to do; nil when it runs or is merely starting.
func waiting(pod *corev1.Pod) *core.Problem {
	all := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...)
	for _, s := range all {
		if w := s.State.Waiting; w != nil && advice[w.Reason] != "" {
			return &core.Problem{Reason: w.Reason, Message: fmt.Sprintf("image %s: %s; %s", s.Image, w.Message, advice[w.Reason])}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &core.Problem{Reason: c.Reason, Message: c.Message}
		}
	}
	return nil
}

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
	if !hasEnded(pod) {
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
