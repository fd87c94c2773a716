package crd

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/internal/operator"
	"cnmsql.co/internal/resources"
)

// TestAnotherApplicationsClaimIsLeftAlone: a StatefulSet redis has made the claim
// data-redis-1, and somebody makes a Cluster data-redis. The operator runs for real here;
// nothing runs its Pods.
func TestAnotherApplicationsClaimIsLeftAlone(t *testing.T) {
	installed(t)
	c, ctx := api(t), context.Background()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-redis-1", Namespace: "default"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	judge(t, c.Create(ctx, claim), "")
	t.Cleanup(func() { _ = c.Delete(ctx, claim) })
	startOperator(t)
	u := typed(t, "data-redis")
	await(t, "the Cluster says that the name is taken", func() bool {
		judge(t, c.Get(ctx, client.ObjectKeyFromObject(u), u), "")
		return u.Status.Phase == "Blocked" && strings.Contains(u.Status.PhaseReason,
			"PersistentVolumeClaim data-redis-1 exists and does not belong to this Cluster")
	})
	await(t, "there is an event", func() bool {
		var events eventsv1.EventList
		judge(t, c.List(ctx, &events, client.InNamespace("default")), "")
		for _, e := range events.Items {
			if e.Reason == "NameTaken" && e.Regarding.Name == "data-redis" {
				return true
			}
		}
		return false
	})
	var pods corev1.PodList
	judge(t, c.List(ctx, &pods, client.InNamespace("default")), "")
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Name, "data-redis-") {
			t.Errorf("the Pod %s was made, and mounts another's claim", p.Name)
		}
	}
	uid := claim.UID
	judge(t, c.Get(ctx, client.ObjectKeyFromObject(claim), claim), "")
	if claim.UID != uid || claim.DeletionTimestamp != nil || len(claim.Labels) > 0 || len(claim.OwnerReferences) > 0 {
		t.Errorf("the claim is touched: %+v", claim.ObjectMeta)
	}
	// Its owner takes it away, and the Cluster goes on by itself.
	judge(t, c.Patch(ctx, claim, merge(`{"metadata":{"finalizers":null}}`)), "")
	judge(t, client.IgnoreNotFound(c.Delete(ctx, claim)), "")
	mine := &corev1.PersistentVolumeClaim{}
	await(t, "the Cluster has a claim of its own", func() bool {
		return c.Get(ctx, client.ObjectKeyFromObject(claim), mine) == nil && resources.Belongs(u, mine)
	})
	await(t, "and a Pod", func() bool {
		pod := &corev1.Pod{}
		return c.Get(ctx, client.ObjectKeyFromObject(claim), pod) == nil && metav1.IsControlledBy(pod, u)
	})
}

// startOperator runs the operator against the API server until the test ends.
func startOperator(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- operator.Run(ctx, server, operator.Options{MetricsAddress: "0", ProbeAddress: "0",
			Namespace: "cnmsql-system", OperatorImage: "cnmsql", DefaultImage: "mysql", Workers: 2})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-over; err != nil {
			t.Errorf("the operator ended: %v", err)
		}
	})
}

// await looks again until something has come about.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("it did not come about in a minute that %s", what)
}
