// Package declared reads out of a Cluster's spec what core decides by: which topology it was
// declared with, how its commits wait for replicas, whether its primary keeps a Lease, where its
// first data come from, how long things may take. It is the one place that looks at
// spec.replication.mode. It must not know what follows from a topology: that is asked of
// core.Topology.
package declared

import (
	"cmp"
	"net"
	"strconv"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/layout"
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

// AckTimeout is how long a commit waits for acknowledgements before it falls back to waiting for none, where it
// does not wait for ever.
func AckTimeout(spec *v1alpha1.ClusterSpec) time.Duration {
	if semi := spec.MySQL.SemiSync; semi != nil && semi.TimeoutMillis != nil {
		return time.Duration(*semi.TimeoutMillis) * time.Millisecond
	}
	return 10 * time.Second
}

// MaxStart is how long mysqld may take to accept connections.
func MaxStart(spec *v1alpha1.ClusterSpec) time.Duration { return seconds(spec.MaxStartDelay, 3600) }

// MaxStop is how long an instance may take to stop.
func MaxStop(spec *v1alpha1.ClusterSpec) time.Duration { return seconds(spec.MaxStopDelay, 1800) }

// SwitchoverLimit is how long a planned switchover may take.
func SwitchoverLimit(spec *v1alpha1.ClusterSpec) time.Duration {
	return seconds(spec.MaxSwitchoverDelay, 3600)
}

// SwitchoverPause is how long a planned switchover may stop writes.
func SwitchoverPause(spec *v1alpha1.ClusterSpec) time.Duration {
	return seconds(spec.MaxSwitchoverPause, 5)
}

// seconds that the spec tells, or else those that the API server writes where nothing is said.
func seconds(said, otherwise int32) time.Duration {
	return time.Duration(cmp.Or(said, otherwise)) * time.Second
}

// Group is what a spec says of a group, with the API's defaults for what it does not say.
func Group(spec *v1alpha1.ClusterSpec) v1alpha1.GroupReplicationSpec {
	out := v1alpha1.GroupReplicationSpec{}
	if said := spec.Replication.GroupReplication; said != nil {
		out = *said
	}
	out.Consistency = cmp.Or(out.Consistency, "BEFORE_ON_PRIMARY_FAILOVER")
	out.ExitStateAction = cmp.Or(out.ExitStateAction, "READ_ONLY")
	out.RecoverTotalOutage = cmp.Or(out.RecoverTotalOutage, v1alpha1.TotalOutageManual)
	out.AutoRejoinTries = cmp.Or(out.AutoRejoinTries, new(int32(3)))
	out.MemberExpelTimeoutSeconds = cmp.Or(out.MemberExpelTimeoutSeconds, new(int32(0)))
	out.UnreachableMajorityTimeoutSeconds = cmp.Or(out.UnreachableMajorityTimeoutSeconds, new(int32(0)))
	return out
}

// PrimaryLease reports whether the primary is to keep a Lease, where the topology has one.
func PrimaryLease(spec *v1alpha1.ClusterSpec) bool {
	return spec.EnablePrimaryLease == nil || *spec.EnablePrimaryLease
}

// FirstData is where the first data of the Cluster come from.
func FirstData(spec *v1alpha1.ClusterSpec) core.DataOrigin {
	switch from := Source(spec); {
	case spec.Bootstrap == nil || spec.Bootstrap.Recovery == nil:
		return core.OriginInitialized
	case from != nil && len(from.ConnectionParameters) > 0:
		return core.OriginImported
	default:
		return core.OriginRestored
	}
}

// Follows is the external server that the primary is to follow; "" for none.
func Follows(spec *v1alpha1.ClusterSpec) string {
	if r := spec.Replica; r != nil && (r.Enabled == nil || *r.Enabled) {
		return r.Source
	}
	return ""
}

// SourceAddress is where the external server is reached of which the first data are; "" where they are of none.
func SourceAddress(spec *v1alpha1.ClusterSpec) string {
	from := Source(spec)
	if from == nil || len(from.ConnectionParameters) == 0 {
		return ""
	}
	return net.JoinHostPort(string(from.ConnectionParameters["host"]), strconv.Itoa(ServerPort(from)))
}

// ServerPort is the port of an external server. The API server takes none that is no number.
func ServerPort(e *v1alpha1.ExternalCluster) int {
	if port, err := strconv.Atoi(string(e.ConnectionParameters["port"])); err == nil {
		return port
	}
	return layout.MySQLPort
}

// Source is what spec.bootstrap.recovery.source names; nil when it names nothing, or nothing that there is.
func Source(spec *v1alpha1.ClusterSpec) *v1alpha1.ExternalCluster {
	if spec.Bootstrap == nil || spec.Bootstrap.Recovery == nil {
		return nil
	}
	for i := range spec.ExternalClusters {
		if e := &spec.ExternalClusters[i]; e.Name == spec.Bootstrap.Recovery.Source && e.Name != "" {
			return e
		}
	}
	return nil
}
