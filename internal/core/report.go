package core

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// State is an instance manager's word for what its mysqld is doing.
type State string

// States of an instance. Each but Running, Stopped, Fenced and Failed is on its
// way to another by itself.
const (
	// Starting says that the manager is up and has not looked at the data yet.
	Starting State = "Starting"
	// Empty says that there is no data; the manager waits to be told where it comes from.
	Empty State = "Empty"
	// Initializing says that mysqld is making an empty data directory.
	Initializing State = "Initializing"
	// Restoring says that data is being made from a backup, or copied from a server that is no instance.
	Restoring State = "Restoring"
	// AwaitingClone says that the server runs on scratch data and waits for a donor.
	AwaitingClone State = "AwaitingClone"
	// Cloning says that data is being copied from a donor.
	Cloning State = "Cloning"
	// Recovering says that mysqld was started and does not accept connections yet.
	Recovering State = "Recovering"
	// Running says that mysqld answers.
	Running State = "Running"
	// Hung says that the process lives and does not answer.
	Hung State = "Hung"
	// Stopped says that mysqld is not running.
	Stopped State = "Stopped"
	// Fenced says that a user asked for mysqld to be stopped.
	Fenced State = "Fenced"
	// Failed says that the instance cannot go on unless something outside changes.
	Failed State = "Failed"
)

// HungLimit is how long mysqld may be silent before it is killed where nobody takes over
// from it. What a busy server needs to answer the simplest of questions is far less.
const HungLimit = time.Minute

// DataState tells what the data directory holds.
type DataState string

// What a data directory holds. Only Populated data may ever be promoted.
const (
	DataUnknown   DataState = ""
	DataEmpty     DataState = "Empty"
	DataScratch   DataState = "Scratch"
	DataPopulated DataState = "Populated"
)

