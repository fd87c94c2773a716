// Package topology has who decides for a cluster: the one place that knows the packages of all
// topologies.
package topology

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/async"
	"cnmsql.co/internal/core/group"
)

// deciders of the topologies. Another topology is another package, and another row here.
var deciders = map[core.Topology]func(core.Observation) core.Plan{
	core.TopologyAsync: async.Decide,
	core.TopologyGroup: group.Decide,
}

// Decide says what to do about a cluster, whatever its topology.
func Decide(o core.Observation) core.Plan { return deciders[o.Cluster.Topology](o) }
