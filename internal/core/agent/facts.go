package agent

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Facts are all that an instance knows when it decides.
type Facts struct {
	Now time.Time
	// Me, PodUID and Node are this instance's.
	Me, PodUID, Node string
	// Cluster as it was last seen; nil if it never was.
	Cluster *Cluster

	// Locked tells whether this manager holds the lock on the volume.
	Locked bool
	Data   core.DataState
	// Foreign tells whether the data is of another cluster or another instance.
	Foreign bool
	// NoWritesBelow and NoReceivingBelow are promises given to the operator.
	NoWritesBelow, NoReceivingBelow int64
	// WasPrimaryEpoch is the last epoch in which this data was writable.
	WasPrimaryEpoch int64
	// Acks is the number of acknowledgements that was last applied, in AcksEpoch.
	Acks      int
	AcksEpoch int64

	// MayLack tells whether it may lack what it acknowledged.
	MayLack bool
	// Unnoted tells whether its volume does not tell in which page cache its
	// relay logs were written.
	Unnoted bool

	// TailEpoch is the epoch, under quorum, in which mysqld may have ended with
	// commits that waited for acknowledgements; 0 when it surely did not.
	TailEpoch int64
	// TailBase was executed when commits began to wait in that epoch.
	TailBase gtid.Set
	// Word is what the API server said last of who is promoted; nil if it was not asked.
	Word *Word

	// Elsewhere is what others hold of what this instance may have lost.
	Elsewhere Elsewhere

	// Member is set where the instance is to be a member of a group.
	Member MemberFacts

	// Activity is what goes on beside the decisions and takes its time.
	Activity Activity
	// MovedAt is when it was last seen to get on; zero where nobody looks.
	MovedAt time.Time
	Mysqld  Mysqld
	// Server is what mysqld says; nil when it does not answer.
	Server *core.Server
	// Replicating is the instance that the replication channel points at; ""
	// when there is none or it is nobody of this cluster.
	Replicating string
	// SourceHost is the host of the external server that the Cluster follows; "" where it follows none, or this
	// instance was not told yet how to reach it.
	SourceHost string
	// ReceiveFailedAt is when receiving was last begun, if it does not succeed.
	ReceiveFailedAt time.Time
	// ApplyTriedAt is when applying was last begun by itself.
	ApplyTriedAt  time.Time
	WritableEpoch int64
	// LeaseEpoch is the epoch at which this instance holds the lease; 0 if not.
	// LeaseRenewed is when the last renewal that succeeded was sent.
	LeaseEpoch   int64
	LeaseRenewed time.Time
	// ConfirmedEpoch is the epoch of which this instance has read from the API server that
	// it is its primary, since the lease was switched off last; 0 if it has not.
	ConfirmedEpoch int64
	// Vouches that peers gave for the present epoch.
	Vouches []Given
	// WasFenced tells whether mysqld was stopped because a human fenced this instance, and it has
	// not come back to its role since.
	WasFenced bool
	Primary   *Position
	// Maintenance are transactions that were found in the binary log to be statements of
	// maintenance, which change no data; Statements are some of those that are not.
	Maintenance gtid.Set
	Statements  []string
	// Asking tells whether the primary was asked for its position, or the API server for the Cluster, and
	// has not answered yet.
	Asking bool
	// AskFailed is why either could not be asked the last time.
	AskFailed string

	// Donor is where the operator ordered to clone from; "" without an order. CloneError is why the
	// last copy failed; "" when none did.
	Donor, CloneError string
	// RestartEpoch is the epoch of the last order to restart in place since mysqld ended.
	RestartEpoch int64
	// Problem is why mysqld cannot be started.
	Problem *Problem
	// TerminatingSince is when the Pod was asked to stop; zero if it was not.
	TerminatingSince time.Time
}

