package agent

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Decision is what to say and what to do.
type Decision struct {
	// State, Reason and Message are the manager's word.
	State   core.State
	Reason  core.Reason
	Message string
	// Errant and NeedsReclone are findings about the primary's position.
	Errant gtid.Set
	// ErrantEpoch is that of the primary that lacks them.
	ErrantEpoch  int64
	NeedsReclone bool
	// Actions to carry out in their order; none means to wait for a change.
	Actions []Action
}

// Action is one thing to do. Its String is for people and golden files.
type Action interface {
	fmt.Stringer
	action()
}

// MakeData makes a data directory: the cluster's first data, from nothing or from a backup, or
// scratch data to clone over.
type MakeData struct{ From core.DataOrigin }

// StartServer starts mysqld, read-only.
type StartServer struct{}

// StopServer ends mysqld: client sessions first. With Kill it is not asked.
type StopServer struct {
	Kill bool
	Why  string
}

// Abort ends the activity under way, and mysqld. With a Reason, it has failed: Why is told, and it
// begins anew after a pause.
type Abort struct {
	Reason core.Reason
	Why    string
}

// Exit ends the manager.
type Exit struct{}

// CloneFrom copies a donor's data over scratch data.
type CloneFrom struct{ Donor string }

// Demote makes mysqld refuse writes and closes client sessions, or kills it.
type Demote struct{ Why string }

// StopReceiving stops receiving from the source, and acknowledging.
type StopReceiving struct{}

// StartReceiving starts it.
type StartReceiving struct{}

// StartApplying starts to apply what was received.
type StartApplying struct{}

// AcceptClients lets clients in who were kept away while it was nobody's replica.
type AcceptClients struct{}

// GiveAcks sets whether this instance acknowledges as a replica.
type GiveAcks struct{ On bool }

// DropAcks has a replica's own commits wait for nobody, its applier's as well, unless a client
// waits: that one would read success.
type DropAcks struct{}

// WaitApplied waits a while until a set is executed. Alone: client sessions that are
// still there after the while are closed, for one of them may hold a lock that the
// applier waits for.
type WaitApplied struct {
	Set   gtid.Set
	Alone bool
}

// AskPrimary asks the primary for its position, after reading our own.
type AskPrimary struct {
	Instance string
	Epoch    int64
}

// Follow points replication at the primary and starts it.
type Follow struct {
	Instance string
	// Known is what this instance has executed or the primary holds. It may have received no
	// more than that: what it has is applied, whomever it follows.
	Known gtid.Set
}

// Refuses tells why this instance, which has received these transactions, must not follow yet;
// nil when it may.
func (a Follow) Refuses(retrieved gtid.Set) error {
	more := retrieved.Subtract(a.Known)
	if more.IsEmpty() {
		return nil
	}
	return fmt.Errorf("%s was received after it was decided to follow %s: it is decided again", more.Abbreviate(4),
		a.Instance)
}

// AcquireLease takes the primary's lease.
type AcquireLease struct{ Epoch int64 }

// ConfirmPromotion reads from the API server that the promotion of this epoch has not ended:
// without a lease to take, a view that is behind would permit what is of the past.
type ConfirmPromotion struct{ Epoch int64 }

// BecomePrimary makes mysqld writable in this epoch.
type BecomePrimary struct {
	Epoch int64
	Acks  int
	// Unheard did not say in time what they hold that this instance may have lost.
	Unheard []string
}

// BecomeFollower makes this instance the primary of this epoch that follows the external server of that name, and
// stays read-only.
type BecomeFollower struct {
	Epoch  int64
	Server string
}

// FollowServer points replication at the external server of that name and starts it.
type FollowServer struct{ Server string }

// BootstrapGroup makes the group: the first time, or, with Reboot, again when no
// member is left.
type BootstrapGroup struct{ Reboot bool }

// EndBootstrap has mysqld make no group any more when it is told to join one.
type EndBootstrap struct{}

// JoinGroup joins the group that there is.
type JoinGroup struct{}

// LeaveGroup ends the membership. A mysqld that has not left Within that time is killed, and
// has left then; 0 is never. Whoever Returns joins again without the pause after a membership.
type LeaveGroup struct {
	Why     string
	Within  time.Duration
	Returns bool
}

// SettleRole closes the sessions that were opened in another role.
type SettleRole struct{ Role core.MemberRole }

// CloseForWrites has a member of a group that should take no writes refuse them, and closes
// client sessions.
type CloseForWrites struct{}

// OpenForWrites has the primary of a group take writes.
type OpenForWrites struct{}

// AdmitMembers lets these addresses speak with the member, comma-separated, and no other.
type AdmitMembers struct{ Addresses string }

// HoldRejoin keeps mysqld from joining the group again by itself, or lets it do as the
// Cluster says.
type HoldRejoin struct{ On bool }

// HoldExpulsion keeps mysqld from having the group expel members that it does not reach, or
// lets it do as the Cluster says.
type HoldExpulsion struct{ On bool }

// RememberGroup keeps on the volume that this data is of a group that was made, and of which history of it.
type RememberGroup struct{ Of core.Lineage }

// ForgetFormer has the group forget the addresses of those who are not in this view of it.
type ForgetFormer struct{ View string }

// ForgetData ends mysqld and has the data directory recreated, to be cloned over.
type ForgetData struct{}

