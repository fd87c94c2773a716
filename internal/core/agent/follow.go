package agent

import (
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// follow has this instance, which is not the primary, replicate from the primary if it holds
// nothing that the primary lacks, and if the primary still has all it needs.
func follow(f *Facts) (Decision, bool) {
	return f.following(), true
}

func (f *Facts) following() Decision {
	d := Decision{State: core.Running}
	primary := f.primary()
	if primary == "" {
		d.Reason, d.Message = idleReason(f)
		d.Actions = append(leaveFormer(f), applying(f)...)
		return d
	}
	if f.IsFrozen() {
		d.Reason, d.Message = core.InstanceFrozen, fmt.Sprintf("receives nothing from a primary of an epoch below %d",
			f.NoReceivingBelow)
		d.Actions = append(stopReceiving(f), applying(f)...)
		return d
	}
	if r := f.Server.Replication; r != nil && r.SQLError != "" && !r.SQLRunning {
		d.Reason, d.Message = core.ReasonBroken, "the applier has stopped: "+r.SQLError
		if f.Server.SemiSync.ReplicaEnabled { // who cannot be elected must not acknowledge
			d.Actions = stopReceiving(f)
		}
		d.Actions = append(d.Actions, applyAgain(f)...)
		return d
	}
	attached := f.Replicating == primary && !f.loginRefused()
	if attached && f.receiving() && !f.listedDiverged() {
		d.Actions = append(append(giveAcks(f), applying(f)...), acceptClients(f)...)
		d.Actions = append(d.Actions, becomeWhole(f, primary)...)
		if f.MayLack && f.Cluster.Durability.IsOnReplicas() {
			d.Reason, d.Message = core.InstanceMayLack, mayLackText(primary)
		}
		if f.Server.Replication.NoSpace {
			d.Reason, d.Message = core.InstanceDiskFull, "its volume is full, and it receives nothing more: raise "+
				"spec.storage.size, or free space; it goes on within a minute"
		}
		if s := f.Server.SemiSync; s.SourceEnabled && s.Clients == 0 {
			// With replicas attached it would take mysqld up to a second, and no client could
			// log in meanwhile; nobody is waited for as it is.
			d.Actions = append(d.Actions, DropAcks{})
		}
		return d
	}
	return attach(f, d, primary, attached)
}

// IsFrozen reports whether this instance has promised to receive nothing in the epoch of the promotion.
func (f *Facts) IsFrozen() bool {
	p := f.promotion()
	return p != nil && f.NoReceivingBelow > p.Epoch
}

func idleReason(f *Facts) (reason core.Reason, message string) {
	p := f.promotion()
	switch {
	case p == nil:
		return core.InstanceNoPrimary, "waiting for a primary to be chosen"
	case f.GivesData():
		return core.InstanceGivesData, "is closed for writes until enough replicas have its data"
	case p.Instance == f.Me && p.Epoch < f.NoWritesBelow:
		return core.InstanceDemoted, fmt.Sprintf("is not writable in any epoch below %d", f.NoWritesBelow)
	case p.Instance == f.Me && p.Epoch != f.Cluster.Epoch:
		return core.InstanceEpochEnded, fmt.Sprintf("was promoted in epoch %d, which has ended", p.Epoch)
	case p.Instance == f.Me:
		return core.InstanceOtherPod, "the promotion names another Pod of this instance"
	}
	return core.InstanceAwaitingPrimary, "waiting for " + p.Instance + " to become writable"
}

// attach decides by the position of the primary whether and how to follow it.
func attach(f *Facts, d Decision, primary string, attached bool) Decision {
	pos := f.position(primary)
	ask := f.askPrimary(primary)
	if pos == nil {
		d.Reason, d.Message = core.InstanceAskingPrimary, "asks "+primary+" for its position before following it"
		if f.AskFailed != "" {
			d.Reason = core.InstanceAsksInVain
			d.Message += ": " + f.AskFailed
		}
		if f.listedDiverged() {
			d.Actions = stopReceiving(f)
		}
		d.Actions = append(append(d.Actions, applying(f)...), ask...)
		return d
	}
	d.Errant = f.errantTo(pos)
	lacks := pos.Purged.Subtract(pos.Mine)
	switch {
	case !d.Errant.IsEmpty():
		d.ErrantEpoch = pos.Epoch
		d.Reason, d.Message = core.InstanceIsDiverged, fmt.Sprintf("holds transactions that %s lacks: %s; it is kept "+
			"read-only and out of every Service, and its data is kept", primary, d.Errant.Abbreviate(4))
		if len(f.Statements) > 0 {
			d.Message += "; among them: " + strings.Join(f.Statements, "; ")
		}
		d.Actions = stopReceiving(f)
	case !lacks.IsEmpty():
		d.NeedsReclone = true
		d.Reason, d.Message = core.InstanceNeedsReclone, fmt.Sprintf("%s has purged transactions that this instance "+
			"lacks: %s; its data must be cloned again", primary, lacks.Abbreviate(4))
		d.Actions = stopReceiving(f)
	case attached:
		d.Actions = receive(f, &d)
	default:
		d.Actions = repoint(f, &d, pos, primary)
	}
	if f.Now.Sub(pos.At) > positionRefresh && needsWatch(f, &d) {
		d.Actions = append(d.Actions, ask...)
	}
	return d
}

// errantTo is what this instance has executed, and the primary has not nor will get. While that follows an external
// server it gets what another has had of that server before.
func (f *Facts) errantTo(pos *Position) gtid.Set {
	if f.isFollowing() {
		return gtid.Set{}
	}
	errant := pos.Mine.Subtract(pos.Executed).Subtract(f.Maintenance.Without(pos.UUID))
	if pos.Waiting {
		errant = errant.Subtract(errant.Of(pos.UUID))
	}
	return errant
}

// needsWatch reports whether what the primary executes next may outlive what was found: that this
// instance is diverged, holds errant transactions or needs a re-clone.
func needsWatch(f *Facts, d *Decision) bool {
	return f.listedDiverged() || !d.Errant.IsEmpty() || d.NeedsReclone
}

// receive starts receiving on the channel, which points at the primary already.
func receive(f *Facts, d *Decision) []Action {
	actions := append(giveAcks(f), applying(f)...)
	if f.receiving() {
		return actions
	}
	if !f.ReceiveFailedAt.IsZero() && f.Now.Sub(f.ReceiveFailedAt) < receiveRetry {
		d.Reason, d.Message = core.InstanceReceiveFailed, "the source refuses the connection, or cannot be reached: "+
			f.Server.Replication.IOError
		return actions
	}
	return append(actions, StartReceiving{})
}

// repoint has the instance follow the primary. Changing the source drops the relay logs, which may
// hold the only copy of a transaction: it waits until the primary or this instance has all of them.
func repoint(f *Facts, d *Decision, pos *Position, primary string) []Action {
	if only := f.neededHere(pos); !only.IsEmpty() {
		d.Reason, d.Message = core.InstanceApplyingRelayLog, "applies "+only.Abbreviate(4)+
			", because others may have no copy of it; then it follows the primary"
		return append(append(stopReceiving(f), applying(f)...), WaitApplied{Set: only})
	}
	to := Follow{Instance: primary, Known: f.Server.Executed.Union(pos.Executed)}
	if acks := giveAcks(f); len(acks) > 0 {
		// Whoever sends to it still is not to get an acknowledgement of an instance that
		// was not counted when that one's were cut.
		return append(append(stopReceiving(f), acks...), to)
	}
	return []Action{to}
}

// copiesBesideOne is the number of members up to which a quorum survives the loss of one
// of them only.
const copiesBesideOne = 3

// neededHere is what only the relay log here may hold, when the primary and those who
// failed before it are lost. Under quorum an election counts on what this instance has
// acknowledged: with up to three members the primary's copy makes up for it, for who loses
// that, too, has lost a majority. With more, a minority is two, the former primary and
// this one.
func (f *Facts) neededHere(pos *Position) gtid.Set {
	received := f.Server.Holds().Subtract(f.Server.Executed)
	if f.Cluster.Durability.IsOnReplicas() && f.Cluster.Size() > copiesBesideOne {
		return received
	}
	return received.Subtract(pos.Executed)
}

// position is what the primary holds, if it is known well enough.
func (f *Facts) position(primary string) *Position {
	p := f.Primary
	if p == nil || p.Instance != primary || p.Epoch != f.promotion().Epoch || f.Now.Sub(p.At) > positionLife {
		return nil
	}
	if !p.Mine.Contains(f.Server.Executed) && !f.receiving() {
		// Something was executed here since.
		return nil
	}
	return p
}

func (f *Facts) askPrimary(primary string) []Action {
	if f.Asking {
		return nil
	}
	return []Action{AskPrimary{Instance: primary, Epoch: f.promotion().Epoch}}
}

// leaveFormer stops receiving from a source that is not the granted primary. Another was promoted
// by what everybody held. What its predecessor may send now, back from a crash with commits that
// nobody acknowledged, would only make this instance diverge with it.
func leaveFormer(f *Facts) []Action {
	if p := f.promotion(); p == nil || p.Instance == f.Me || p.Instance == f.Replicating {
		return nil
	}
	return stopReceiving(f)
}

func stopReceiving(f *Facts) []Action {
	if f.receiving() {
		return []Action{StopReceiving{}}
	}
	return nil
}

// applying starts the applier, so that what was received is applied, whoever the primary is. An
// applier that stopped with an error is left for people to look at, but for the one of applyAgain.
func applying(f *Facts) []Action {
	if r := f.Server.Replication; r != nil && !r.SQLRunning && r.SQLError == "" {
		return []Action{StartApplying{}}
	}
	return applyAgain(f)
}

// applyAgain starts an applier that was hindered because a copy of the data is taken, as for a
// backup. Meanwhile a server refuses to discard or import a tablespace, and its applier stops with
// that. It succeeds when the copy is over. How long that takes the server does not tell, and so it
// is tried again from time to time.
func applyAgain(f *Facts) []Action {
	r := f.Server.Replication
	if r != nil && r.CopyHinders && !r.SQLRunning && f.Now.Sub(f.ApplyTriedAt) >= applyRetry {
		return []Action{StartApplying{}}
	}
	return nil
}

// acceptClients lets clients in again. Whoever may still commit something here by XA makes it
// diverge, as on any replica; but nobody counts any more on what it held.
func acceptClients(f *Facts) []Action {
	if f.Server.Offline {
		return []Action{AcceptClients{}}
	}
	return nil
}
