package core

// Topology is how the instances of a cluster replicate. The zero value is a primary with its
// replicas, as spec.replication.mode is where nobody says anything.
type Topology int

// Topologies. Package declared reads one out of a Cluster's spec.
const (
	// TopologyAsync is a primary, and replicas that follow it.
	TopologyAsync Topology = iota
	// TopologyGroup is a group of Group Replication with one primary.
	TopologyGroup
)

// topology is what one implies. Where topologies differ in what they do and not in what is
// true of them, each has a file or package of its own: docs/where.md names them.
type topology struct {
	// name is that of the API.
	name string
	// runsGroup: mysqld runs Group Replication. There is a group, with a name and members.
	runsGroup bool
	// elects: the instances choose their primary. Otherwise the operator grants promotions.
	elects bool
	// lease: the primary holds a Lease while it is writable.
	lease bool
	// semiSync: spec.mysql.semiSync says for whom a commit waits.
	semiSync bool
	// majority: nobody takes writes without a majority of the instances.
	majority bool
	// tells: an instance that became the primary writes that into the status of its Cluster.
	tells bool
	// rings: an instance asks the operator to look, by an annotation of its Pod.
	rings bool
	// readers: each replica reads the binary log of the primary, which sees it do so.
	readers bool
	// relayLogs: what was acknowledged may be in relay logs alone, whatever the durability.
	relayLogs bool
	// offline: mysqld starts closed to clients, and its manager opens it.
	offline bool
}

// topologies and what they imply. All that follows from a topology is asked of the methods
// below, and tools/lint lets no other code compare topologies: another is another row.
var topologies = [...]topology{
	TopologyAsync: {name: "async", lease: true, semiSync: true, tells: true, readers: true, offline: true},
	TopologyGroup: {name: "groupReplication", runsGroup: true, elects: true, majority: true, rings: true,
		relayLogs: true},
}

// Topologies are all that there are.
func Topologies() (all []Topology) {
	for t := range topologies {
		all = append(all, Topology(t))
	}
	return all
}

// String is the topology's name in spec.replication.mode.
func (t Topology) String() string { return topologies[t].name }

// RunsGroup reports whether mysqld runs Group Replication: there are a group, its name and its
// members. What a server says of them is a fact of its report: see Server.HasView.
func (t Topology) RunsGroup() bool { return topologies[t].runsGroup }

// ElectsByItself reports whether the instances choose their primary, and say which epoch's
// writes are good. Otherwise an instance takes writes by a promotion that the operator granted.
func (t Topology) ElectsByItself() bool { return topologies[t].elects }

// HasLease reports whether the primary holds a Lease while it is writable.
func (t Topology) HasLease() bool { return topologies[t].lease }

// UsesSemiSync reports whether commits wait for replicas as spec.mysql.semiSync and what goes
// with it say. Otherwise the topology itself decides for whom a commit waits.
func (t Topology) UsesSemiSync() bool { return topologies[t].semiSync }

// NeedsMajority reports whether nobody takes writes while fewer than a majority of the
// instances are there.
func (t Topology) NeedsMajority() bool { return topologies[t].majority }

// TellsPrimary reports whether an instance that became the primary writes that into the status
// of its Cluster.
func (t Topology) TellsPrimary() bool { return topologies[t].tells }

// RingsDoorbell reports whether an instance asks the operator to look, by an annotation of its
// Pod.
func (t Topology) RingsDoorbell() bool { return topologies[t].rings }

// CountsReaders reports whether each replica reads the binary log of the primary, so that the
// primary knows who has not read it yet.
func (t Topology) CountsReaders() bool { return topologies[t].readers }

// KeepsRelayLogs reports whether an instance keeps its relay logs when its mysqld ends, whatever
// the durability: what was acknowledged may be in them alone.
func (t Topology) KeepsRelayLogs() bool { return topologies[t].relayLogs }

// StartsOffline reports whether mysqld starts closed to clients, for its manager to open.
func (t Topology) StartsOffline() bool { return topologies[t].offline }

// HasView reports whether a server says how it sees its group: it answers, and was made for one.
func (s *Server) HasView() bool { return s != nil && s.Group != nil }

// TellsView returns how an instance sees its group, and whether it tells that. A manager that says that
// mysqld does not run, or was started and answers nobody yet, has said that it is in none: mysqld
// joins only when the manager tells it to. One whose mysqld runs and does not answer tells nothing.
func (r *Report) TellsView() (*GroupView, bool) {
	switch {
	case r.Server.HasView():
		return r.Server.Group, true
	case r.Server == nil && r.State != Hung && r.State != Running:
		return &GroupView{State: MemberOffline}, true
	}
	return nil, false
}

// View is how a server sees its group: as one that is in none, where it says nothing of it. That is
// for who asks for what is surely so, a member that is online or the primary: see Report.TellsView.
func (s *Server) View() GroupView {
	if !s.HasView() {
		return GroupView{State: MemberOffline}
	}
	return *s.Group
}
