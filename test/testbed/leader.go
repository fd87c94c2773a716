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
)

// Leader is the operator's Pod that leads and is at work: it renews its lease.
func (b *Bed) Leader(ctx context.Context) (*corev1.Pod, error) {
	var lease coordination.Lease
	first := ""
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := b.Client.Get(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: "cnmsql-operator"}, &lease)
		if err != nil || first == "" {
			first = lease.ResourceVersion
			return false, nil
		}
		return lease.ResourceVersion != first && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})
	if err != nil {
		return nil, fmt.Errorf("no operator leads: %w", err)
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	var pod corev1.Pod
	return &pod, b.Client.Get(ctx, types.NamespacedName{Namespace: OperatorNamespace, Name: name}, &pod)
}