// Report is what an instance manager says about itself and its mysqld.
type Report struct {
	Instance string `json:"instance"`
	PodUID   string `json:"podUID"`
	Node     string `json:"node"`
	// Boot differs with every start of the manager.
	Boot string `json:"boot"`
	// Manager is the binary that runs; zero until it is known.
	Manager Binary `json:"manager,omitzero"`
	// ManagerRefused is why a binary did not take this one's place; nil when none was refused.
	ManagerRefused *RefusedBinary `json:"managerRefused,omitempty"`

	State State `json:"state"`
	// Reason is a CamelCase word for why, when State alone does not tell.
	Reason Reason `json:"reason,omitempty"`
	// Message is for people: what is wrong and what to do.
	Message string    `json:"message,omitempty"`
	Data    DataState `json:"data,omitempty"`
	// ConfigRefused is why mysqld, which runs, was not started with the parameters of the spec, but with those that
	// it served with before; "" where it was.
	ConfigRefused string `json:"configRefused,omitempty"`
	// TokenRefused tells whether the API server refuses the token with which this manager asks it, and has done so
	// for a while: the manager hears nothing of the Cluster, and can write nothing there.
	TokenRefused bool `json:"tokenRefused,omitempty"`
	// VolumeLocked tells whether this manager holds the lock on the data volume, so that no other
	// manager or mysqld of this node uses it.
	VolumeLocked bool `json:"volumeLocked,omitempty"`

	// SeenEpoch is the highest epoch the manager has seen.
	SeenEpoch int64 `json:"seenEpoch,omitempty"`
	// ViewEpoch is the highest epoch that the Cluster's own status was seen to have, as
	// the volume remembers it.
	ViewEpoch int64 `json:"viewEpoch,omitempty"`
	// LastWritable is the last epoch in which this data was writable.
	LastWritable int64 `json:"lastWritable,omitempty"`
	// WritableEpoch is the epoch in which the instance is the primary now: mysqld accepts writes, or Follows; 0
	// when it is not.
	WritableEpoch int64 `json:"writableEpoch,omitempty"`
	// Follows names the external server that the cluster follows, as far as the instance knows; of a primary, the
	// one from which it replicates itself. "" where a primary takes writes.
	Follows string `json:"follows,omitempty"`
	// Source is how far a primary has followed that server; nil for any other instance.
	Source *Source `json:"source,omitempty"`
	// NoWritesBelow is a promise kept on the volume: this instance will not
	// accept a write in any epoch below it.
	NoWritesBelow int64 `json:"fencedBelow,omitempty"`
	// NoReceivingBelow is the epoch below which nothing is received: the replication IO thread
	// stays stopped until the instance follows a primary of this epoch or a later one.
	NoReceivingBelow int64 `json:"frozenBelow,omitempty"`
	// Withheld is set while the instance surely neither receives nor vouches.
	Withheld *Withheld `json:"withheld,omitempty"`
	// ClusterSize is the number of members of which it counts a majority.
	ClusterSize int `json:"clusterSize,omitempty"`
	// Generation of the Cluster's spec that it goes by.
	Generation int64 `json:"generation,omitempty"`
	// Leased tells whether it isolates itself when neither its lease nor vouches are fresh,
	// should it be the primary.
	Leased bool `json:"leased,omitempty"`
	// ClientSessions that are open, other than the manager's and replication.
	// Counted when the instance was demoted last.
	ClientSessions int `json:"clientSessions,omitempty"`
	// Terminating tells whether the Pod is being stopped.
	Terminating bool `json:"terminating,omitempty"`

	// Version of mysqld, as the binary says.
	Version string `json:"version,omitempty"`
	// MysqldStarted is when mysqld was last started, by the instance's clock;
	// for people only.
	MysqldStarted time.Time `json:"mysqldStarted,omitzero"`
	// Restarts of mysqld since the manager started, or made its data.
	Restarts int `json:"restarts,omitempty"`

	// Server is nil when mysqld does not answer.
	Server *Server `json:"server,omitempty"`
	// Clone is nil when no clone was begun.
	Clone *Clone `json:"clone,omitempty"`
	// Restore is nil when the data were not restored.
	Restore *Restore `json:"restore,omitempty"`
	// Archive is set while this instance archives its binary logs.
	Archive *Archive `json:"archive,omitempty"`
	// Room is nil while it is not known.
	Room *Room `json:"room,omitempty"`
	// Errant are the transactions that the primary lacks, as the instance
	// itself found before following it.
	Errant gtid.Set `json:"errant,omitzero"`
	// ErrantEpoch is that of the primary that lacks them: an instance may not have seen yet
	// that there is another by now.
	ErrantEpoch int64 `json:"errantEpoch,omitempty"`
	// ErrantTimes is when they were committed; nil while that is not known.
	ErrantTimes *Times `json:"errantTimes,omitempty"`
	// Maintenance are those transactions that the primary lacked which changed no data: each
	// is one statement of maintenance in this instance's binary log, and nothing else.
	Maintenance gtid.Set `json:"maintenance,omitzero"`
	// Lagging tells whether what it applies is older than the user wants to be read. It begins
	// above the bound and ends at half of it.
	Lagging bool `json:"lagging,omitempty"`
	// NeedsReclone tells whether the primary has purged what this instance lacks.
	NeedsReclone bool `json:"needsReclone,omitempty"`
	// MayLack tells whether what it has acknowledged was not flushed, and it cannot show that it
	// was kept: what it holds is less than it may have acknowledged, until it is whole again.
	MayLack bool `json:"mayLack,omitempty"`
	// Former is the lineage of data that a deleted Cluster has left, until the present one has had a primary.
	Former Lineage `json:"former,omitzero"`
}

// Times is when the first and the last of some transactions were committed, by the
// clock of the server that committed them, in whole seconds; for people only.
type Times struct {
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Unknown is the number of those of which it is not known.
	Unknown uint64 `json:"unknown,omitempty"`
}

// Withheld is a promise kept on the volume: the instance acknowledges nothing and
// vouches for nobody below an epoch.
type Withheld struct {
	Below int64 `json:"below"`
	// Seconds for which it has been kept, by the instance's own clock.
	Seconds int `json:"seconds"`
}

// Withholds reports whether the instance keeps its promise to receive nothing, and to vouch for nobody, below
// an epoch.
func (r Report) Withholds(epoch int64) bool { return r.Withheld != nil && r.Withheld.Below >= epoch }