// Cluster is what an instance needs to know of its cluster.
type Cluster struct {
	Deleting    bool
	Generation  int64
	Established bool
	// FirstData is where the first data come from.
	FirstData core.DataOrigin
	Epoch     int64
	Promotion *core.Promotion
	// Topology is what the Cluster was declared with.
	Topology core.Topology
	// Group is what a member knows of its group; nil in a topology without one.
	Group *Membership
	// CurrentPrimary is who has reported that it is writable.
	CurrentPrimary string
	// GivesData is the primary that is closed for writes until others have its data, ""
	// while none is.
	GivesData string
	// SwitchoverFrom is the primary that hands over at this moment, "" while nobody does.
	SwitchoverFrom string
	// FailoverFrom is the primary that is being replaced, past spec.failoverDelay; "" while
	// none is.
	FailoverFrom string
	// DelayedFrom is the primary that has spec.failoverDelay to come back; "" for none.
	DelayedFrom string
	// PrimarySince is since when the view has told this of the primary; see tellsSamePrimary.
	PrimarySince time.Time
	Diverged     []string
	Fenced       []string
	// Names of the instances that exist, and how many exist or should.
	Names     []string
	Instances int
	// Members acknowledge and vouch. A status that was written before there were members,
	// or without a primary, has none.
	Members    []string
	Durability core.DurabilityMode
	// Lease tells whether a primary must hold one, by the spec; whether it goes by it is Leased's.
	Lease             bool
	MaxStart, MaxStop time.Duration
}

// Recoveries are those of the group; none where there is no group.
func (c *Cluster) Recoveries() []core.GroupRecovery {
	if c == nil {
		return nil
	}
	return c.Group.recoveries()
}

// IsMember reports whether the instance is counted on to acknowledge and to vouch, and so whether
// it may. Before there were members, everybody was.
func (c *Cluster) IsMember(name string) bool {
	return len(c.Members) == 0 || slices.Contains(c.Members, name)
}

// Size is of how many instances a primary counts a majority.
func (c *Cluster) Size() int {
	if len(c.Members) == 0 {
		return c.Instances
	}
	return len(c.Members)
}

// KeepsRelayLogs reports whether the instance keeps its relay logs when its mysqld ends: what it has acknowledged
// may be in them alone. An election counts on that for as long as the promise of the promotion stands, also where
// the spec does not ask for it any more.
func (c *Cluster) KeepsRelayLogs() bool {
	return c.Topology.KeepsRelayLogs() || c.Durability.KeepsRelayLogs() || c.Promotion.IsLossless()
}

// Activity is something that takes longer than a decision may wait.
type Activity string

// Activities.
const (
	NoActivity   Activity = ""
	Initializing Activity = "Initializing"
	Restoring    Activity = "Restoring"
	Cloning      Activity = "Cloning"
	Stopping     Activity = "Stopping"
	// Joining a group, Bootstrapping and Leaving it.
	Joining       Activity = "Joining"
	Bootstrapping Activity = "Bootstrapping"
	Leaving       Activity = "Leaving"
)

// Mysqld is the process.
type Mysqld struct {
	Up bool
	// Accepted tells whether it has answered since it was started.
	Accepted bool
	// Answers tells whether it has answered lately, and its volume is not stalled.
	Answers bool
	// AnsweredAt is when it was asked what it answered last.
	AnsweredAt time.Time
	// DiskStalled tells whether the volume has not completed a write for too long.
	DiskStalled bool
	// LacksSpace tells whether its commits wait for space on the volume.
	LacksSpace bool
	StartedAt  time.Time
	// DownSince is when it ended, or when the manager began.
	DownSince time.Time
	// Ended tells whether this manager has seen it end without having asked for it.
	Ended bool
	// MayWrite tells whether it was made writable since it was started and not surely made
	// read-only after that.
	MayWrite bool
	// LoginRefused tells whether it answers, and refuses the manager's account.
	LoginRefused bool
	// ToEnd tells whether this manager has told it to end.
	ToEnd bool
	// Ending tells whether it shuts down, for it answers that or has taken its socket away.
	Ending bool
	// Failures in a row: ends within ten seconds of the start, or before it accepted connections, and each
	// time that its own manager killed it.
	Failures int
	// DataRemoved tells whether it ended before it had answered, and a copy of another server's
	// data had begun to replace what is in its data directory, and did not end.
	DataRemoved bool
}

// MayHaveTail reports whether the log may end in what nobody acknowledged. What has recovered
// and accepts connections has committed all that it found.
func (m Mysqld) MayHaveTail() bool { return !m.Up || !m.Accepted }

// hangs reports whether mysqld has answered since its start, and answers nobody any more. A mysqld
// that waits for its volume does not count, for it would not end if it were killed. One that shuts
// down, as after a clone, has its time. One that refuses the manager's account answers.
func (f *Facts) hangs() bool {
	m := f.Mysqld
	if m.Ending && f.Cluster != nil && f.Now.Sub(m.AnsweredAt) < f.Cluster.MaxStop {
		return false
	}
	return m.Accepted && !m.Answers && !m.DiskStalled && !m.LoginRefused
}

