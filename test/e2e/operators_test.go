//go:build e2e

package e2e

import (
	"context"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/observation"
	"cnmsql.co/test/testbed"
)

// processes are such of this machine, found before something happens: looking for them takes longer than most
// of what the operator does.
type processes struct {
	w    *world
	pids []int
}

// all sends a signal to each of them.
func (p processes) all(sig syscall.Signal) {
	p.w.t.Helper()
	for _, pid := range p.pids {
		if err := syscall.Kill(pid, sig); err != nil {
			p.w.t.Errorf("%v to the operator's process %d: %v", sig, pid, err)
		}
	}
}

// operators are the processes of the operator's Pods that are ready.
func (w *world) operators() processes {
	w.t.Helper()
	p, pods := processes{w: w}, w.operatorPods()
	for i := range pods {
		if pod := &pods[i]; observation.IsReady(pod) && pod.DeletionTimestamp == nil {
			p.pids = append(p.pids, w.operator(pod))
		}
	}
	return p
}

// operatorsStarted tells for each of the operator's Pods how often its container was started again.
func (w *world) operatorsStarted() map[types.UID]int32 {
	w.t.Helper()
	started := map[types.UID]int32{}
	for _, pod := range w.operatorPods() {
		for _, container := range pod.Status.ContainerStatuses {
			started[pod.UID] += container.RestartCount
		}
	}
	return started
}

func (w *world) operatorPods() []corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	if err := bed.Client.List(w.ctx, &pods, client.InNamespace(testbed.OperatorNamespace)); err != nil {
		w.t.Fatal(err)
	}
	return pods.Items
}

// operator is the process of one of the operator's Pods.
func (w *world) operator(pod *corev1.Pod) int {
	w.t.Helper()
	in := &world{t: w.t, ctx: w.ctx, key: types.NamespacedName{Namespace: pod.Namespace}}
	return in.pid(pod.Name, "cnmsql")
}

// killOperator kills all operators, which give nothing back, and their Pods; the Deployment makes new ones. They
// lead when the lease of those that died has run out.
func (w *world) killOperator() {
	w.t.Helper()
	w.operators().all(syscall.SIGKILL)
	w.forgetOperators()
}

// forgetOperators deletes the operators' Pods: in them, who was killed often waits before it is started again.
func (w *world) forgetOperators() {
	w.t.Helper()
	w.kubectl("-n", testbed.OperatorNamespace, "delete", "pod", "--all", "--grace-period=0", "--force", "--wait=false")
}

// killOperatorAfter kills all operators between a wish and the deed: none of them sees the wish.
func (w *world) killOperatorAfter(wish func()) {
	w.t.Helper()
	operators := w.operators()
	operators.all(syscall.SIGSTOP)
	defer func() {
		operators.all(syscall.SIGKILL)
		w.forgetOperators()
	}()
	wish()
}

// leader is the Pod of the leading operator.
func (w *world) leader() *corev1.Pod {
	w.t.Helper()
	pod, err := bed.Leader(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

// leading is the process of the leading operator.
func (w *world) leading() processes {
	w.t.Helper()
	return processes{w, []int{w.operator(w.leader())}}
}

// killLeader kills the leading operator where it is; its container is started again.
func (w *world) killLeader() {
	w.t.Helper()
	w.leading().all(syscall.SIGKILL)
}

// atTheFirst does something at the first status of the Cluster that is as wished. It watches when it returns;
// what comes of it is sent.
func (w *world) atTheFirst(wished func(*v1alpha1.Cluster) bool, do func()) <-chan error {
	watches, done := make(chan struct{}), make(chan error, 1)
	begins := sync.OnceFunc(func() { close(watches) })
	go func() {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		_, err := bed.Until(ctx, w.key, func(c *v1alpha1.Cluster) bool {
			begins()
			return wished(c)
		})
		if err == nil {
			do()
		}
		begins()
		done <- err
	}()
	<-watches
	return done
}
