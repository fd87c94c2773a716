package declared_test

import (
	"testing"

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
