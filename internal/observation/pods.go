package observation

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/resources"
)

// Wanted is what tells a Pod that would be built now from one that is out of date.
type Wanted struct {
	Made resources.Made
	// Installer is the image that the manager is copied from. InPlace: one from another
	// is replaced without the Pod, and so is not restarted one that another release built otherwise
	// from the same.
	Installer string
	InPlace   bool
	// MadeWith is one whose mysqld is from another image.
	MadeWith func(image string) resources.Made
}

func (w Wanted) isMade(now, as resources.Made) bool {
	return as.Spec == now.Spec || w.InPlace && as.SameInputs(now)
}

// PodFacts turns a Pod into facts; a nil Pod is the fact that there is none.
func PodFacts(pod *corev1.Pod, wanted Wanted) core.Pod {
	if pod == nil {
		return core.Pod{}
	}
	oldImage := resources.Installer(pod) != wanted.Installer
	facts := core.Pod{
		Exists: true, UID: string(pod.UID), Node: pod.Spec.NodeName,
		Awaited: pod.Annotations[v1alpha1.AnnotationAwaited], Address: pod.Status.PodIP,
		Ready: IsReady(pod), Terminating: pod.DeletionTimestamp != nil,
		Terminated:   HasEnded(pod),
		Rejected:     isRejected(pod),
		Image:        mainImage(pod),
		OldImage:     oldImage,
		NeverStarted: !isRejected(pod),
		Role:         pod.Labels[v1alpha1.LabelRole],
		Routable:     pod.Labels[v1alpha1.LabelRoutable] == "true",
	}
	if !oldImage || wanted.InPlace {
		as := resources.MadeAs(pod)
		facts.Current = wanted.isMade(wanted.Made, as)
		facts.CurrentButImage = facts.Current ||
			wanted.MadeWith != nil && wanted.isMade(wanted.MadeWith(facts.Image), as)
	}
	if grace := pod.DeletionGracePeriodSeconds; facts.Terminating && grace != nil {
		facts.Grace = time.Duration(*grace) * time.Second
	}
	facts.DemoteRequested = isAsked(pod.Annotations, v1alpha1.AnnotationDemote)
	facts.FencingRequested = isAsked(pod.Annotations, v1alpha1.AnnotationFencing)
	if s := mainStatus(pod); s != nil && (s.State.Running != nil || s.State.Terminated != nil || s.RestartCount > 0) {
		facts.NeverStarted = false
	}
	facts.Waiting = Waiting(pod)
	return facts
}

// IsReady reports whether the Pod's condition Ready is true. A Pod without that condition is not
// ready.
func IsReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// HasEnded reports whether the kubelet said that the Pod is over and that its main container has
// ended.
//
// A container that ended is not enough, whether or not the Pod is being deleted: the kubelet may
// have started it again before it learned of the deletion. Once all of a deleted Pod's containers
// have ended, it says so by the phase, in the same report. The phase is not enough either: a
// kubelet that starts again and does not admit a Pod any more calls it failed before it kills its
// containers, without a word about them.
func HasEnded(pod *corev1.Pod) bool {
	s := mainStatus(pod)
	return isOver(pod) && s != nil && s.State.Terminated != nil
}

// isOver reports whether the Pod's phase is failed or succeeded: its kubelet does not run it any
// more, or somebody else wrote so.
func isOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// isRejected reports whether the Pod is over and it is not known what became of its main
// container. A Pod whose container is said to run does not count, for then somebody else than the
// kubelet called it over.
func isRejected(pod *corev1.Pod) bool {
	s := mainStatus(pod)
	return isOver(pod) && !HasEnded(pod) && (s == nil || s.State.Running == nil)
}

// mainImage is the image that mysqld of the Pod is from.
func mainImage(pod *corev1.Pod) string {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == layout.Container {
			return c.Image
		}
	}
	return ""
}

func mainStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == layout.Container {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

const correctImage = "correct IMAGE, or spec.imagePullSecrets of the Cluster if the registry wants a login"

// advice by the kubelet's reason for not running a container. IMAGE stands for where its image is
// named.
var advice = map[string]string{
	"ErrImagePull":               correctImage,
	"ImagePullBackOff":           correctImage,
	"ErrImageNeverPull":          "load the image on the node, or change spec.imagePullPolicy",
	"InvalidImageName":           "correct IMAGE",
	"CreateContainerConfigError": "see kubectl describe pod",
	"CreateContainerError":       "see kubectl describe pod",
	"RunContainerError":          "see kubectl describe pod",
	"CrashLoopBackOff":           "see kubectl logs of the Pod",
}

// imageOf says where the image of a container is named: mysqld's by the Cluster, that of all
// others, which run the operator's image, by the operator.
func imageOf(container string) string {
	if container == layout.Container {
		return "spec.imageName"
	}
	return "the operator's image (--operator-image), which each namespace with a Cluster pulls"
}

// Waiting tells why a Pod does not run, in the kubelet's or the scheduler's words
// and with what to do; nil when it runs or is merely starting. An instance runs when its own
// container does, whatever becomes of containers that others injected.
func Waiting(pod *corev1.Pod) *core.Problem {
	if main := mainStatus(pod); main != nil && main.State.Running != nil {
		return nil
	}
	all := append(append([]corev1.ContainerStatus{}, pod.Status.InitContainerStatuses...),
		pod.Status.ContainerStatuses...)
	for _, s := range all {
		if w := s.State.Waiting; w != nil && advice[w.Reason] != "" {
			what := strings.ReplaceAll(advice[w.Reason], "IMAGE", imageOf(s.Name))
			return &core.Problem{Reason: core.Reason(w.Reason), Message: fmt.Sprintf("image %s: %s; %s", s.Image,
				w.Message, what)}
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse &&
			c.Reason == corev1.PodReasonUnschedulable {
			return &core.Problem{Reason: core.Reason(c.Reason), Message: c.Message}
		}
	}
	return nil
}

// isAsked reports whether the annotation is there and does not say that it is not meant ("off",
// "false").
func isAsked(annotations map[string]string, key string) bool {
	value, is := annotations[key]
	return is && value != "off" && value != "false"
}
