package group

import (
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
)

// A member that was cut off from the others may reach the operator, and call itself online.
func TestAMemberThatTheOthersSuspectIsInNoServiceWhateverItSays(t *testing.T) {
	w := newWorld(3)
	w.run()
	suspect := w.get("c-3")
	suspect.state = core.MemberUnreachable
	w.run()
	if own := w.says(suspect); own.State != core.MemberOnline || own.HasQuorum() {
		t.Fatalf("it says that it is %s, quorum %t", own.State, own.HasQuorum())
	}
	if suspect.pod.Routable || !w.get("c-1").pod.Routable || !w.get("c-2").pod.Routable {
		t.Errorf("routed are: c-1 %t, c-2 %t, c-3 %t", w.get("c-1").pod.Routable, w.get("c-2").pod.Routable,
			suspect.pod.Routable)
	}
	if g := w.cluster.Status.Group; !g.HasQuorum || g.Members[2].State != core.MemberUnreachable ||
		!g.Members[2].Reachable {
		t.Errorf("quorum %t, and of c-3 the status says %+v", g.HasQuorum, g.Members[2])
	}
}

// TestWhoWasExpelledIsNotOnline holds what the status says of one that calls itself online in a view of before.
func TestWhoWasExpelledIsNotOnline(t *testing.T) {
	w := newWorld(3)
	w.run()
	w.get("c-3").cut(1)
	w.get("c-3").deaf = false
	w.become([]string{"c-1", "c-2"})
	w.run()
	if own := w.says(w.get("c-3")); own.State != core.MemberOnline {
		t.Fatalf("it says that it is %s", own.State)
	}
	g := w.cluster.Status.Group
	if m := g.Members[2]; !g.HasQuorum || m.State != core.MemberUnreachable || m.Role != "" || !m.Reachable {
		t.Errorf("quorum %t, and of c-3 the status says %+v", g.HasQuorum, m)
	}
}

// Members under another name are another group.
func TestTheNameOfTheGroupIsPinnedBeforeAnythingIsMadeAndKept(t *testing.T) {
	w := newWorld(3)
	plan := Decide(w.observe())
	if plan.Status.Group.Name != "g-1" || plan.Status.Group.Bootstrapped {
		t.Fatalf("first, it is %+v", plan.Status.Group)
	}
	w.cluster.Group.NotTaken = "g-0"
	if told := Decide(w.observe()).Events; !slices.ContainsFunc(told, func(a core.Event) bool {
		return a.Reason == core.ReasonWithoutEffect && strings.Contains(a.Message, "g-0")
	}) {
		t.Errorf("the name in the spec is not taken, and it tells %+v", told)
	}
	w.cluster.Status.Group = &core.GroupStatus{Name: "g-1"}
	w.cluster.Group.WishedName = "g-2"
	w.run()
	if g := w.cluster.Status.Group; !g.Bootstrapped || g.Name != "g-1" {
		t.Errorf("made under another name than was pinned: %+v", g)
	}
	w.cluster.Group.WishedName = "g-3"
	w.run()
	if name := w.cluster.Status.Group.Name; name != "g-1" {
		t.Errorf("renamed to %s", name)
	}
}

// Who is told that nobody is online deletes claims; here the group may be taking writes.
func TestAnOperatorThatHearsTooFewSaysNoMoreThanThat(t *testing.T) {
	w := newWorld(3)
	w.run()
	w.get("c-2").deaf, w.get("c-3").deaf = true, true
	w.run()
	w.now = w.now.Add(unknownPatience)
	w.run()
	s := w.cluster.Status
	if s.Phase != core.PhaseBlocked || s.Blocked == nil || s.Blocked.Reason != core.RefusalGroupUnknown ||
		!w.hasQuorum() {
		t.Errorf("it is %s, %s: %s", s.Phase, s.Reason, w.tell())
	}
}
