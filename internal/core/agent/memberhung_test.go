package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

// TestWhoHasLeftIsNoPartOfTheMajority holds when the others can do without a primary that hangs, and told last of
// a view of four.
func TestWhoHasLeftIsNoPartOfTheMajority(t *testing.T) {
	members := func(names ...string) (all []core.ViewMember) {
		for _, name := range names {
			all = append(all, core.ViewMember{Host: name, State: core.MemberOnline})
		}
		return all
	}
	last := &core.GroupView{State: core.MemberOnline, ViewID: "17:4",
		Members: members("db-1", "db-2", "db-3", "db-4")}
	for name, c := range map[string]struct {
		view            string
		online, outside []string
		want            bool
	}{
		"all are there":                            {"17:4", []string{"db-1", "db-2", "db-3", "db-4"}, nil, true},
		"one is away, and a member still":          {"17:4", []string{"db-1", "db-2", "db-3"}, nil, false},
		"one has left since":                       {"17:5", []string{"db-1", "db-2", "db-3"}, []string{"db-4"}, true},
		"one was no member yet, as was seen":       {"17:3", []string{"db-1", "db-2", "db-3"}, []string{"db-4"}, false},
		"it is not known which view is later":      {"18:5", []string{"db-1", "db-2", "db-3"}, []string{"db-4"}, false},
		"two have left since, and one is left":     {"17:6", []string{"db-1", "db-2"}, []string{"db-3", "db-4"}, false},
		"the primary itself says that it has left": {"17:5", []string{"db-2", "db-3"}, []string{"db-1"}, false},
	} {
		f := &Facts{Me: "db-1", Member: MemberFacts{Last: last}, Cluster: &Cluster{CurrentPrimary: "db-1",
			Group: &Membership{HasQuorum: true, ViewID: c.view, Online: c.online, Outside: c.outside}}}
		if got := f.isReplaceable(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
