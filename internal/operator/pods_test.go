package operator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

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
				observation.WriteStatus(&cluster.Status, plan.Status)
			}
			if granted := cluster.Status.Promotion.Epoch > 1; granted != c.granted {
				t.Errorf("granted: %t; %s: %s", granted, cluster.Status.Phase, cluster.Status.PhaseReason)
			}
		})
	}
}
