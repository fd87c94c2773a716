package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/whatif"
)

const groupName = "aaaaaaaa-aaaa-5aaa-aaaa-aaaaaaaaaaaa"

// online is a group of three, demo-1 primary, all asked. Cases change it.
func online() *Facts {
	f := healthy()
	c := f.Cluster
	c.Spec.MySQL.SemiSync, c.Spec.Replication.Mode, c.Spec.MaxSwitchoverDelay = nil, v1alpha1.ReplicationGroup, 3600
	s := &c.Status
	s.Promotion, s.PhaseReason = nil, "demo-1 is the primary; all 3 members are online"
	s.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: groupName, Bootstrapped: true,
		PrimaryMember: "demo-1", HasQuorum: true, ViewID: "17:5", ObservedViewMax: 3, ObservedOnlineMax: 3}
	for i, name := range s.InstanceNames {
		r := f.live(name)
		r.Server.Replication, r.Server.SemiSync, r.WritableEpoch = nil, core.SemiSync{}, 0
		r.Server.UUID = strings.Repeat(name[len(name)-1:], 8) + "-0000-0000-0000-000000000000"
		r.Server.Executed = set(groupName + ":1-1000")
		role := core.MemberSecondary
		if i == 0 {
			role, r.WritableEpoch = core.MemberPrimary, 4
		}
		s.GroupReplication.Members = append(s.GroupReplication.Members, v1alpha1.GroupMember{Instance: name,
			State: "ONLINE", Role: string(role), Reachable: true})
	}
	f.views("demo-1")
	return f
}

// views gives those who answer the view that only those named in unreachable are not
// reached.
func (f *Facts) views(primary string, unreachable ...string) {
	for _, me := range f.Cluster.Status.InstanceNames {
		r := f.live(me)
		if r == nil || r.Server == nil {
			continue
		}
		v := &core.GroupView{State: core.MemberOnline, Role: core.MemberSecondary, ViewID: "17:5"}
		for i, name := range f.Cluster.Status.InstanceNames {
			m := core.ViewMember{Host: name + ".shop.svc", UUID: string(rune('1' + i)), State: core.MemberOnline,
				Role: core.MemberSecondary}
			if name == primary {
				m.Role = core.MemberPrimary
			}
			for _, u := range unreachable {
				if u == name {
					m.State = core.MemberUnreachable
				}
			}
			if name == me {
				v.Role = m.Role
			}
			v.Members = append(v.Members, m)
		}
		r.Server.Group = v
	}
}

func (f *Facts) member(name string, state core.MemberState, reachable bool) {
	for i := range f.Cluster.Status.GroupReplication.Members {
		if m := &f.Cluster.Status.GroupReplication.Members[i]; m.Instance == name {
			m.State, m.Reachable, m.Role = string(state), reachable, ""
		}
	}
}

func (f *Facts) gone(names ...string) {
	for _, name := range names {
		f.Live[name] = Live{Problem: "no answer within 3s"}
		f.member(name, core.MemberUnknown, false)
		f.notReady(name)
	}
	f.Cluster.Status.ReadyInstances -= int32(len(names))
}

// minority: only demo-3, a secondary, is left.
func minority() *Facts {
	f := online()
	f.gone("demo-1", "demo-2")
	f.Reference = nil
	f.views("demo-1", "demo-1", "demo-2")
	f.live("demo-3").Reason, f.live("demo-3").Message = "NoQuorum",
		"has lost the majority of the group: transactions wait until it is back"
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 UNKNOWN, demo-2 UNKNOWN, "+
		"demo-3 ONLINE): writes wait")
	f.Cluster.Status.GroupReplication.HasQuorum = false
	f.Cluster.Status.PrimaryFailingSince = at(time.Minute)
	return f
}

// alone: the primary is left.
func alone() *Facts {
	f := minority()
	f.Live["demo-1"] = online().Live["demo-1"]
	f.gone("demo-3")
	f.Cluster.Status.ReadyInstances = 1
	f.member("demo-1", core.MemberOnline, true)
	f.views("demo-1", "demo-2", "demo-3")
	return f
}

// nobody is online, and all answer; demo-2 holds the most.
func nobody() *Facts {
	f := online()
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 OFFLINE, demo-2 OFFLINE, "+
		"demo-3 OFFLINE): writes wait. All instances are back, and none is in a group. demo-2 holds all that any of them holds; to have it reboot the group: kubectl cnmsql group recover demo")
	f.Cluster.Status.GroupReplication.HasQuorum = false
	for _, name := range f.Cluster.Status.InstanceNames {
		f.member(name, core.MemberOffline, true)
		f.live(name).Server.Group, f.live(name).WritableEpoch = &core.GroupView{State: core.MemberOffline}, 0
		f.notReady(name)
	}
	f.live("demo-2").Server.Executed = set(groupName + ":1-1010")
	f.Cluster.Status.ReadyInstances = 0
	return f
}

