package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func TestPromoteWarnsOfAMemberThatIsNotOnline(t *testing.T) {
	s := newScene(t, groupTrouble().Cluster, nil)
	if _, err := s.request(t.Context(), "3"); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Warning: demo-3 is not online in the group (OFFLINE); the operator will refuse it")
	s = newScene(t, minority().Cluster, nil)
	if _, err := s.request(t.Context(), "3"); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Warning: no majority of the group is seen; this request counts when it is back")
}

func TestPromoteOfAMemberFollowsTheGroup(t *testing.T) {
	s := newScene(t, online().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) {
			st.Operation = &v1alpha1.OperationStatus{Kind: "Switchover", Step: string(core.StepSetPrimary),
				From: "demo-1", To: "demo-2"}
		})
		s.decide(func(st *v1alpha1.ClusterStatus) {
			st.Operation, st.CurrentPrimary,
				st.PrimaryEpoch = nil, "demo-2", 5
		})
	})
	if err := s.run("2", 10*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("demo-2 is the primary of demo (epoch 5)")
}

// The group needs demo-2 for its majority.
func TestAFenceThatTheOperatorRefusesIsTakenBack(t *testing.T) {
	s := newScene(t, online().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) {
			st.Phase, st.PhaseReason = string(core.PhaseBlocked),
				"demo-2 is not fenced: 1 of 3 members would be left online"
			st.Blocked = &v1alpha1.Notice{Reason: string(core.RefusalFenceQuorum), Subject: "demo-2",
				Message: "demo-2 is not fenced: 1 of 3 members would be left online, and 2 are a majority"}
		})
	}, podOf("demo-2"))
	noEvents(s)
	f := &fencer{s.caller, true}
	mustFail(t, f.fence(t.Context(), "2", 5*time.Second), "the operator refused: FenceWouldLoseQuorum: demo-2 is not "+
		"fenced: 1 of 3 members would be left online, and 2 are a majority. The request was taken back")
	if _, is := s.annotation(podOf("demo-2"), v1alpha1.AnnotationFencing); is {
		t.Error("it is still asked for, and would be carried out when nobody expects it")
	}
}

// TestAFenceThatIsNotAnsweredBesideARefusedOneIsTakenBack: the status has room for one refusal.
func TestAFenceThatIsNotAnsweredBesideARefusedOneIsTakenBack(t *testing.T) {
	s := newScene(t, online().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) {
			st.Phase = string(core.PhaseBlocked)
			st.Blocked = &v1alpha1.Notice{Reason: string(core.RefusalFenceQuorum), Subject: "demo-3",
				Message: "demo-3 is not fenced: 1 of 3 members would be left online"}
		})
	}, podOf("demo-2"))
	f := &fencer{s.caller, true}
	mustFail(t, f.fence(t.Context(), "2", time.Second), "demo-3 is not fenced: 1 of 3 members would be left online. "+
		"The request was taken back")
	if _, is := s.annotation(podOf("demo-2"), v1alpha1.AnnotationFencing); is {
		t.Error("it is still asked for")
	}
}

func TestFencingThePrimaryOfAGroupHasTheGroupElectAnother(t *testing.T) {
	s := newScene(t, online().Cluster, lists("demo-1"), podOf("demo-1"))
	f := &fencer{s.caller, true}
	if err := f.fence(t.Context(), "demo-1", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("Fencing it makes it leave the group: its sessions end, and the group elects another primary.")
	s.mustSay("demo-1 is fenced: it leaves the group, its mysqld runs on read-only")
}

func TestReinitOfAMemberNamesWhatOnlyItHas(t *testing.T) {
	s := newScene(t, groupTrouble().Cluster, nil)
	s.managers(groupTrouble())
	s.answers("no\n")
	r := &reinit{s.caller}
	mustFail(t, r.reinit(t.Context(), []string{"1"}, time.Second), "demo-1 is the primary of demo")
	mustFail(t, r.reinit(t.Context(), []string{"3"}, time.Second), "nothing was done")
	s.mustSay("It alone holds 2 transactions, LOST with its data: " + uuid2 + ":1-2")
}

func TestFailoverOfAGroupIsTheGroups(t *testing.T) {
	s := newScene(t, minority().Cluster, nil)
	o := &overrider{s.caller}
	mustFail(t, o.failOver(t.Context(), "3", time.Second), "when the group has lost its quorum: kubectl cnmsql group "+
		"recover demo -n shop")
}

// pods are the Pods of all instances.
func (s *scene) pods() *scene {
	for _, name := range s.cluster().Status.InstanceNames {
		pod := podOf(name)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: pod.ObjectMeta,
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
		if err := errors.Join(s.client.Create(context.Background(), pod), s.client.Create(context.Background(),
			claim)); err != nil {
			s.t.Error(err)
		}
	}
	return s
}

// carryOut takes a human's word off and does by it as the operator does.
func (s *scene) carryOut(change func(*v1alpha1.ClusterStatus)) {
	s.decide(change)
	c := s.cluster()
	if word := c.Annotations[v1alpha1.AnnotationForceQuorum]; !strings.HasSuffix(word, "@17:5") {
		s.t.Errorf("it was asked for by %q, and not in the view that was shown", word)
	}
	delete(c.Annotations, v1alpha1.AnnotationForceQuorum)
	if err := s.client.Update(context.Background(), c); err != nil {
		s.t.Error(err)
	}
}
