package group

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// Two instances that the group went on without come back at once, and are recovering for
// a while: the one that went on is believed all that time, and they have a say afterwards.
func TestThoseLeftOutHaveASayAgainOnceTheViewHasThem(t *testing.T) {
	now := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	status := core.Status{Epoch: 4, CurrentPrimary: "c-1", TargetPrimary: "c-1", EstablishedAt: now, InstanceNames: []string{"c-1", "c-2", "c-3"},
		Group: &core.GroupStatus{Name: "g-1", Bootstrapped: true, Primary: "c-1", HasQuorum: true, ViewMax: 1, LeftOut: []string{"c-2", "c-3"}}}
	for _, state := range []core.MemberState{core.MemberRecovering, core.MemberRecovering, core.MemberOnline} {
		o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Wanted: 3, Group: &core.Group{}, Status: status}}
		for n, name := range status.InstanceNames {
			own, role := state, core.MemberSecondary
			if name == "c-1" {
				own, role = core.MemberOnline, core.MemberPrimary
			}
			view := &core.GroupView{State: own, Role: role, ViewID: "v:2", Members: []core.ViewMember{
				{Host: "c-1", State: core.MemberOnline, Role: core.MemberPrimary}, {Host: "c-2", State: state, Role: core.MemberSecondary}, {Host: "c-3", State: state, Role: core.MemberSecondary}}}
			o.Instances = append(o.Instances, core.Instance{Name: name, Ordinal: n + 1, Pod: core.Known(core.Pod{Exists: true, Current: true, Ready: true}, now, now),
				Volume: core.Known(core.Volume{Exists: true, Bound: true}, now, now),
				Report: core.Known(core.Report{Instance: name, State: core.Running, Data: core.DataPopulated, Server: &core.Server{UUID: name, Group: view}}, now, now)})
		}
		status = Decide(o).Status
		if !status.Group.HasQuorum || len(status.Group.LeftOut) > 0 {
			t.Fatalf("while they are %s: quorum %t, left out %v: %s", state, status.Group.HasQuorum, status.Group.LeftOut, status.Reason)
		}
	}
}