// untold: the operator would reboot the group by itself, and has tried it already.
func untold() *Facts {
	f := nobody()
	f.Cluster.Spec.Replication.GroupReplication =
		&v1alpha1.GroupReplicationSpec{RecoverTotalOutage: v1alpha1.TotalOutageAutomatic}
	f.phase(core.PhaseBlocked, core.GroupQuorumLost, "the group has lost its quorum (demo-1 OFFLINE, demo-2 OFFLINE, "+
		"demo-3 OFFLINE): writes wait. The operator does not reboot the group by itself: demo-2 was told to reboot the group, and nothing has come of it: that is not tried a second time. Look into that; then: kubectl cnmsql group recover demo")
	return f
}

// awaited: it waits for demo-3.
func awaited() *Facts {
	f := untold()
	f.gone("demo-3")
	f.Cluster.Status.ReadyInstances = 0
	f.phase(core.PhaseBlocked, core.GroupUnknown, "too few members can be asked to tell whether the group has its "+
		"quorum (demo-1 OFFLINE, demo-2 OFFLINE, demo-3 UNKNOWN): nothing is done. demo-1, demo-2 are back, and in no group. The operator waits for demo-3 (no answer): it reboots the group when all instances answer, and one holds all that the others hold. Or, if it is gone for good: kubectl cnmsql group recover demo")
	return f
}

// unobserved: the group has elected demo-2, and no operator has seen it.
func unobserved() *Facts {
	f := online()
	f.Live["demo-1"] = Live{Problem: "its Pod is Failed"}
	f.Reference = nil
	f.views("demo-2", "demo-1")
	f.live("demo-2").WritableEpoch = 4
	return f
}

func groupTrouble() *Facts {
	f := online()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "demo-3: transactions that the group does not have; kept out of "+
		"it and of every Service")
	f.Cluster.Status.FencedInstances, f.Cluster.Status.DivergedInstances, f.Cluster.Status.ReadyInstances =
		[]string{"demo-2"}, []string{"demo-3"}, 1
	for _, name := range []string{"demo-2", "demo-3"} {
		f.member(name, core.MemberOffline, true)
		f.notReady(name)
		f.live(name).Server.Group = &core.GroupView{State: core.MemberOffline}
	}
	f.live("demo-2").State, f.live("demo-2").Message = core.Fenced,
		"it is fenced: out of the group and read-only, its mysqld runs; kubectl cnmsql fence off brings it back"
	f.live("demo-3").Reason, f.live("demo-3").Message = "Diverged", "holds transactions that the group lacks: "+uuid2+
		":1-2; it is kept out of the group and of every Service, and its data is kept"
	f.live("demo-3").Server.Executed, f.live("demo-3").Errant = set(groupName+":1-900,"+uuid2+":1-2"), set(uuid2+":1-2")
	return f
}

// forced: demo-3 went on alone, and demo-2 has come back.
func forced() *Facts {
	f := minority()
	f.phase(core.PhaseDegraded, core.PrimaryHealthy, "waiting for demo-1 (no answer), demo-2 (Joining)")
	s := &f.Cluster.Status
	s.CurrentPrimary, s.PrimaryEpoch, s.PrimaryFailingSince = "demo-3", 6, nil
	g := s.GroupReplication
	g.HasQuorum, g.PrimaryMember, g.ViewID, g.ObservedViewMax, g.LeftOut = true, "demo-3", "17:7", 1,
		[]v1alpha1.LeftOutMember{{Instance: "demo-1"}, {Instance: "demo-2", Admitted: true}}
	g.Members[2].Role = "PRIMARY"
	f.member("demo-2", core.MemberRecovering, true)
	return f
}

func unmade() *Facts {
	f := untouched()
	f.Cluster.Spec.MySQL.SemiSync, f.Cluster.Spec.Replication.Mode = nil, v1alpha1.ReplicationGroup
	f.Cluster.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: groupName}
	f.phase(core.PhaseProvisioning, core.DiagnosisNone, "waiting for demo-1 (no answer)")
	return f
}

