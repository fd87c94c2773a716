package instance

import (
	"context"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/declared"
	"cnmsql.co/internal/mysql"
)

// topology is how a server that replicates differs from a member of a group.
type topology interface {
	// status asks the server for all that is reported of it.
	status(ctx context.Context, server *mysql.Server) (*core.Server, error)
	// noteRole holds what the server says against what was made of it; the mutex
	// is held.
	noteRole(server *core.Server)
	// receiveNothing has the server acknowledge nothing any more.
	receiveNothing(ctx context.Context) error
	// refuseClients keeps clients away from a server that was made read-only, until it is
	// a replica or writable again.
	refuseClients(ctx context.Context) error
	// notReady says why clients should not be sent here; "" if they may.
	notReady(r *agent.Readiness, f *agent.Facts, d agent.Decision) string
	// groupConfig is nil where there is no group.
	groupConfig(c *v1alpha1.Cluster) *mysql.GroupConfig
}

// topologies are their implementations here.
var topologies = map[core.Topology]func(*manager) topology{
	core.TopologyAsync: func(m *manager) topology { return replica{m} },
	core.TopologyGroup: func(m *manager) topology { return member{m} },
}

// topology is chosen here and nowhere else. The mode of a Cluster never changes.
func (m *manager) topology() topology {
	return topologies[get(m, func(s *state) core.Topology { return topologyOf(s.cluster.object) })](m)
}

// topologyOf a Cluster; that of the zero value before the Cluster is known.
func topologyOf(c *v1alpha1.Cluster) (of core.Topology) {
	if c != nil {
		of = declared.Topology(&c.Spec)
	}
	return of
}

// replica is an instance that is a primary or follows one.
type replica struct{ m *manager }

func (replica) status(ctx context.Context, server *mysql.Server) (*core.Server, error) {
	return server.Status(ctx)
}

func (t replica) noteRole(server *core.Server) { t.m.noteWritable(server) }

func (t replica) receiveNothing(ctx context.Context) error { return t.m.stopReceiving(ctx) }

func (t replica) refuseClients(ctx context.Context) error { return t.m.roles.RefuseClients(ctx) }

func (replica) notReady(r *agent.Readiness, f *agent.Facts, d agent.Decision) string {
	return r.Judge(f, d)
}

func (replica) groupConfig(*v1alpha1.Cluster) *mysql.GroupConfig { return nil }
