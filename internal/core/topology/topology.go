// Package topology chooses who decides for a cluster: the one place at which the
// topologies are told apart.
package topology

import (
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/async"
	"cnmsql.co/internal/core/group"
)

// Decide says what to do about a cluster, whatever its topology.
func Decide(o core.Observation) core.Plan {
	if o.Cluster.Group != nil {
		return group.Decide(o)
	}
	return async.Decide(o)
}
