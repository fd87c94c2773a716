package operator

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/observation"
)

// follows is what c-2 says after its primary is lost.
func follows() core.Report {
	return core.Report{Instance: "c-2", PodUID: "second", Node: "n2", State: core.Running,
		Data: core.DataPopulated, VolumeLocked: true,
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
			claim := aVolume("c-2", "volume-2")
			claim.Labels = second.Labels
			cached, live := newAPI(t, second.DeepCopy(), node.DeepCopy(), claim.DeepCopy()),
				newAPI(t, second.DeepCopy(), node.DeepCopy(), claim.DeepCopy())
			if c.live != nil {
				must(t, live.Create(t.Context(), c.live))
			}
			r, cluster := newTestReconciler(t, cached, live), aCluster()
			over := aPod("c-1", "first", "n1")
			over.Status.Phase, over.Status.ContainerStatuses[0].State = corev1.PodFailed,
				corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
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

// TestACopyOfThePrimarysPodEndsNothing: a Pod with the labels, the annotations and the
// owner of the primary's, that has ended, is no reason to replace a primary that is healthy;
// nor does it say anything for it, or push out what is known of its real Pods.
func TestACopyOfThePrimarysPodEndsNothing(t *testing.T) {
	first, second := aPod("c-1", "first", "n1"), aPod("c-2", "second", "n2")
	for _, name := range []string{"a-copy", "z-copy"} {
		copied := aPod("c-1", name, "n1")
		copied.Name = name
		copied.Status.Phase, copied.Status.ContainerStatuses[0].State = corev1.PodFailed,
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		a := newAPI(t, first.DeepCopy(), second.DeepCopy(), copied,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		r, cluster := newTestReconciler(t, a, a), aCluster()
		r.says("c-1", core.Report{Instance: "c-1", PodUID: "first", Node: "n1", State: core.Running,
			Data: core.DataPopulated, VolumeLocked: true, WritableEpoch: 1, Server: &core.Server{}})
		r.says("c-2", follows())
		o, plan, err := r.decide(t.Context(), cluster, nil)
		must(t, err)
		if plan.Status.Operation != nil || plan.Status.Diagnosis != core.PrimaryHealthy ||
			len(o.Cluster.ForeignPods) != 1 {
			t.Errorf("%s: %s, %s: %s", name, plan.Status.Phase, plan.Status.Diagnosis, plan.Status.Reason)
		}
		if !slices.ContainsFunc(plan.Events, func(e core.Event) bool { return e.Reason == core.ReasonForeignPod }) {
			t.Errorf("%s: nobody is told: %v", name, plan.Events)
		}
	}
}

func TestPodsOfOthersPushNoEndedPodOut(t *testing.T) {
	ended, c := newEndedPods(), aCluster()
	over := func(uid string, owner types.UID) {
		pod := aPod("c-1", uid, "n1")
		pod.Status.Phase, pod.Status.ContainerStatuses[0].State = corev1.PodFailed,
			corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
		pod.OwnerReferences[0].UID = owner
		ended.note(pod)
	}
	over("mine", c.UID)
	for i := range 2 * core.EndedKept {
		over(fmt.Sprint("other-", i), "another")
	}
	if got := ended.of(c, "c-1"); !slices.Equal(got, []string{"mine"}) {
		t.Errorf("ended are %v", got)
	}
	ended.keepOnly(clusterKey, "")
	if got := ended.of(c, "c-1"); len(got) != 0 {
		t.Errorf("a Cluster that is gone leaves %v", got)
	}
}

// A Cluster goes, or another of its name is there, and then a Pod of the former one ends: its
// event wakes the operator, which has forgotten the Cluster already.
func TestPodsThatEndAfterTheirClusterAreForgotten(t *testing.T) {
	for name, next := range map[string]*v1alpha1.Cluster{"nothing": nil, "another Cluster": aNewCluster()} {
		t.Run(name, func(t *testing.T) {
			c := aCluster()
			api := newFake(t).WithStatusSubresource(c).WithObjects(c).Build()
			r := operatorOf(t, api)
			look := func() {
				_, err := r.cluster(t.Context(), clusterKey)
				must(t, err)
			}
			end := func(owner types.UID) {
				pod := aPod("c-1", "of-"+string(owner), "n1")
				pod.OwnerReferences[0].UID = owner
				pod.Status.Phase, pod.Status.ContainerStatuses[0].State = corev1.PodFailed,
					corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
				r.observer.ended.note(pod)
				key, _ := podKeyBy(pod)
				r.observer.unmade.note(key, "awaited-1")
			}
			end(c.UID) // before it is looked at for the first time
			look()
			if got := r.observer.ended.of(c, "c-1"); len(got) != 1 {
				t.Errorf("of a Cluster that is there %v are known", got)
			}
			must(t, api.Delete(t.Context(), c))
			if next == nil {
				look()
			} else {
				next.UID = "next"
				must(t, api.Create(t.Context(), next))
				end(next.UID)
			}
			end(c.UID)
			look() // woken by the Pod
			want := 0
			if next != nil {
				want = 1
			}
			ended, unmade := r.observer.ended.uids, r.observer.unmade.names
			if len(ended) != want || len(unmade) != want {
				t.Errorf("remembered are %v, %v", ended, unmade)
			}
		})
	}
}