func init() {
	for name, situation := range map[string]func() *Facts{
		"online": online, "minority": minority, "alone": alone, "nobody": nobody, "untold": untold, "awaited": awaited,
		"unobserved": unobserved, "trouble": groupTrouble, "forced": forced, "unmade": unmade,
	} {
		situations["group-"+name] = situation
	}
}

func TestTheGroupInEachSituation(t *testing.T) {
	for name, situation := range situations {
		f := situation()
		if mustBeGroup(f.Cluster) != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newScene(t, f.Cluster, nil)
			s.now = func() time.Time { return now }
			g := &groupViewer{s.caller}
			if err := g.show(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			golden(t, "view-"+name+".txt", s.out.String())
		})
	}
}

func TestGroupStatusOfAnAsynchronousClusterIsRefused(t *testing.T) {
	s := newScene(t, healthy().Cluster, nil)
	g := &groupViewer{s.caller}
	const says = "cluster demo is no group: its spec.replication.mode is async. Its situation: kubectl cnmsql status demo -n shop"
	mustFail(t, g.show(t.Context(), ""), says)
	mustFail(t, g.watch(t.Context()), says)
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), says)
}

func TestGroupStatusForPrograms(t *testing.T) {
	s := newScene(t, minority().Cluster, nil)
	if err := (&groupViewer{s.caller}).show(t.Context(), "yaml"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"hasQuorum: false", "majority: 2", "onlineMembers: 1", "viewId: \"17:5\""} {
		s.mustSay(text)
	}
}

func TestGroupStatusIsPrintedAnewAtEveryChange(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s := newScene(t, online().Cluster, func(s *scene) {
		s.decide(func(st *v1alpha1.ClusterStatus) { st.LabelSelector = "nothing that is shown" })
		s.decide(func(st *v1alpha1.ClusterStatus) {
			st.GroupReplication.PrimaryMember, st.GroupReplication.ViewID = "demo-2", "17:6"
		})
		<-time.After(100 * time.Millisecond)
		cancel()
	})
	if err := (&groupViewer{s.caller}).watch(ctx); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(s.out.String(), "INSTANCE"); n != 2 {
		t.Errorf("printed %d times:\n%s", n, s.out.String())
	}
	s.mustSay("View        17:5")
	s.mustSay("View        17:6")
}

func TestAPrimaryThatTheGroupElectedIsBelievedBeforeTheOperator(t *testing.T) {
	w, because := topologyOf(unobserved().Cluster).writable(unobserved(), Durability{})
	if w != WritableNo || !strings.Contains(because, "demo-2 is the primary of the group and accepts writes, but the "+
		"Service demo-rw does not lead to it yet (it leads to demo-1)") {
		t.Errorf("%s: %s", w, because)
	}
}

func TestTwoPrimariesAreTold(t *testing.T) {
	f := online()
	f.live("demo-2").WritableEpoch = 4
	f.live("demo-2").Server.Group.Role = core.MemberPrimary
	if w, because := topologyOf(f.Cluster).writable(f, Durability{}); w != WritableUnknown ||
		!strings.Contains(because, "demo-1 and demo-2 BOTH SAY") {
		t.Errorf("%s: %s", w, because)
	}
}

// A member whose mysqld hangs does not say that it is in no group.
func TestAMemberThatHangsIsNotCalledOffline(t *testing.T) {
	f := online()
	hangs := f.live("demo-2")
	hangs.State, hangs.Server = core.Hung, nil
	if in := instanceOf(f, "demo-2"); in.Member != "UNKNOWN" {
		t.Errorf("%+v", in)
	}
	hangs.State = core.Stopped
	if in := instanceOf(f, "demo-2"); in.Member != "OFFLINE" {
		t.Errorf("%+v", in)
	}
}

func TestWhatTheGroupCommitsIsNotErrant(t *testing.T) {
	f := online()
	f.live("demo-2").Server.Executed = set(groupName + ":1-1003")
	if in := instanceOf(f, "demo-2"); *in.Errant != 0 || in.Role != v1alpha1.RoleReplica || in.Member != "ONLINE" {
		t.Errorf("%+v", in)
	}
	f.live("demo-2").Server.Executed = set(groupName + ":1-1000," + uuid2 + ":1")
	if in := instanceOf(f, "demo-2"); *in.Errant != 1 {
		t.Errorf("%+v", in)
	}
}

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

func recovered(s *scene) {
	s.warn(core.ReasonQuorumForced, "as a human asked for, demo-3 goes on with demo-3 as the whole group")
	s.carryOut(func(st *v1alpha1.ClusterStatus) { st.PrimaryEpoch++ })
	s.decide(func(st *v1alpha1.ClusterStatus) {
		st.GroupReplication.HasQuorum, st.CurrentPrimary, st.Diagnosis = true, "demo-3", string(core.PrimaryHealthy)
	})
}

