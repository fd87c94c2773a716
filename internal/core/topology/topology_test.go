package topology

import (
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

func TestEveryTopologyHasWhoDecides(t *testing.T) {
	for _, of := range core.Topologies() {
		if deciders[of] == nil {
			t.Errorf("nobody decides for %s", of)
		}
	}
}

// TestEveryTopologyKeepsToWhatOnlyTheSpecSays whatever becomes of the primary.
func TestEveryTopologyKeepsToWhatOnlyTheSpecSays(t *testing.T) {
	now := time.Now()
	for _, of := range core.Topologies() {
		o := core.Observation{Now: now, Cluster: core.Cluster{Name: "c", Wanted: 1, Topology: of, Group: &core.Group{},
			VolumeSize: core.Size{Bytes: 2, Text: "2"}, Services: []core.Service{{Name: "c-old", UID: "service"}},
			Status: core.Status{InstanceNames: []string{"c-1"}}},
			Instances: []core.Instance{{Name: "c-1", Ordinal: 1,
				Volume: core.Known(core.Volume{Exists: true, UID: "volume", Asks: 1}, now, now)}}}
		plan := Decide(o)
		for _, want := range []core.Effect{core.GrowVolume{Instance: "c-1", VolumeUID: "volume", To: "2"},
			core.DeleteService{Name: "c-old", UID: "service"}} {
			if !slices.Contains(plan.Effects, want) {
				t.Errorf("%s: it does not %s: %v", of, want, plan.Effects)
			}
		}
	}
}
