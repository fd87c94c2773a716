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
