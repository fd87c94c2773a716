package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

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
	const says = "cluster demo is no group: its spec.replication.mode is async. Its situation: kubectl cnmsql status " +
		"demo -n shop"
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
	w, because := topologyOf(unobserved().Cluster).writable(unobserved())
	if w != WritableNo || !strings.Contains(because, "demo-2 is the primary of the group and accepts writes, but the "+
		"Service demo-rw does not lead to it yet (it leads to demo-1)") {
		t.Errorf("%s: %s", w, because)
	}
}

func TestTwoPrimariesAreTold(t *testing.T) {
	f := online()
	f.live("demo-2").WritableEpoch = 4
	f.live("demo-2").Server.Group.Role = core.MemberPrimary
	if w, because := topologyOf(f.Cluster).writable(f); w != WritableUnknown ||
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
