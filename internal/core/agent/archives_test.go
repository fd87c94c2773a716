package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

// ofGroup is a Cluster that names db-1 as the primary of its group.
func ofGroup(m *Membership) *Cluster {
	return &Cluster{Epoch: 7, CurrentPrimary: "db-1", Topology: core.TopologyGroup, Group: m}
}

func TestWhoArchivesAndInWhichEpoch(t *testing.T) {
	named := ofGroup(&Membership{})
	excluded := ofGroup(&Membership{Excluded: true})
	undecided := ofGroup(&Membership{Undecided: true})
	for name, c := range map[string]struct {
		cluster *Cluster
		me      string
		writes  int64
		want    int64
	}{
		"nothing is known of the Cluster":                  {nil, "db-1", 7, 0},
		"a primary that was promoted":                      {&Cluster{Epoch: 7}, "db-1", 6, 6},
		"a replica":                                        {&Cluster{Epoch: 7}, "db-1", 0, 0},
		"the primary of the group":                         {named, "db-1", 7, 7},
		"the primary, which was told of a later epoch":     {named, "db-1", 8, 7},
		"one that the Cluster does not name yet":           {named, "db-2", 7, 0},
		"the primary, which does not take writes":          {named, "db-1", 0, 0},
		"the primary, which may have gone on":              {undecided, "db-1", 7, 0},
		"the former primary, which the group went without": {excluded, "db-1", 7, 0},
	} {
		if got := c.cluster.ArchivesIn(c.me, c.writes); got != c.want {
			t.Errorf("%s archives in epoch %d", name, got)
		}
	}
}

func TestWhoMayPurgeByItself(t *testing.T) {
	type facts struct{ may, keeps bool }
	replica, member := &Cluster{Epoch: 7}, &Cluster{Topology: core.TopologyGroup, Group: &Membership{}}
	promoted := &Cluster{Epoch: 7, Promotion: &core.Promotion{Instance: "db-1", Epoch: 7}}
	undecided := ofGroup(&Membership{Undecided: true})
	excluded := ofGroup(&Membership{Undecided: true, Excluded: true})
	for name, c := range map[string]struct {
		cluster  *Cluster
		writes   int64
		unheard  bool // mysqld does not answer
		archives bool
		want     facts
	}{
		"nothing is known of the Cluster":             {archives: true},
		"a replica":                                   {replica, 0, false, true, facts{may: true}},
		"one that is promoted":                        {cluster: promoted, archives: true},
		"a member of a group":                         {member, 7, false, true, facts{may: true}},
		"a primary, which may have gone on":           {undecided, 7, false, true, facts{keeps: true}},
		"the same, and the Cluster archives nothing":  {undecided, 7, false, false, facts{may: true, keeps: true}},
		"a member of that group that is read-only":    {undecided, 0, false, true, facts{may: true}},
		"one of that group that does not answer":      {undecided, 0, true, true, facts{keeps: true}},
		"a primary that the group did not go on with": {excluded, 7, false, true, facts{may: true}},
	} {
		f := &Facts{Me: "db-1", Locked: true, Cluster: c.cluster, WritableEpoch: c.writes, Server: &core.Server{}}
		f.Mysqld.Accepted = true
		if c.unheard {
			f.Server = nil
		}
		if got := (facts{f.MayPurge(c.archives), f.KeepsLogs()}); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		f.Mysqld.Accepted = false
		if f.MayPurge(c.archives) || f.KeepsLogs() {
			t.Errorf("%s: mysqld cannot be told anything, and is", name)
		}
	}
}

func TestTheGroupOpensItsMembers(t *testing.T) {
	primary := core.GroupView{State: core.MemberOnline, Role: core.MemberPrimary}
	for name, c := range map[string]struct {
		server core.Server
		seen   int64
		want   int64
	}{
		"the primary":                     {core.Server{Group: &primary}, 7, 7},
		"the first, which knows no epoch": {core.Server{Group: &primary}, 0, 1},
		"not open yet":                    {core.Server{Group: &primary, SuperReadOnly: true}, 7, 0},
		"a secondary": {core.Server{Group: &core.GroupView{State: core.MemberOnline,
			Role: core.MemberSecondary}}, 7, 0},
		"in ERROR": {core.Server{Group: &core.GroupView{State: core.MemberError, Role: core.MemberPrimary}}, 7, 0},
	} {
		if got := MemberWrites(&c.server, c.seen); got != c.want {
			t.Errorf("%s takes writes in epoch %d", name, got)
		}
	}
}
