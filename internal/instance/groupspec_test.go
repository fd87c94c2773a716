package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func TestWhatTheSpecSaysOfTheGroupIsWhatItsMembersAreConfiguredWith(t *testing.T) {
	m := aMember(t)
	m.membership.opt.GroupLocal = "10.0.0.2:33061"
	c := &v1alpha1.Cluster{}
	got := *member{m}.groupConfig(c)
	if got.Consistency != "BEFORE_ON_PRIMARY_FAILOVER" || got.ExitStateAction != "READ_ONLY" ||
		got.AutoRejoinTries != 3 || got.ExpelTimeout != 0 || got.MajorityTimeout != 0 || got.Name != "" {
		t.Errorf("where nothing is said, it is %+v", got)
	}
	c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{Consistency: "AFTER",
		ExitStateAction: "ABORT_SERVER", AutoRejoinTries: new(int32(0)),
		MemberExpelTimeoutSeconds: new(int32(7)), UnreachableMajorityTimeoutSeconds: new(int32(11)),
		GroupName: "chosen"}
	c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{GroupName: "pinned"}
	got = *member{m}.groupConfig(c)
	if got.Consistency != "AFTER" || got.ExitStateAction != "ABORT_SERVER" || got.AutoRejoinTries != 0 ||
		got.ExpelTimeout != 7 || got.MajorityTimeout != 11 || got.Name != "pinned" ||
		got.LocalAddress != "10.0.0.2:33061" {
		t.Errorf("it is %+v", got)
	}
}

func TestAGroupHasNoLeaseWhateverIsWished(t *testing.T) {
	for mode, want := range map[string]bool{v1alpha1.ReplicationGroup: false, v1alpha1.ReplicationAsync: true} {
		c := &v1alpha1.Cluster{}
		c.Spec.Replication.Mode, c.Spec.EnablePrimaryLease = mode, new(true)
		if v, err := clusterFor(c, "db-1"); err != nil || v.Lease != want {
			t.Errorf("%s: %t, %v", mode, v.Lease, err)
		}
	}
}

// TestAGroupIsNotSemiSynchronousWhateverIsWished: its manifest may say so, without effect.
func TestAGroupIsNotSemiSynchronousWhateverIsWished(t *testing.T) {
	for mode, want := range map[string]core.DurabilityMode{v1alpha1.ReplicationGroup: core.DurabilityAsync,
		v1alpha1.ReplicationAsync: core.DurabilityQuorum} {
		c := &v1alpha1.Cluster{}
		c.Spec.Replication.Mode = mode
		c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: v1alpha1.DurabilityQuorum}
		if v, err := clusterFor(c, "db-1"); err != nil || v.Durability != want {
			t.Errorf("%s: %s, %v", mode, v.Durability, err)
		}
	}
}
