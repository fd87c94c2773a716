package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// inView is what mysqld of a member tells: it reaches some of the members, and not the others.
func inView(id string, reaches, lacks int) *core.Server {
	v := &core.GroupView{State: core.MemberOnline, ViewID: id}
	for n := range reaches + lacks {
		m := core.ViewMember{State: core.MemberOnline}
		if n >= reaches {
			m.State = core.MemberUnreachable
		}
		v.Members = append(v.Members, m)
	}
	return &core.Server{Group: v}
}

// TestAMemberDoubtsItsHistoryWhereItsGroupWentOn checks what is to be remembered by a member that sees its group go on
// with a minority, and does not hear what the Cluster says of that.
func TestAMemberDoubtsItsHistoryWhereItsGroupWentOn(t *testing.T) {
	before, doubted := core.Lineage{Group: "g", Recovery: 4}, core.Lineage{Group: "g", Recovery: 4, Doubted: true}
	forced := []*core.Server{inView("1", 2, 3), inView("2", 2, 0)}
	for name, c := range map[string]struct {
		views    []*core.Server
		ordered  int64
		told     int64 // the last recovery of the Cluster's status; less than 0 while that is not decided
		remember core.Lineage
	}{
		"a minority goes on":                {forced, 0, 4, doubted},
		"the Cluster tells why":             {forced, 0, 7, core.Lineage{Group: "g", Recovery: 7}},
		"the Cluster does not know whether": {forced, 0, -7, doubted},
		"it was told to go on":              {forced, 4, 4, before},
		"the others come back":              {[]*core.Server{inView("1", 2, 3), inView("1", 5, 0)}, 0, 4, before},
		"a majority goes on":                {[]*core.Server{inView("1", 3, 2), inView("2", 3, 0)}, 0, 4, before},
		"half of it goes on":                {[]*core.Server{inView("1", 1, 1), inView("2", 1, 0)}, 0, 4, doubted},
		"nothing is known of before":        {[]*core.Server{inView("2", 2, 0)}, 0, 4, before},
	} {
		t.Run(name, func(t *testing.T) {
			f := &Facts{Cluster: &Cluster{Epoch: 9, Group: &Membership{Name: "g", Bootstrapped: true,
				Recoveries: []core.GroupRecovery{{Epoch: max(c.told, -c.told)}}, Undecided: c.told < 0}}}
			f.Member.Of, f.Member.AdmittedEpoch = before, c.ordered
			for _, s := range c.views {
				f.Member.See(s, time.Time{})
			}
			v := *c.views[len(c.views)-1].Group
			if got := f.lineage(v); got != c.remember {
				t.Errorf("it remembers %+v and not %+v", got, c.remember)
			}
			f.Member.Of = f.lineage(v)
			f.Member.Remembered()
			if got := f.lineage(v); got != c.remember {
				t.Errorf("afterwards it remembers %+v and not %+v", got, c.remember)
			}
		})
	}
	if _, known := core.Latest([]core.Lineage{before, {Group: "g", Recovery: 4, Doubted: true}}); known {
		t.Error("who doubts its history compares with others")
	}
}
