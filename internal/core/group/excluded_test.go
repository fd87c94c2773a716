package group

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Two instances that the group went on without come back at once, and are recovering for
// a while: the one that went on is believed all that time, and they have a say afterwards.
func TestThoseLeftOutHaveASayAgainOnceTheViewHasThem(t *testing.T) {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	status := core.Status{Epoch: 4, CurrentPrimary: "c-1", TargetPrimary: "c-1", EstablishedAt: now,
		InstanceNames: []string{"c-1", "c-2", "c-3"},
		Group: &core.GroupStatus{Name: "g-1", Bootstrapped: true, Primary: "c-1", HasQuorum: true, ViewMax: 1,
			LeftOut: []core.LeftOut{{Instance: "c-2", Admitted: true}, {Instance: "c-3", Admitted: true}}}}
	for _, state := range []core.MemberState{core.MemberRecovering, core.MemberRecovering, core.MemberOnline} {
		o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Wanted: 3,
			Topology: core.TopologyGroup, Group: &core.Group{}, Status: status}}
		for n, name := range status.InstanceNames {
			own, role := state, core.MemberSecondary
			if name == "c-1" {
				own, role = core.MemberOnline, core.MemberPrimary
			}
			view := &core.GroupView{State: own, Role: role, ViewID: "v:2", Members: []core.ViewMember{
				{Host: "c-1", State: core.MemberOnline, Role: core.MemberPrimary}, {Host: "c-2", State: state,
					Role: core.MemberSecondary}, {Host: "c-3", State: state, Role: core.MemberSecondary}}}
			o.Instances = append(o.Instances, core.Instance{Name: name, Ordinal: n + 1,
				Pod:    core.Known(core.Pod{Exists: true, Current: true, Ready: true}, now, now),
				Volume: core.Known(core.Volume{Exists: true, Bound: true}, now, now),
				Report: core.Known(core.Report{Instance: name, State: core.Running, Data: core.DataPopulated,
					Server: &core.Server{UUID: name, Group: view}}, now, now)})
		}
		status = Decide(o).Status
		if !status.Group.HasQuorum || len(status.Group.LeftOut) > 0 {
			t.Fatalf("while they are %s: quorum %t, left out %v: %s", state, status.Group.HasQuorum,
				status.Group.LeftOut, status.Reason)
		}
	}
}

// returning is what c-2 says, which was left out when c-1 went on alone, from 1-5, and what
// becomes of it.
type returning struct {
	before              bool // it was admitted
	report              core.Report
	age                 time.Duration
	admitted, told, bad bool
}

func returns() map[string]returning {
	const group = "11111111-1111-1111-1111-111111111111:"
	view := func(state core.MemberState, members ...core.ViewMember) *core.GroupView {
		return &core.GroupView{State: state, ViewID: "o:1", Members: members}
	}
	offline := view(core.MemberOffline)
	own := view(core.MemberOnline, core.ViewMember{Host: "c-2", State: core.MemberOnline, Role: core.MemberPrimary})
	joining := view(core.MemberRecovering, core.ViewMember{Host: "c-1", State: core.MemberOnline,
		Role: core.MemberPrimary},
		core.ViewMember{Host: "c-2", State: core.MemberRecovering, Role: core.MemberSecondary})
	says := func(state core.State, data core.DataState, holds string, v *core.GroupView) core.Report {
		if holds != "" {
			holds = group + holds
		}
		return core.Report{Instance: "c-2", State: state, Data: data, Server: &core.Server{UUID: "c-2",
			Executed: gtid.MustParse(holds), Group: v}}
	}
	serves := func(holds string, v *core.GroupView) core.Report {
		return says(core.Running, core.DataPopulated, holds, v)
	}
	return map[string]returning{
		"it holds nothing else": {report: serves("1-5", offline), admitted: true},
		"it holds more":         {report: serves("1-7", offline), bad: true},
		"what it says is old":   {report: serves("1-5", offline), age: 6 * time.Second},
		"it has no data": {report: core.Report{Instance: "c-2", State: core.Empty,
			Data: core.DataEmpty}, admitted: true},
		"it waits for a donor": {report: says(core.AwaitingClone, core.DataScratch, "",
			offline), admitted: true},
		"it is being cloned, perhaps from another": {report: core.Report{Instance: "c-2", State: core.Cloning,
			Data: core.DataScratch}},
		"it is in a group of its own":              {report: serves("1-5", own), told: true},
		"it was admitted, and is in another group": {before: true, report: serves("1-5", own), told: true},
		"it was admitted, and joins":               {before: true, report: serves("1-5", joining), admitted: true},
		"it was admitted, and could not join": {before: true, report: serves("1-5", view(core.MemberError)),
			admitted: true, told: true},
	}
}

