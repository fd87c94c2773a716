package backups

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/observation"
)

// jobProblem is why the Pod of a Job does not run, and since when.
type jobProblem struct {
	message string
	since   time.Time
}

// eventsOf selects the events of one object; the API server keeps this index.
const eventsOf = "involvedObject.uid"

// notMade is the reason of the Job controller's event when its Pod was refused, and notMadeFor how
// long that is believed: it tries again, at least so often.
const (
	notMade    = "FailedCreate"
	notMadeFor = 15 * time.Minute
)

// jobProblemOf looks why a Job that has not ended has no Pod that runs; nil when it has one, or
// when that is merely starting.
func jobProblemOf(ctx context.Context, live client.Reader, job *batchv1.Job, now time.Time) (*jobProblem, error) {
	if ready := job.Status.Ready; ready != nil && *ready > 0 {
		return nil, nil
	}
	pods, err := podsOf(ctx, live, job)
	if err != nil {
		return nil, err
	}
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodPending {
			continue
		}
		if why := observation.Waiting(pod); why != nil {
			message := fmt.Sprintf("the Pod %s does not run: %s", pod.Name, why)
			return &jobProblem{message, pod.CreationTimestamp.Time}, nil
		}
		return nil, nil
	}
	if len(pods) > 0 || job.Status.Active > 0 {
		return nil, nil // the next is made when the pause after a failure is over
	}
	return notMadeOf(ctx, live, job, now)
}

// podsOf are the Pods of a Job that are still there.
func podsOf(ctx context.Context, live client.Reader, job *batchv1.Job) ([]corev1.Pod, error) {
	var pods corev1.PodList
	its := client.MatchingLabels{batchv1.JobNameLabel: job.Name}
	err := live.List(ctx, &pods, client.InNamespace(job.Namespace), its)
	return pods.Items, err
}

// notMadeOf is the Job controller's word that it could not make a Pod, as where a quota or an
// admission policy of the namespace refuses it; nil when it has said nothing.
func notMadeOf(ctx context.Context, live client.Reader, job *batchv1.Job, now time.Time) (*jobProblem, error) {
	var all corev1.EventList
	err := live.List(ctx, &all, client.InNamespace(job.Namespace), client.MatchingFields{eventsOf: string(job.UID)})
	if err != nil {
		return nil, err
	}
	var last *corev1.Event
	for i := range all.Items {
		e := &all.Items[i]
		isNew := now.Sub(e.LastTimestamp.Time) < notMadeFor
		if e.Reason == notMade && isNew && (last == nil || e.LastTimestamp.After(last.LastTimestamp.Time)) {
			last = e
		}
	}
	if last == nil {
		return nil, nil
	}
	message := fmt.Sprintf("the Job %s has no Pod, for the namespace does not admit it: %s. Change that, or what the "+
		"Pod asks for by jobTemplate (of the Backup, or of spec.backup)", job.Name, last.Message)
	return &jobProblem{message, last.CreationTimestamp.Time}, nil
}

// isRefused reports whether the API server does not want what was asked for, as it stands. It will
// not want it until somebody changes something.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}