func TestRecoverTellsWhoIsLeftWhatIsLostAndTheDanger(t *testing.T) {
	f := minority()
	s := newScene(t, f.Cluster, recovered).pods()
	s.managers(f)
	s.answers("demo\n")
	if err := s.recoverer().recover(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"  demo-1: NOT KNOWN: no answer within 3s",
		"  demo-3: ONLINE SECONDARY, but has lost the majority; holds 1000 transactions",
		"demo-3 goes on alone as the whole group.",
		"Left out: demo-1, demo-2. Who of them comes back and holds nothing else than demo-3 joins again by itself. Who had received more is kept out as diverged",
		"What demo-1, demo-2 hold is NOT KNOWN. A write is acknowledged when a majority has received it: those that only they have received are lost.",
		"DANGER OF A SPLIT BRAIN: if demo-1, demo-2 live and only cannot be reached, they are a majority (2 of 3 members) and TAKE WRITES NOW",
		"Type the name of the cluster (demo) to ask for it:",
		"QuorumRecoveryForced: as a human asked for, demo-3 goes on",
		"The group of demo has its quorum again; demo-3 is the primary.",
	} {
		s.mustSay(text)
	}
}

func TestRecoverWithASurvivingPrimarySaysThatItHoldsWhatItAcknowledged(t *testing.T) {
	f := alone()
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	s.answers("no\n")
	mustFail(t, s.recoverer().recover(t.Context(), time.Second),
		`the answer was "no" and not "demo": nothing was done`)
	s.mustSay("demo-1 is the primary and holds all that it acknowledged. Lost is what demo-2, demo-3 acknowledged " +
		"since, if they elected a primary of their own: NOT KNOWN.")
	if _, is := s.annotation(s.cluster(), v1alpha1.AnnotationForceQuorum); is {
		t.Error("it was asked for")
	}
}

// formerMember is demo-1, which runs and is in no group, and holds so much.
func formerMember(f *Facts, holds string) {
	f.Live["demo-1"] = Live{Report: &core.Report{Instance: "demo-1", State: core.Running, Data: core.DataPopulated,
		Server: &core.Server{UUID: uuid1, Executed: set(groupName + ":" + holds),
			Group: &core.GroupView{State: core.MemberOffline}}}}
}

func TestRecoverIsRefusedWhileSomebodyHoldsMoreAndAnotherIsNotKnown(t *testing.T) {
	f := minority()
	formerMember(f, "1-1004")
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	s.answers("no\n")
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done")
	s.mustSay("the operator would REFUSE (MembersUnknown): the recovery of the quorum was refused: demo-1 holds " +
		"transactions that those who are still online lack")
}

func TestRecoverOfAMinorityLeftOutIsLessDangerous(t *testing.T) {
	f := minority()
	formerMember(f, "1-1000")
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	s.answers("no\n")
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done")
	s.mustSay("Danger of a split brain: demo-2 are no majority (1 of 3 members)")
}

func TestRecoverOfATotalOutageMakesTheGroupAnew(t *testing.T) {
	f := nobody()
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	s.yes = true
	err := s.recoverer().recover(t.Context(), 300*time.Millisecond)
	mustFail(t, err, "THE REQUEST STAYS")
	mustFail(t, err, "To take it back: kubectl annotate cluster demo -n shop cnmsql.cnmsql.co/force-quorum-recovery-")
	s.mustSay("demo-2, which holds all that any of them holds, reboots the group")
	s.mustSay("Nothing that was acknowledged is lost.")
}

func TestRecoverTellsThatAnEmptyMemberMayHaveHeldMore(t *testing.T) {
	f := nobody()
	f.live("demo-3").Data = core.DataScratch
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nobody answered")
	s.mustSay("demo-3 HAS NO DATA ANY MORE: acknowledged writes that it had received and demo-2 has not are lost.")
}

// outlived is a group that went on without demo-3, and of which nobody is left. What became of demo-3
// is what says tells.
func outlived(says Live) *Facts {
	f := nobody()
	g := f.Cluster.Status.GroupReplication
	g.ObservedViewMax, g.ViewID = 2, "17:7"
	g.LeftOut = []v1alpha1.LeftOutMember{{Instance: "demo-3", Held: groupName + ":1-1000"}}
	f.Live["demo-3"] = says
	return f
}

