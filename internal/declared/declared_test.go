package declared_test

import (
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
)

func TestTheModeOfASpecIsItsTopology(t *testing.T) {
	for mode, want := range map[string]core.Topology{
		"":                        core.TopologyAsync,
		v1alpha1.ReplicationAsync: core.TopologyAsync,
		v1alpha1.ReplicationGroup: core.TopologyGroup,
	} {
		spec := v1alpha1.ClusterSpec{}
		spec.Replication.Mode, spec.MySQL.SemiSync = mode, &v1alpha1.SemiSyncSpec{Enabled: true}
		if got := declared.Topology(&spec); got != want {
			t.Errorf("the mode %q is the topology %s", mode, got)
		}
		if waits := declared.SemiSynchronous(&spec) != nil; waits != (want == core.TopologyAsync) {
			t.Errorf("commits wait for replicas in the mode %q: %v", mode, waits)
		}
	}
}

// An object that the API server did not default has what it would have put there.
func TestWhatASpecDoesNotSayIsTheDefaultOfTheAPI(t *testing.T) {
	off := false
	said := v1alpha1.ClusterSpec{EnablePrimaryLease: &off, Bootstrap: &v1alpha1.BootstrapSpec{
		Recovery: &v1alpha1.RecoverySpec{}}}
	said.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: v1alpha1.DurabilityQuorum}
	waits := v1alpha1.ClusterSpec{}
	waits.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true}
	for name, c := range map[string]struct {
		spec  v1alpha1.ClusterSpec
		mode  core.DurabilityMode
		lease bool
		first core.DataOrigin
	}{
		"nothing is said": {v1alpha1.ClusterSpec{}, core.DurabilityAsync, true, core.OriginInitialized},
		"commits wait":    {waits, core.DurabilityPreferred, true, core.OriginInitialized},
		"all is said":     {said, core.DurabilityQuorum, false, core.OriginRestored},
	} {
		if mode := declared.DataDurability(&c.spec); mode != c.mode {
			t.Errorf("%s: commits wait for %s", name, mode)
		}
		if lease := declared.PrimaryLease(&c.spec); lease != c.lease {
			t.Errorf("%s: the primary keeps a Lease: %v", name, lease)
		}
		if first := declared.FirstData(&c.spec); first != c.first {
			t.Errorf("%s: the first data come from %v", name, first)
		}
	}
}

// TestTheTimesThatASpecDoesNotSayAreThoseOfTheAPI holds them to the defaults that the API server writes.
func TestTheTimesThatASpecDoesNotSayAreThoseOfTheAPI(t *testing.T) {
	said := v1alpha1.ClusterSpec{MaxStartDelay: 11, MaxStopDelay: 12, MaxSwitchoverDelay: 13, MaxSwitchoverPause: 14}
	said.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{TimeoutMillis: new(int32(0))}
	type times struct{ start, stop, switchover, pause, acks time.Duration }
	for name, c := range map[string]struct {
		spec v1alpha1.ClusterSpec
		want times
	}{
		"nothing is said": {v1alpha1.ClusterSpec{}, times{time.Hour, 30 * time.Minute, time.Hour, 5 * time.Second,
			10 * time.Second}},
		"all is said": {said, times{11 * time.Second, 12 * time.Second, 13 * time.Second, 14 * time.Second, 0}},
	} {
		got := times{declared.MaxStart(&c.spec), declared.MaxStop(&c.spec), declared.SwitchoverLimit(&c.spec),
			declared.SwitchoverPause(&c.spec), declared.AckTimeout(&c.spec)}
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWhatASpecDoesNotSayOfAGroupIsTheDefaultOfTheAPI holds that what it says is kept, and that it is not changed.
func TestWhatASpecDoesNotSayOfAGroupIsTheDefaultOfTheAPI(t *testing.T) {
	spec := v1alpha1.ClusterSpec{}
	for _, said := range []*v1alpha1.GroupReplicationSpec{nil, {}} {
		spec.Replication.GroupReplication = said
		if g := declared.Group(&spec); g.Consistency != "BEFORE_ON_PRIMARY_FAILOVER" ||
			g.ExitStateAction != "READ_ONLY" || *g.AutoRejoinTries != 3 || *g.MemberExpelTimeoutSeconds != 0 ||
			*g.UnreachableMajorityTimeoutSeconds != 0 ||
			g.RecoverTotalOutage != v1alpha1.TotalOutageManual || g.GroupName != "" {
			t.Errorf("where nothing is said, it is %+v", g)
		}
	}
	if said := spec.Replication.GroupReplication; said.Consistency != "" || said.AutoRejoinTries != nil {
		t.Errorf("the spec was changed: %+v", said)
	}
	spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{Consistency: "AFTER",
		AutoRejoinTries: new(int32(0)), RecoverTotalOutage: v1alpha1.TotalOutageAutomatic}
	if g := declared.Group(&spec); g.Consistency != "AFTER" || *g.AutoRejoinTries != 0 ||
		g.RecoverTotalOutage != v1alpha1.TotalOutageAutomatic {
		t.Errorf("what was said is %+v", g)
	}
}

func TestWhereTheServerIsReachedOfWhichTheFirstDataAre(t *testing.T) {
	type parameters = map[string]v1alpha1.ConnectionParameter
	for want, is := range map[string]parameters{
		"":                    nil,
		"db.example.com:3306": {"host": "db.example.com"},
		"[fd00::1]:3307":      {"host": "fd00::1", "port": "3307"},
	} {
		spec := v1alpha1.ClusterSpec{
			Bootstrap: &v1alpha1.BootstrapSpec{Recovery: &v1alpha1.RecoverySpec{Source: "old"}},
			ExternalClusters: []v1alpha1.ExternalCluster{
				{Name: "other", ConnectionParameters: parameters{"host": "other"}},
				{Name: "old", ConnectionParameters: is}}}
		if got := declared.SourceAddress(&spec); got != want {
			t.Errorf("of %v: %q", is, got)
		}
	}
	if got := declared.SourceAddress(&v1alpha1.ClusterSpec{}); got != "" {
		t.Errorf("of none: %q", got)
	}
}
