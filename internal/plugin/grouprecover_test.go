package plugin

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/whatif"
)

func recovered(s *scene) {
	s.warn(core.ReasonQuorumForced, "as a human requested, demo-3 forces the quorum with demo-3 as the whole group")
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
		"demo-3 continues alone as the whole group.",
		"Excluded: demo-1, demo-2. An excluded instance that holds nothing beyond demo-3 joins again by itself. One " +
			"that had received more is kept out as diverged",
		"What demo-1, demo-2 hold is NOT KNOWN. A write is acknowledged when a majority has received it: those that " +
			"only they have received are lost.",
		"DANGER OF A SPLIT BRAIN: if demo-1, demo-2 still run and are only unreachable, they are a majority (2 of 3 " +
			"members) and TAKE WRITES NOW",
		"Type the name of the cluster (demo) to ask for it:",
		"QuorumRecoveryForced: as a human requested, demo-3 forces the quorum",
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
		"transactions that the online members lack")
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
	s.mustSay("No loss is known. This cannot make two groups")
}

func TestRecoverTellsWhatNobodyHoldsAnyMore(t *testing.T) {
	f := nobody()
	f.Cluster.Status.GTIDExecutedByInstance = map[string]string{"demo-1": groupName + ":1-1015"}
	s := newScene(t, f.Cluster, nil).pods()
	s.managers(f)
	mustFail(t, s.recoverer().recover(t.Context(), time.Second), "nobody answered")
	s.mustSay("LOST, as far as is known: no instance still holds what was seen before (" + groupName +
		":1011-1015).")
	if strings.Contains(s.out.String(), "No loss is known") {
		t.Errorf("it says %s", s.out.String())
	}
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
			s.mustSay("Excluded: demo-3.")
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