func TestRecoverWarnsOfThoseLeftOutWhoMayBeInAGroupForAllThatIsKnown(t *testing.T) {
	hangs := *nobody().live("demo-3")
	hangs.State, hangs.Server = core.Hung, nil
	for name, c := range map[string]struct {
		says Live
		want string
	}{
		"it says that it is in none": {Live{Report: nobody().live("demo-3")}, "Danger of a split brain: none is seen"},
		"nobody can ask it": {Live{Problem: "no answer within 3s"},
			"DANGER OF A SPLIT BRAIN: demo-3 do not say that they are in no group"},
		"its mysqld hangs": {Live{Report: &hangs},
			"DANGER OF A SPLIT BRAIN: demo-3 do not say that they are in no group"},
	} {
		t.Run(name, func(t *testing.T) {
			f := outlived(c.says)
			s := newScene(t, f.Cluster, nil).pods()
			s.managers(f)
			s.answers("no\n")
			mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done")
			s.mustSay("Left out: demo-3.")
			s.mustSay(c.want)
		})
	}
}

func TestRecoverTellsWhyTheOperatorRefused(t *testing.T) {
	f := nobody()
	f.gone("demo-3")
	s := newScene(t, f.Cluster, func(s *scene) {
		s.warn(core.RefusalMembersUnknown, "the recovery of the quorum is refused: what demo-3 holds is not known")
		s.carryOut(func(*v1alpha1.ClusterStatus) {})
	}).pods()
	s.managers(f)
	s.yes = true
	mustFail(t, s.recoverer().recover(t.Context(), 5*time.Second), "the operator refused: MembersUnknown: "+
		"the recovery of the quorum is refused: what demo-3 holds is not known")
	s.mustSay("As things look from here, the operator would REFUSE (MembersUnknown)")
}

func TestRecoverThatBeganAndDoesNotEndIsTold(t *testing.T) {
	f := minority()
	s := newScene(t, f.Cluster, func(s *scene) {
		s.carryOut(func(st *v1alpha1.ClusterStatus) { st.PrimaryEpoch++ })
	}).pods()
	s.managers(f)
	s.yes = true
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "the operator has begun, but the group has "+
		"no quorum after 1s")
}

func TestRecoverWhereNothingIsLostIsRefused(t *testing.T) {
	s := newScene(t, online().Cluster, nil).pods()
	s.managers(online())
	s.yes = true
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done: the recovery of the "+
		"quorum was refused: the group has its quorum: 3 members are online")
	// The operator's last word is old, and the members' own counts.
	f := unobserved()
	f.Cluster.Status.GroupReplication.HasQuorum = false
	s = newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nothing was done")
	s = newScene(t, unmade().Cluster, nil)
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "the group of cluster demo was not made yet")
	deleted := minority().Cluster
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	mustFail(t, mayRecover(deleted), "cluster demo is being deleted")
}

func TestAQuorumThatComesBackByItselfEndsTheWait(t *testing.T) {
	f := minority()
	s := newScene(t, f.Cluster, func(s *scene) {
		s.carryOut(func(st *v1alpha1.ClusterStatus) {
			st.GroupReplication.HasQuorum, st.Diagnosis = true, string(core.PrimaryHealthy)
		})
	}).pods()
	s.managers(f)
	s.yes = true
	if err := s.recoverer().recover(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	s.mustSay("has its quorum again by itself; nothing was forced. demo-1 is the primary.")
}

func TestWhatBecomesOfAGroup(t *testing.T) {
	for name, r := range map[string]struct {
		lose []string
		how  whatif.How
	}{
		"primary-lost":   {[]string{"1"}, whatif.NodeLost},
		"secondary-lost": {[]string{"2"}, whatif.PodDeleted},
		"majority-lost":  {[]string{"1", "2"}, whatif.NodeLost},
		"writes-hang":    {[]string{"2", "3"}, whatif.NodeLost},
		"all-crashed":    {[]string{"1", "2", "3"}, whatif.MysqldDown},
		"all-lost":       {[]string{"1", "2", "3"}, whatif.NodeLost},
	} {
		t.Run(name, func(t *testing.T) {
			s, g := rehearsalOf(t, online(), nil)
			if err := g.guess(t.Context(), r.lose, r.how, ""); err != nil {
				t.Fatal(err)
			}
			golden(t, "whatif-group-"+name+".txt", s.out.String())
		})
	}
}

func TestGroupNeedsAVerb(t *testing.T) {
	cmd := Command()
	cmd.SetArgs([]string{"group", "heal", "demo"})
	mustFail(t, cmd.Execute(), "group heal is not known: kubectl cnmsql group status CLUSTER shows the group")
}
