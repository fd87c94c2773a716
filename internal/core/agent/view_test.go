package agent

import (
	"slices"
	"testing"

	"cnmsql.co/internal/core"
)

// TestNobodyCountsOnAMemberThatLeaves holds which members a manager counts on when it asks whether the others can do
// without its own.
func TestNobodyCountsOnAMemberThatLeaves(t *testing.T) {
	const online = core.MemberOnline
	s := &core.Status{Fenced: []string{"db-4"}, Group: &core.GroupStatus{Members: []core.GroupMember{
		{Instance: "db-1", State: online}, {Instance: "db-2", State: online, Leaving: true},
		{Instance: "db-3", State: core.MemberRecovering}, {Instance: "db-4", State: online},
		{Instance: "db-5", State: core.MemberOffline, Leaving: true}, {Instance: "db-6", State: online},
	}}}
	c := &Cluster{Topology: core.TopologyGroup}
	c.TakeStatus(s, "db-1")
	if want := []string{"db-1", "db-6"}; !slices.Equal(c.Group.Online, want) {
		t.Errorf("counted on: %v, want %v", c.Group.Online, want)
	}
	if want := []string{"db-5"}; !slices.Equal(c.Group.Outside, want) {
		t.Errorf("outside: %v, want %v", c.Group.Outside, want)
	}
}