// Problem is why mysqld cannot be started.
type Problem struct {
	core.Problem
	// Generation of the Cluster with which it was found.
	Generation int64
	// RetryAt is when to try again although nothing has changed.
	RetryAt time.Time
}

// Timings of decisions.
const (
	// VerdictWait is how long a crashed primary waits for the operator to say
	// whether another will be promoted.
	VerdictWait = 5 * time.Second
	// SwitchoverWait is how long a stopping primary waits for the operator to
	// begin a hand-over.
	SwitchoverWait = 30 * time.Second
	// AddressStays is how long the address of a Pod that is being stopped outlives its
	// mysqld: kube-proxy takes changes of a Service over once a second.
	AddressStays = 2 * time.Second
	// positionLife is how long a primary's position is good for a decision, and
	// positionRefresh when it is asked for again while it matters.
	positionLife    = 10 * time.Second
	positionRefresh = 4 * time.Second
	// receiveRetry is the pause before a source that refused is tried again.
	receiveRetry = 5 * time.Second
	// applyRetry is the pause before an applier that a copy hinders is started again.
	applyRetry = 5 * time.Second
)

func (f *Facts) promotion() *core.Promotion {
	if f.Cluster == nil {
		return nil
	}
	return f.Cluster.Promotion
}

// Permitted tells whether this instance may be writable now, by what it knows itself. The promotion permits it: it
// names this very Pod or its node, and no promise forbids it. Besides, what changes from one moment to the next must
// be so now: the promotion is of this instance and of the present epoch, and the volume is locked, and its own.
//
// The operator asks less (mayGoOn in package async): whether the instance will be permitted once that is so. It cannot
// know what is so now, and must not give up an instance that waits for its lock. The part that both ask is
// core.Promotion.Permits.
func (f *Facts) Permitted() bool {
	p := f.promotion()
	return p != nil && p.Instance == f.Me && p.Epoch == f.Cluster.Epoch &&
		p.Permits(f.PodUID, f.Node, f.NoWritesBelow) && f.Locked && !f.Foreign
}

// MayOpen tells whether this instance may begin to take writes in an epoch, in the very moment
// before it does: it may have taken long to get there, and the lease has run on.
func (f *Facts) MayOpen(epoch int64) bool {
	return f.Permitted() && f.Cluster.Promotion.Epoch == epoch && f.MayStayWritable()
}

// ReceivesNothing reports whether no mysqld runs that could receive from a source, or one starts
// with replication stopped and is not let begin. A mysqld that is being stopped goes on receiving,
// and acknowledging, until it is told not to.
func (f *Facts) ReceivesNothing() bool {
	return !f.Mysqld.Up || !f.Mysqld.Accepted || f.Activity != NoActivity && f.Activity != Stopping
}

// GivesData reports whether this instance was the primary, is read-only until others have its data,
// and takes writes again then.
func (f *Facts) GivesData() bool {
	p := f.promotion()
	return p != nil && p.Instance == f.Me && f.Cluster.GivesData == f.Me && f.NoWritesBelow > p.Epoch
}

// primary is who is to be followed: promoted, and by its own word writable.
func (f *Facts) primary() string {
	p := f.promotion()
	if p == nil || p.Instance == f.Me || p.Instance != f.Cluster.CurrentPrimary {
		return ""
	}
	return p.Instance
}

func (f *Facts) listedDiverged() bool {
	return f.Cluster != nil && slices.Contains(f.Cluster.Diverged, f.Me)
}

func (f *Facts) listedFenced() bool {
	return f.Cluster != nil && slices.Contains(f.Cluster.Fenced, f.Me)
}

// loginRefused reports whether the source refuses the password that the channel was given, some
// time after receiving failed. The Secret may hold another password by now.
func (f *Facts) loginRefused() bool {
	return f.Server.Replication.Refused == core.RefusedLogin && f.Now.Sub(f.ReceiveFailedAt) >= receiveRetry
}

func (f *Facts) receiving() bool {
	r := f.Server.Replication
	return r != nil && (r.IORunning || r.IOConnecting)
}