func (c returning) observe() core.Observation {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	held := gtid.MustParse("11111111-1111-1111-1111-111111111111:1-5")
	status := core.Status{Epoch: 4, CurrentPrimary: "c-1", TargetPrimary: "c-1", EstablishedAt: now,
		InstanceNames: []string{"c-1", "c-2"},
		Group: &core.GroupStatus{Name: "g-1", Bootstrapped: true, Primary: "c-1", HasQuorum: true, ViewMax: 1,
			LeftOut: []core.LeftOut{{Instance: "c-2", Held: held, Admitted: c.before}}}}
	o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Wanted: 2, Topology: core.TopologyGroup,
		Group: &core.Group{}, Status: status}}
	view := &core.GroupView{State: core.MemberOnline, Role: core.MemberPrimary, ViewID: "v:2",
		Members: []core.ViewMember{{Host: "c-1", State: core.MemberOnline, Role: core.MemberPrimary}}}
	first := core.Report{Instance: "c-1", State: core.Running, Data: core.DataPopulated,
		Server: &core.Server{UUID: "c-1", Executed: gtid.MustParse("11111111-1111-1111-1111-111111111111:1-9"),
			Group: view}}
	for n, r := range []core.Report{first, c.report} {
		at := now.Add(-time.Duration(n) * c.age)
		o.Instances = append(o.Instances, core.Instance{Name: r.Instance, Ordinal: n + 1,
			Pod:    core.Known(core.Pod{Exists: true, Current: true, Ready: true}, now, now),
			Volume: core.Known(core.Volume{Exists: true, Bound: true}, now, now), Report: core.Known(r, at, at)})
	}
	return o
}

func TestWhoIsAdmittedAgain(t *testing.T) {
	for name, c := range returns() {
		t.Run(name, func(t *testing.T) {
			plan := Decide(c.observe())
			l, out := plan.Status.Group.LeftOutOf("c-2")
			told := slices.ContainsFunc(plan.Effects, func(e core.Effect) bool {
				f,
					is := e.(core.ReceivePromise)
				return is && f.Instance == "c-2"
			})
			if diverged := slices.Contains(plan.Status.Diverged, "c-2"); !out || l.Admitted != c.admitted ||
				told != c.told || diverged != c.bad {
				t.Errorf("left out %t, admitted %t, told to leave %t, diverged %t: %s", out, l.Admitted, told,
					diverged, plan.Status.Reason)
			}
		})
	}
}

// TestAMemberIsSparedByAMajorityOfThoseWhoHaveASay holds that two of three may do without the third where the group
// goes on without two others, and not where those may be members.
func TestAMemberIsSparedByAMajorityOfThoseWhoHaveASay(t *testing.T) {
	for name, c := range map[string]struct {
		g    core.GroupStatus
		want bool
	}{
		"two were left out":   {core.GroupStatus{LeftOut: []core.LeftOut{{Instance: "c-4"}, {Instance: "c-5"}}}, true},
		"two may be members":  {core.GroupStatus{}, false},
		"two were never made": {core.GroupStatus{New: []string{"c-4", "c-5"}}, true},
	} {
		c.g.Bootstrapped, c.g.ViewMax = true, 3
		o := core.Observation{Cluster: core.Cluster{Status: core.Status{Group: &c.g}}}
		seen := verdict{agreed: true, members: map[string]core.ViewMember{}}
		for i, name := range []string{"c-1", "c-2", "c-3", "c-4", "c-5"} {
			o.Instances = append(o.Instances, core.Instance{Name: name, Ordinal: i + 1})
			if i < 3 {
				seen.members[name] = core.ViewMember{Host: name, State: core.MemberOnline}
			}
		}
		d := newDecision(&o)
		d.seen = seen
		for what, size := range map[string]int{"fenced": d.size(), "made anew": d.sizeWithout()} {
			if why := d.cannotSpare("c-3", size); (why == "") != c.want {
				t.Errorf("%s: one is %s: %q", name, what, why)
			}
		}
	}
}
