//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// copiedPodIsNoInstance: somebody makes a Pod from the primary's manifest, for a look at
// its image. The API server refuses it with the labels of an instance; and where that
// policy is missing, such a Pod ends without anybody taking it for the primary's end.
func (w *world) copiedPodIsNoInstance() {
	epoch, primary := w.cluster().Status.PrimaryEpoch, w.primary()
	copied := w.copyOf(primary)
	err := bed.Client.Create(w.ctx, copied.DeepCopy())
	if err == nil || !strings.Contains(err.Error(), "cnmsql-pod-labels") ||
		!strings.Contains(err.Error(), "is not an instance of Cluster "+w.key.Name) {
		w.t.Fatalf("a copy of an instance is not refused as it should be: %v", err)
	}
	w.enforce("Warn")
	w.t.Cleanup(func() { w.enforce("Deny") })
	w.eventually("the copy is accepted without the policy", func() bool {
		return bed.Client.Create(w.ctx, copied) == nil
	})
	w.eventually("the copy has ended", func() bool {
		return bed.Client.Get(w.ctx, client.ObjectKeyFromObject(copied), copied) == nil &&
			(copied.Status.Phase == corev1.PodSucceeded || copied.Status.Phase == corev1.PodFailed)
	})
	w.eventSays("ForeignPod")
	w.troubled("the Pod " + copied.Name + " carries the labels of an instance")
	<-time.After(5 * time.Second)
	if c := w.cluster(); c.Status.PrimaryEpoch != epoch || c.Status.CurrentPrimary != primary ||
		c.Status.Diagnosis != "PrimaryHealthy" {
		w.t.Errorf("a copy of the primary's Pod ended, and %s in epoch %d is %s in epoch %d: %s", primary, epoch,
			c.Status.CurrentPrimary, c.Status.PrimaryEpoch, c.Status.PhaseReason)
	}
	w.kubectl("-n", w.key.Namespace, "delete", "pod", copied.Name, "--now")
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return !strings.Contains(c.Status.PhaseReason, copied.Name)
	})
}

// enforce says what becomes of a Pod that carries an instance's labels.
func (w *world) enforce(action string) {
	_, err := bed.Kubectl(context.Background(), nil, "patch", "validatingadmissionpolicybinding", "cnmsql-pod-labels",
		"--type=merge", "-p", `{"spec":{"validationActions":["`+action+`"]}}`)
	if err != nil {
		w.t.Errorf("the policy is not set to %s: %v", action, err)
	}
}

// copyOf is a Pod with all that tells an instance's Pod, but its name, that ends at once.
func (w *world) copyOf(instance string) *corev1.Pod {
	from := w.pod(instance)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: "a-copy", Labels: from.Labels,
			Annotations: from.Annotations, OwnerReferences: from.OwnerReferences},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, SecurityContext: from.Spec.SecurityContext,
			Containers: []corev1.Container{{
				Name: from.Spec.Containers[0].Name, Image: from.Spec.Containers[0].Image, Command: []string{"mysqld",
					"--version"}, SecurityContext: from.Spec.Containers[0].SecurityContext}}},
	}
}

// eventually waits for what comes about within a minute.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 200*time.Millisecond, time.Minute, true, func(context.Context) (bool,
		error) {
		return is(), nil
	})
	if err != nil {
		w.t.Fatalf("it did not come about that %s", what)
	}
}
