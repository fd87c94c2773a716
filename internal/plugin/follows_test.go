package plugin

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// following is a cluster of which the primary follows an external server.
func following() *Facts {
	f := healthy()
	s := &f.Cluster.Status
	s.Diagnosis = string(core.PrimaryFollows)
	s.PhaseReason = "demo-1 follows old, and takes no writes; all 3 instances are healthy"
	s.Promotion.Follows, s.Promotion.LosslessSince, s.Promotion.RequiredAcks = "old", 0, 0
	f.Cluster.Spec.Replica = &v1alpha1.ReplicaSpec{Source: "old"}
	r := f.Live["demo-1"].Report
	r.Follows = "old"
	r.Server.SemiSync, r.Server.SuperReadOnly = core.SemiSync{}, true
	r.Server.Replication = &core.Replication{SourceHost: "mysql.example.com", IORunning: true, SQLRunning: true}
	r.Source = &core.Source{Name: "old", Generation: 1, Executed: set(uuid1 + ":1-1003"), Writable: true}
	return f
}

// takingOver is one that is to take writes, and whose server cannot be asked.
func takingOver() *Facts {
	f := following()
	f.Cluster.Spec.Replica.Enabled = new(bool)
	s := &f.Cluster.Status
	s.Phase, s.PhaseReason = string(core.PhaseBlocked), "demo-1 is to take over, but it is not known whether it has "+
		"all that old has executed: connection refused"
	s.Blocked = &v1alpha1.Notice{Reason: string(core.RefusalTakeOver), Message: s.PhaseReason}
	f.Live["demo-1"].Report.Source = &core.Source{Name: "old", Problem: "connection refused"}
	return f
}

// TestAFollowerIsOverriddenOnlyToTakeOver refuses to promote anybody else by force, and before the user wishes it.
func TestAFollowerIsOverriddenOnlyToTakeOver(t *testing.T) {
	said := words{"demo-1": word{}}
	for _, c := range []struct {
		of *Facts
		to string
		ok bool
	}{{following(), "demo-1", false}, {takingOver(), "demo-2", false}, {takingOver(), "demo-1", true}} {
		if err := mayOverride(c.of.Cluster, c.to, said); (err == nil) != c.ok {
			t.Errorf("to %s: %v", c.to, err)
		}
	}
}
