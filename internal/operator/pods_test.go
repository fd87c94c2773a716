package operator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/internal/core"
)

func TestOnlyAPodThatIsOverHasEnded(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	for name, c := range map[string]struct {
		phase    corev1.PodPhase
		state    corev1.ContainerState
		deleting bool
		want     bool
	}{
		"it runs": {corev1.PodRunning, running, false, false},
		"its container ended, and may be started again":                            {corev1.PodRunning, ended, false, false},
		"its container ended before the deletion, and may have been started again": {corev1.PodRunning, ended, true, false},
		"all has ended":      {corev1.PodFailed, ended, true, true},
		"all has ended well": {corev1.PodSucceeded, ended, false, true},
		"somebody called it over, and not the kubelet": {corev1.PodFailed, running, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod("c-1", "first", "n1")
			pod.Status.Phase, pod.Status.ContainerStatuses[0].State = c.phase, c.state
			if c.deleting {
				pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			if got := hasEnded(pod); got != c.want {
				t.Errorf("hasEnded: %t", got)
			}
		})
	}
}

// follows is what c-2 says after its primary is lost.
func follows() core.Report {
	return core.Report{Instance: "c-2", PodUID: "second", Node: "n2", State: core.Running, Data: core.DataPopulated, VolumeLocked: true,
		Server: &core.Server{SuperReadOnly: true, Replication: &core.Replication{SourceHost: "c-1", SQLRunning: true}}}
}

// TestAnEndThatTheCacheTellsIsConfirmed: the first Pod of the primary is known to
// have ended and the cache has no other. Whether there is one by now that may go on
// in the same epoch, on the same node, only the API server knows.
func TestAnEndThatTheCacheTellsIsConfirmed(t *testing.T) {
	second := aPod("c-2", "second", "n2")
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	for name, c := range map[string]struct {
		live    *corev1.Pod
		granted bool
	}{
		"there is none":                 {nil, true},
		"there is one on the same node": {aPod("c-1", "next", "n1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := newAPI(t, second.DeepCopy(), node.DeepCopy()), newAPI(t, second.DeepCopy(), node.DeepCopy())
			if c.live != nil {
				must(t, live.Create(t.Context(), c.live))
			}
			r, cluster := newTestReconciler(t, cached, live), aCluster()
			over := aPod("c-1", "first", "n1")
			over.Status.Phase, over.Status.ContainerStatuses[0].State = corev1.PodFailed, corev1.ContainerState{}
			r.observer.ended.note(over)
			for range 3 {
				<-time.After(2 * time.Millisecond)
				r.says("c-2", follows())
				_, plan, err := r.decide(t.Context(), cluster, nil)
				must(t, err)
				writeStatus(&cluster.Status, plan.Status)
			}
			if granted := cluster.Status.Promotion.Epoch > 1; granted != c.granted {
				t.Errorf("granted: %t; %s: %s", granted, cluster.Status.Phase, cluster.Status.PhaseReason)
			}
		})
	}
}
