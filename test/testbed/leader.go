package testbed

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/observation"
)

// Leader is the operator's Pod that leads and is at work: it renews its lease.
func (b *Bed) Leader(ctx context.Context) (*corev1.Pod, error) {
	var lease coordination.Lease
	first := ""
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			name := types.NamespacedName{Namespace: OperatorNamespace, Name: "cnmsql-operator"}
			err := b.Client.Get(ctx, name, &lease)
			if err != nil || first == "" {
				first = lease.ResourceVersion
				return false, nil
			}
			return lease.ResourceVersion != first && lease.Spec.HolderIdentity != nil &&
				*lease.Spec.HolderIdentity != "", nil
		})
	if err != nil {
		return nil, fmt.Errorf("no operator leads: %w", err)
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	var pod corev1.Pod
	return &pod, b.Client.Get(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: name}, &pod)
}

// Standby is another Pod of the operator, which is ready and does not lead.
func (b *Bed) Standby(ctx context.Context) (*corev1.Pod, error) {
	leader, err := b.Leader(ctx)
	if err != nil {
		return nil, err
	}
	var standby *corev1.Pod
	look := func(ctx context.Context) (bool, error) {
		var pods corev1.PodList
		if err := b.Client.List(ctx, &pods, client.InNamespace(OperatorNamespace)); err != nil {
			return false, nil
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Name != leader.Name && observation.IsReady(p) {
				standby = p
			}
		}
		return standby != nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, look); err != nil {
		return nil, fmt.Errorf("no operator stands by: %w", err)
	}
	return standby, nil
}

// AwaitLeader waits until the Pod of the operator that leads is there and ready: one that was
// killed leads until its lease has run out.
func (b *Bed) AwaitLeader(ctx context.Context) error {
	leads := func(ctx context.Context) (bool, error) {
		var lease coordination.Lease
		var pod corev1.Pod
		err := b.Client.Get(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: "cnmsql-operator"}, &lease)
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, nil
		}
		name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
		err = b.Client.Get(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: name}, &pod)
		return err == nil && observation.IsReady(&pod), nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, leads); err != nil {
		return fmt.Errorf("no operator that leads is ready: %w", err)
	}
	return nil
}