// Problem is why the instance is in its state, by its own word.
func (r Report) Problem() Problem { return Problem{Reason: r.Reason, Message: r.Message} }

// IsOfAnotherManager reports whether another process says it than said the former report, or the
// manager runs another binary.
func (r Report) IsOfAnotherManager(former Report) bool {
	return r.Boot != former.Boot || r.Manager.Digest != former.Manager.Digest
}

// WithoutPositions leaves out what changes with every transaction: reports that
// are equal without it call for no new decision. What a replica has executed and did
// not get from its source's own writes stays: it may be nobody else's.
func (r Report) WithoutPositions() Report {
	r.MysqldStarted = time.Time{}
	r.Archive, r.Restore, r.Room = r.Archive.lasting(), r.Restore.lasting(), r.Room.lasting()
	if r.Withheld != nil {
		r.Withheld = &Withheld{Below: r.Withheld.Below}
	}
	if r.Server == nil {
		return r
	}
	s := *r.Server
	s.Executed, s.Purged, s.Owned = r.Server.Foreign(), gtid.Set{}, gtid.Set{}
	if r.Follows != "" { // all that is executed is of another server than the source, and nobody's own
		s.Executed = gtid.Set{}
	}
	r.Source = r.Source.lasting()
	s.SemiSync.WaitSessions = 0
	if s.Replication != nil {
		c := *s.Replication
		c.Retrieved, c.Received, c.LagSeconds = gtid.Set{}, "", 0
		s.Replication = &c
	}
	if s.HasView() {
		v := *s.Group
		v.Received, v.LagSeconds = gtid.Set{}, 0
		s.Group = &v
	}
	r.Server = &s
	return r
}

// HasMoved reports whether the server's position is another by now.
func (r Report) HasMoved(now Report) bool {
	return r.Server != nil && now.Server != nil && !r.Server.Holds().Equal(now.Server.Holds())
}

// Server is what a mysqld that answers says of itself.
type Server struct {
	UUID          string `json:"uuid"`
	SuperReadOnly bool   `json:"superReadOnly"`
	// ReadOnly tells whether it takes writes of nobody but administrators.
	// SuperReadOnly entails it.
	ReadOnly bool `json:"readOnly,omitempty"`
	// Offline tells whether it lets in only who has CONNECTION_ADMIN.
	Offline  bool     `json:"offline,omitempty"`
	Executed gtid.Set `json:"executed"`
	// Owned are in the binary log, or about to be, and not executed yet: commits of a server
	// that takes writes. Read before Executed, so that nothing is in neither.
	Owned  gtid.Set `json:"owned,omitzero"`
	Purged gtid.Set `json:"purged"`
	// Replication is nil when no source is configured.
	Replication *Replication `json:"replication,omitempty"`
	SemiSync    SemiSync     `json:"semiSync"`
	// Group is nil where the server is not made for a group.
	Group *GroupView `json:"group,omitempty"`
	// DataRemoved tells whether its group had begun to replace its data by another member's, and
	// that came to nothing: the users' data is gone then, whatever Executed says.
	DataRemoved bool `json:"dataRemoved,omitempty"`
}

// Holds is everything the server has, executed or only received. What counts in
// an election.
func (s *Server) Holds() gtid.Set {
	switch {
	case s.HasView():
		return s.Executed.Union(s.Group.Received)
	case s.Replication == nil:
		return s.Executed
	}
	return s.Executed.Union(s.Replication.Retrieved)
}

// Logged is all that the server has in its binary log, executed or waiting for
// acknowledgements.
func (s *Server) Logged() gtid.Set { return s.Executed.Union(s.Owned) }

// Lag is how many seconds old what it applies is, of a server that follows a primary.
func (s *Server) Lag() (seconds float64, follows bool) {
	switch {
	case s.Replication != nil:
		return s.Replication.LagSeconds, true
	case s.HasView() && s.Group.State == MemberOnline && s.Group.Role == MemberSecondary:
		return s.Group.LagSeconds, true
	}
	return 0, false
}

