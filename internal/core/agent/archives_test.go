package agent

import (
	"testing"

	"cnmsql.co/internal/core"
)

func TestWhoArchivesAndInWhichEpoch(t *testing.T) {
	named := &Cluster{Epoch: 7, CurrentPrimary: "db-1", Group: &Membership{}}
	excluded := &Cluster{Epoch: 7, CurrentPrimary: "db-1", Group: &Membership{Excluded: true}}
	undecided := &Cluster{Epoch: 7, CurrentPrimary: "db-1", Group: &Membership{Undecided: true}}
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