// RaiseProtocol has the group speak the protocol of the version that all its members
// run by now.
type RaiseProtocol struct{ Version string }

func (MakeData) action()         {}
func (StartServer) action()      {}
func (StopServer) action()       {}
func (Abort) action()            {}
func (Exit) action()             {}
func (CloneFrom) action()        {}
func (Demote) action()           {}
func (StopReceiving) action()    {}
func (StartReceiving) action()   {}
func (StartApplying) action()    {}
func (AcceptClients) action()    {}
func (GiveAcks) action()         {}
func (WaitApplied) action()      {}
func (DropAcks) action()         {}
func (AskPrimary) action()       {}
func (Follow) action()           {}
func (AcquireLease) action()     {}
func (BecomePrimary) action()    {}
func (BecomeFollower) action()   {}
func (FollowServer) action()     {}
func (ConfirmPromotion) action() {}
func (BootstrapGroup) action()   {}
func (EndBootstrap) action()     {}
func (JoinGroup) action()        {}
func (LeaveGroup) action()       {}
func (SettleRole) action()       {}
func (CloseForWrites) action()   {}
func (OpenForWrites) action()    {}
func (RaiseProtocol) action()    {}
func (ForgetFormer) action()     {}
func (ForgetData) action()       {}
func (AdmitMembers) action()     {}
func (RememberGroup) action()    {}
func (HoldRejoin) action()       {}
func (HoldExpulsion) action()    {}

func (a MakeData) String() string {
	switch a.From {
	case core.OriginInitialized:
		return "initialize the cluster's first data"
	case core.OriginRestored:
		return "restore the backup"
	case core.OriginImported:
		return "copy the data of the external server"
	default:
		return "initialize scratch data"
	}
}
func (StartServer) String() string { return "start mysqld" }
func (a StopServer) String() string {
	if a.Kill {
		return "kill mysqld (" + a.Why + ")"
	}
	return "stop mysqld (" + a.Why + ")"
}
func (a Abort) String() string {
	if a.Reason != "" {
		return "abort the activity (" + string(a.Reason) + ")"
	}
	return "abort the activity"
}
func (Exit) String() string           { return "exit" }
func (a CloneFrom) String() string    { return "clone from " + a.Donor }
func (a Demote) String() string       { return "demote (" + a.Why + ")" }
func (StopReceiving) String() string  { return "stop receiving" }
func (StartReceiving) String() string { return "start receiving" }
func (StartApplying) String() string  { return "start applying" }
func (AcceptClients) String() string  { return "let clients in" }
func (a GiveAcks) String() string     { return fmt.Sprintf("give acknowledgements: %t", a.On) }
func (DropAcks) String() string       { return "stop requiring acknowledgements" }
func (a WaitApplied) String() string {
	if a.Alone {
		return "wait until applied, without clients if it takes long: " + a.Set.Abbreviate(4)
	}
	return "wait until applied: " + a.Set.Abbreviate(4)
}
func (a AskPrimary) String() string { return "ask " + a.Instance + " for its position" }
func (a Follow) String() string     { return "follow " + a.Instance }
func (a ConfirmPromotion) String() string {
	return fmt.Sprintf("confirm the promotion of epoch %d", a.Epoch)
}
func (a AcquireLease) String() string { return fmt.Sprintf("take the Lease in epoch %d", a.Epoch) }
func (a BecomePrimary) String() string {
	text := fmt.Sprintf("become primary in epoch %d with %d acknowledgements", a.Epoch, a.Acks)
	if len(a.Unheard) > 0 {
		text += ", although " + strings.Join(a.Unheard, ", ") + " did not say what this instance may have lost"
	}
	return text
}
func (a BecomeFollower) String() string {
	return fmt.Sprintf("become the primary that follows %s in epoch %d", a.Server, a.Epoch)
}
func (a FollowServer) String() string { return "follow the external server " + a.Server }
func (a BootstrapGroup) String() string {
	if a.Reboot {
		return "reboot the group"
	}
	return "make the group"
}
func (EndBootstrap) String() string { return "have mysqld make no other group" }
func (JoinGroup) String() string    { return "join the group" }
func (a LeaveGroup) String() string {
	how := ""
	if a.Within > 0 {
		how = fmt.Sprintf(" within %s", a.Within)
	}
	if a.Returns {
		how += ", and return at once"
	}
	return "leave the group" + how + " (" + a.Why + ")"
}
func (a SettleRole) String() string {
	return "close the sessions that began before it became " + string(a.Role)
}
func (CloseForWrites) String() string { return "refuse writes, and close sessions" }
func (OpenForWrites) String() string  { return "take writes again" }
func (ForgetFormer) String() string   { return "have the group forget the addresses of former members" }
func (ForgetData) String() string     { return "delete what is left of its data" }
func (a RaiseProtocol) String() string {
	return "have the group speak the protocol of " + a.Version
}
func (a AdmitMembers) String() string { return "admit " + a.Addresses }
func (a HoldRejoin) String() string {
	if a.On {
		return "keep mysqld from joining the group again by itself"
	}
	return "let mysqld join the group again by itself"
}
func (a HoldExpulsion) String() string {
	if a.On {
		return "keep the group from expelling members"
	}
	return "let the group expel members"
}

func (a RememberGroup) String() string {
	return fmt.Sprintf("remember the group %s, last recovered in epoch %d", a.Of.Group, a.Of.Recovery)
}
