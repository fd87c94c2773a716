// Package declared reads out of a Cluster's spec what core decides by: which topology it was
// declared with, how its commits wait for replicas, whether its primary keeps a Lease, where its
// first data come from. It is the one place that looks at spec.replication.mode. It must not know
// what follows from a topology: that is asked of core.Topology.
package declared

import (
	"cmp"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// Topology is what a Cluster was declared with. A mode that is not known is that of the API's
// default: the API server takes no other.
func Topology(spec *v1alpha1.ClusterSpec) core.Topology {
	for _, t := range core.Topologies() {
		if t.String() == spec.Replication.Mode {
			return t
		}
	}
	return core.TopologyAsync
}

// SemiSynchronous is how commits wait for replicas; nil where they do not, or where the topology
// decides by itself for whom they wait.
func SemiSynchronous(spec *v1alpha1.ClusterSpec) *v1alpha1.SemiSyncSpec {
	if semi := spec.MySQL.SemiSync; semi != nil && semi.Enabled && Topology(spec).UsesSemiSync() {
		return semi
	}
	return nil
}

// DataDurability is what commits wait for.
func DataDurability(spec *v1alpha1.ClusterSpec) core.DurabilityMode {
	semi := SemiSynchronous(spec)
	if semi == nil {
		return core.DurabilityAsync
	}
	return core.DurabilityMode(cmp.Or(semi.DataDurability, v1alpha1.DurabilityPreferred))
}

// PrimaryLease reports whether the primary is to keep a Lease, where the topology has one.
func PrimaryLease(spec *v1alpha1.ClusterSpec) bool {
	return spec.EnablePrimaryLease == nil || *spec.EnablePrimaryLease
}

// FirstData is where the first data of the Cluster come from.
func FirstData(spec *v1alpha1.ClusterSpec) core.DataOrigin {
	if spec.Bootstrap != nil && spec.Bootstrap.Recovery != nil {
		return core.OriginRestored
	}
	return core.OriginInitialized
}
