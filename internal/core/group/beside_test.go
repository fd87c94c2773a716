package group

import (
	"slices"
	"testing"

	"cnmsql.co/internal/core"
)

// TestARebootWaitsForWhoJoins holds that nobody joins a group of before while another is made: mysqld that looks for
// one cannot be told to stop, and finds it perhaps when all others have left. Who makes the group breaks off its own.
func TestARebootWaitsForWhoJoins(t *testing.T) {
	for joining, mayReboot := range map[string]bool{"": true, "c-1": true, "c-2": false} {
		o := outage(t)
		wish := *o.Cluster.Group
		wish.ForceQuorum = true
		o.Cluster.Group = &wish
		if in := o.Instance(joining); in != nil {
			r, _ := in.Report.Get()
			r.Reason = core.MemberJoining
			in.Report = core.Known(r, o.Now, o.Now)
		}
		plan := Decide(o)
		reboots := slices.Contains(plan.Effects, core.Effect(core.RebootGroup{Instance: "c-1", Epoch: 3}))
		staysOut := slices.Contains(plan.Effects, core.Effect(core.ReceivePromise{Instance: joining, Epoch: 3}))
		if reboots != mayReboot || staysOut == mayReboot {
			t.Errorf("%q joins: rebooted %t, told to stay out %t: %v", joining, reboots, staysOut, plan.Effects)
		}
	}
}