// Foreign is what a replica has executed of other servers than its source: it stays
// the same while all it does is follow.
func (s *Server) Foreign() gtid.Set {
	if s.Replication == nil || s.Replication.SourceUUID == "" {
		return gtid.Set{}
	}
	return s.Executed.Without(s.Replication.SourceUUID)
}

// A source that has nothing to send says so every HeartbeatPeriod; a replica that has
// heard nothing for SilentAfter has lost it, long before its connection breaks.
const (
	HeartbeatPeriod = 500 * time.Millisecond
	SilentAfter     = 1250 * time.Millisecond
)

// A manager says something every TellEvery at least. One that has said nothing for AskAfter, which is a
// little more, is asked whether it is there. It is given up CutAfter its last word if not even its kernel
// acknowledges that, and MuteAfter it if only the kernel does.
const (
	TellEvery = time.Second
	AskAfter  = 1250 * time.Millisecond
	CutAfter  = 1750 * time.Millisecond
	MuteAfter = 3 * time.Second
)

// Replication is the state of the replication channel.
type Replication struct {
	SourceHost string `json:"sourceHost"`
	SourceUUID string `json:"sourceUUID,omitempty"`
	// IORunning tells whether it is connected to the source; IOConnecting, whether it
	// tries; Silent, whether it is connected, and nothing was received for SilentAfter,
	// not even a heartbeat.
	IORunning bool `json:"ioRunning"`
	Silent    bool `json:"silent,omitempty"`
	// NoSpace tells whether its receiver waits for space on its own volume, or was ended
	// while it did: that nothing is received says nothing about the source.
	NoSpace      bool   `json:"noSpace,omitempty"`
	IOConnecting bool   `json:"ioConnecting,omitempty"`
	SQLRunning   bool   `json:"sqlRunning"`
	IOError      string `json:"ioError,omitempty"`
	// IOErrno is the number of IOError, for example 1045.
	IOErrno int `json:"ioErrno,omitempty"`
	// Refused is why the source, which is reached, does not let the replica in; "" when
	// it does, or when nothing is heard from it.
	Refused  Refused `json:"refused,omitempty"`
	SQLError string  `json:"sqlError,omitempty"`
	// CopyHinders tells whether SQLError is that a copy of this server's data is being taken,
	// during which it does not do what the applier was to do. It does once the copy is over.
	CopyHinders bool     `json:"copyHinders,omitempty"`
	Retrieved   gtid.Set `json:"retrieved"`
	// Received is how far the source's log was received, and how many heartbeats were. Whoever
	// asks more than once can tell whether anything comes; mysqld itself does not always.
	Received string `json:"-"`
	// LagSeconds is how old the transaction is that is being applied, or was the last
	// one when it was received, whichever is more; 0 when all that the source had is
	// applied. By the clocks of both.
	LagSeconds float64 `json:"lagSeconds"`
	// DelaySeconds is how long after its commit each transaction is applied on purpose.
	DelaySeconds int `json:"delaySeconds,omitempty"`
}

// Hears reports whether what the source sends is received.
func (r *Replication) Hears() bool { return r.IORunning && !r.Silent && !r.NoSpace }

// Refused is why a source does not let a replica in, or send to it.
type Refused string

// Why a source refuses a replica. Each is the source's own word: the network between
// them carries.
const (
	// RefusedLogin says that the account is unknown, has another password, is locked,
	// or may not replicate.
	RefusedLogin Refused = "Login"
	// RefusedTooMany says that the source takes no more connections, of anybody or of this account.
	RefusedTooMany Refused = "TooManyConnections"
	// RefusedTLS says that the two do not agree on certificates.
	RefusedTLS Refused = "TLS"
)

