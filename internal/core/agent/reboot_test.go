package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestRebootIsRefusedByWhoeverIsInAGroupOrMakesOne(t *testing.T) {
	for _, c := range []struct {
		about    string
		state    core.MemberState
		activity Activity
		refuses  bool
	}{
		{about: "in none", state: core.MemberOffline},
		{about: "looking for one", state: core.MemberOffline, activity: Joining},
		{about: "expelled from one", state: core.MemberError},
		{about: "making one", state: core.MemberOffline, activity: Bootstrapping, refuses: true},
		{about: "about to be in one", state: core.MemberRecovering, refuses: true},
		{about: "in one", state: core.MemberOnline, refuses: true},
	} {
		f := member()
		f.Server.Group.State, f.Activity = c.state, c.activity
		if no := f.RefusesReboot(); (no != nil) != c.refuses {
			t.Errorf("%s: refused: %v", c.about, no)
		}
	}
	if f := newMember(); f.RefusesReboot() == nil {
		t.Error("an instance whose mysqld does not answer obeys")
	}
}
