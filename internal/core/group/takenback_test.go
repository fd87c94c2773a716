package group

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestThoseTakenBackTellOfTheGroup holds when two are believed who were left out, while the one that went on
// without them hangs, and tells nothing.
func TestThoseTakenBackTellOfTheGroup(t *testing.T) {
	const online, away = core.MemberOnline, core.MemberUnreachable
	type facts struct {
		view           string
		first          core.MemberState // as the others see it
		admitted       bool
		others, silent int // instances beside the first; of these so many are not heard
		says           core.MemberState
	}
	for name, c := range map[string]struct {
		facts
		want bool
	}{
		"all joined it":                          {facts{"v:7", online, true, 2, 0, ""}, true},
		"one of four is not heard":               {facts{"v:7", online, true, 4, 1, ""}, true},
		"half of four are not heard":             {facts{"v:7", online, true, 4, 2, ""}, false},
		"they were not admitted":                 {facts{"v:7", online, false, 2, 0, ""}, false},
		"the view is the one that was seen":      {facts{"v:5", online, true, 2, 0, ""}, false},
		"the view is of a group of before":       {facts{"o:7", online, true, 2, 0, ""}, false},
		"they do not reach the one that went on": {facts{"v:7", away, true, 2, 0, ""}, false},
		"that says that it is in no group":       {facts{"v:7", online, true, 2, 0, core.MemberOffline}, false},
	} {
		now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
		g := &core.GroupStatus{Name: "g-1", Bootstrapped: true, Primary: "c-1", ViewMax: 1, ViewID: "v:5"}
		view := &core.GroupView{State: online, Role: core.MemberSecondary, ViewID: c.view,
			Members: []core.ViewMember{{Host: "c-1", State: c.first, Role: core.MemberPrimary}}}
		o := &core.Observation{Now: now, Instances: []core.Instance{{Name: "c-1", Ordinal: 1}}}
		if c.says != "" {
			o.Instances[0].Report = core.Known(core.Report{Instance: "c-1", Server: &core.Server{
				Group: &core.GroupView{State: c.says}}}, now, now)
		}
		for n := range c.others {
			other := []string{"c-2", "c-3", "c-4", "c-5"}[n]
			g.LeftOut = append(g.LeftOut, core.LeftOut{Instance: other, Admitted: c.admitted})
			view.Members = append(view.Members, core.ViewMember{Host: other, State: online, Role: core.MemberSecondary})
			in := core.Instance{Name: other, Ordinal: n + 2}
			if n >= c.silent {
				in.Report = core.Known(core.Report{Instance: other, Server: &core.Server{Group: view}}, now, now)
			}
			o.Instances = append(o.Instances, in)
		}
		if got := see(o, g).agreed; got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
