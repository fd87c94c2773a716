package core

import "time"

// Status is what was decided, kept in the Cluster's status: input of the next
// decision and output of this one.
type Status struct {
	Phase     Phase
	Reason    string
	Diagnosis Diagnosis
	State     ClusterState
	// Blocked is the refusal that stands in the way of all: nothing can be done until
	// something outside changes. Notices are what stands beside it, or without one.
	Blocked *Notice
	Notices []Notice
	// Past are the last operations that ended, newest last.
	Past []PastOperation

	CurrentPrimary   string
	CurrentPrimaryAt time.Time
	TargetPrimary    string
	TargetPrimaryAt  time.Time
	Epoch            int64
	Promotion        *Promotion
	// Group is set when the instances are members of a group.
	Group        *GroupStatus
	Operation    *Operation
	FailingSince time.Time
	LastFailover time.Time
	// Return is the last switchover that the old primary came back from; nil once another
	// instance has become primary.
	Return        *Return
	EstablishedAt time.Time
	// AdoptedFrom is the UID of the deleted Cluster whose volumes this one goes on with.
	AdoptedFrom string

	InstanceNames []string
	// Members are those of them that were heard to hold the cluster's data since they
	// exist: no other may acknowledge a commit or vouch for a primary. Who is one stays
	// one, whatever becomes of its volume, until it is removed. Empty in a status that was
	// written before there were members, and in a group.
	Members       []string
	LatestOrdinal int
	Diverged      []string
	Broken        []string
	Fenced        []string
	Ready         int
	// Durable tells whether commits wait for the wished acknowledgements; ""
	// when none are wished.
	Durable        DurableState
	DurableMessage string
	// CommitsHang tells whether they wait for more acknowledgements than replicas can give.
	CommitsHang bool
}

// IsOf reports whether the status is of an epoch.
func (s *Status) IsOf(epoch int64) bool { return s.Epoch == epoch }

// WaitsForNobody reports whether commits on the primary wait for no replica, though there are
// some: a failover can lose the last acknowledged writes.
func (s *Status) WaitsForNobody(c Cluster) bool {
	return c.Topology.UsesSemiSync() && s.Promotion != nil && c.Wanted > 1 && c.Durability.Wished(c.Wanted) == 0
}
