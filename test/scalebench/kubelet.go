package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/resources"
)

// sideBySide is how many objects are seen to at a time.
const sideBySide = 32

// play plays what a Kubernetes does beside its API server: volumes are bound, Pods are
// scheduled and run. It hands Clusters to their instances.
func (f *fleet) play(ctx context.Context) error {
	work := make(chan func() error, 1<<16)
	for range sideBySide {
		go func() {
			for do := range work {
				if err := do(); err != nil && ctx.Err() == nil && !isPast(err) {
					fmt.Fprintln(os.Stderr, "scalebench:", err)
				}
			}
		}()
	}
	seen := func(obj any) {
		switch obj := obj.(type) {
		case *v1alpha1.Cluster:
			f.sees(obj)
		case *corev1.Service:
			f.routes(obj)
		case *corev1.PersistentVolumeClaim:
			work <- func() error { return f.bind(ctx, obj) }
		case *corev1.Pod:
			work <- func() error { return f.runPod(ctx, obj) }
		}
	}
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &corev1.Service{},
		&v1alpha1.Cluster{}} {
		informer, err := f.kube.seen.GetInformer(ctx, kind)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen,
			UpdateFunc: func(_, obj any) { seen(obj) }}); err != nil {
			return err
		}
	}
	return nil
}

// isPast reports whether the object was changed or is gone. What is seen next tells of it.
func isPast(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }

func (f *fleet) bind(ctx context.Context, seen *corev1.PersistentVolumeClaim) error {
	if seen.Status.Phase == corev1.ClaimBound || seen.DeletionTimestamp != nil {
		return nil
	}
	claim := seen.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	return f.kube.live.Status().Update(ctx, claim)
}

// runPod does with a Pod what a scheduler and a kubelet do.
func (f *fleet) runPod(ctx context.Context, seen *corev1.Pod) error {
	if seen.Labels[v1alpha1.LabelCluster] == "" {
		return nil
	}
	switch in := f.of(seen); {
	case seen.DeletionTimestamp != nil:
		now := int64(0)
		return f.kube.live.Delete(ctx, seen, &client.DeleteOptions{GracePeriodSeconds: &now})
	case seen.Spec.NodeName == "":
		to := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: nodeFor(seen)}}
		return f.kube.live.SubResource("binding").Create(ctx, seen.DeepCopy(), to)
	case seen.Status.Phase != corev1.PodRunning:
		in.runsIn(seen)
		pod := seen.DeepCopy()
		run(pod, in.address)
		return f.kube.live.Status().Update(ctx, pod)
	}
	return nil
}

// nodeFor spreads a cluster's instances over all nodes, and the first ones of all clusters.
func nodeFor(pod *corev1.Pod) string {
	cluster := pod.Labels[v1alpha1.LabelCluster]
	n, _ := resources.Ordinal(cluster, pod.Name)
	h := fnv.New32a()
	_, _ = h.Write([]byte(cluster))
	return nodes[(int(h.Sum32()%3)+n)%len(nodes)]
}

// run is what a kubelet reports of a Pod that runs and is ready.
func run(pod *corev1.Pod, address string) {
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: layout.Container, Ready: true,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}}}
}