// SemiSync is the state of semi-synchronous replication, both sides.
type SemiSync struct {
	SourceEnabled bool `json:"sourceEnabled,omitempty"`
	// SourceActive is false after a fall-back to asynchronous replication, and unless SourceEnabled.
	SourceActive bool `json:"sourceActive,omitempty"`
	// Acks is the number of acknowledgements each commit waits for.
	Acks int `json:"acks,omitempty"`
	// Clients is the number of attached semi-synchronous replicas; 0 unless SourceEnabled.
	Clients int `json:"clients,omitempty"`
	// Blocks tells whether a commit waits for ever, rather than falling back to asynchronous.
	Blocks         bool `json:"blocks,omitempty"`
	WaitSessions   int  `json:"waitSessions,omitempty"`
	ReplicaEnabled bool `json:"replicaEnabled,omitempty"`
	// LocksAccounts tells whether one of the sessions that wait changes an account, so that nobody
	// can log in until it is acknowledged.
	LocksAccounts bool `json:"locksAccounts,omitempty"`
	// Strangers are servers that acknowledged commits lately, as user@host, and are no instances. Their
	// connections were ended.
	Strangers string `json:"strangers,omitempty"`
	// Order is the number of the last order about acknowledgements that the manager obeyed,
	// and OrderEpoch of which epoch it was; read before all else here.
	Order      int64 `json:"order,omitempty"`
	OrderEpoch int64 `json:"orderEpoch,omitempty"`
}

// OrderIn is the number of the last order about acknowledgements of an epoch that was
// obeyed; 0 when none was.
func (s SemiSync) OrderIn(epoch int64) int64 {
	if s.OrderEpoch != epoch {
		return 0
	}
	return s.Order
}

// Archive is how far the primary's binary logs are archived.
type Archive struct {
	// File, GTIDs and At are of the part that was stored last, by this manager's clock.
	File  string    `json:"file,omitempty"`
	GTIDs string    `json:"gtids,omitempty"`
	At    time.Time `json:"at,omitzero"`
	// CompleteUntil is until when the store has all that was acknowledged, and says so, though
	// nothing was written since At; by the same clock.
	CompleteUntil time.Time `json:"completeUntil,omitzero"`
	// Place is the store that it is archived to, for people; "" until the branch is written there. In another
	// place there are no backups of before.
	Place string `json:"place,omitempty"`
	// EncryptedTo is the recipient to which that part is encrypted; "" if it is not.
	EncryptedTo string `json:"encryptedTo,omitempty"`
	// PendingFiles are the binary logs that are not archived as a whole, and PendingBytes what of them is not; nil
	// where that is not known, as before the store has said what it has.
	PendingFiles *int   `json:"pendingFiles,omitempty"`
	PendingBytes *int64 `json:"pendingBytes,omitempty"`
	// RPO is how old the oldest transaction is that could be archived and is not, in seconds.
	RPO float64 `json:"rpo,omitempty"`
	// Behind tells whether the oldest transaction that is not archived is older than it should be.
	Behind bool `json:"behind,omitempty"`
	// Failure names why nothing is archived, and Message says it; "" while it is.
	Failure  string    `json:"failure,omitempty"`
	Message  string    `json:"message,omitempty"`
	FailedAt time.Time `json:"failedAt,omitzero"`
	// Missing was purged before it was archived.
	Missing string `json:"missing,omitempty"`
}

// lasting is what of it is worth a word at once.
func (a *Archive) lasting() *Archive {
	if a == nil {
		return nil
	}
	return &Archive{Place: a.Place, Behind: a.Behind, Failure: a.Failure, Missing: a.Missing}
}

// Clone is the progress of a clone.
type Clone struct {
	Donor string `json:"donor"`
	// Stage as the server names it, for example "FILE COPY".
	Stage   string `json:"stage,omitempty"`
	Percent int    `json:"percent"`
	// Error is that of the last attempt that failed, and Failures how many did in a row.
	Error    string `json:"error,omitempty"`
	Failures int    `json:"failures,omitempty"`
	// Pausing tells whether so many attempts failed that the next one is not to be ordered yet.
	Pausing bool `json:"pausing,omitempty"`
}

// HasFailedFrom reports whether the last copy of data to the instance failed, and this one gave it.
func (r Report) HasFailedFrom(donor string) bool {
	return r.Clone != nil && r.Clone.Error != "" && IsHostOf(r.Clone.Donor, donor)
}
