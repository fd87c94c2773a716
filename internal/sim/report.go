package sim

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// report is the manager's word.
func (m *manager) report() core.Report {
	d := &m.decision
	r := core.Report{
		Instance: m.me, PodUID: m.uid, Node: m.node.name, Boot: m.boot,
		Data: m.data, VolumeLocked: m.locked, SeenEpoch: m.seen, ViewEpoch: m.latest.Epoch, WritableEpoch: m.writable,
		ClientSessions: m.sessions, Terminating: m.terminating != 0,
		Restarts: m.restarts, Clone: m.clone, Room: m.room,
	}
	r.Follows, r.Source = m.followsAs(), m.sourceNow()
	d.Begin(&r)
	running := m.proc != nil
	p := agent.Process{Up: running, Accepted: m.accepted, Answers: m.answers(), MayWrite: m.mayWrite, Ended: m.ended,
		Failures: m.failures}
	if m.w.mut.PromiseWithoutLock && !m.locked {
		r.VolumeLocked, r.Data = true, core.DataPopulated
	}
	if m.w.mut.PromiseBeforeItHolds && m.volume.record.noWritesBelow > m.writable {
		r.WritableEpoch = 0
	}
	p.MayWrite = p.MayWrite && !m.w.mut.PromiseBeforeItHolds
	on := m.volume.record
	kept := agent.Kept{NoWritesBelow: on.noWritesBelow, NoReceivingBelow: on.noReceivingBelow,
		LastWritable: on.wasPrimaryEpoch}
	if r.VolumeLocked {
		p.TellPromises(&r, kept)
		on.cached.TellProvenance(&r)
	}
	if kept.StillWithholds(m.withheld) {
		r.Withheld = &core.Withheld{Below: m.withheld, Seconds: m.secondsFrom(m.withheldAt, m.w.now)}
	}
	if m.view != nil {
		m.view.TellView(&r)
	}
	p.Correct(&r, m.server)
	if t := m.trouble; t != nil {
		agent.TellTrouble(&r, t.err)
	}
	return r
}

// announce tells watchers if something that matters has changed.
func (m *manager) announce() {
	r := m.report()
	if sameButPositions(&r, &m.last) {
		return
	}
	m.last = r
	m.reports++
	m.push()
}

// sameButPositions is reflect.DeepEqual of the two without their positions, and
// ten times as fast; a test holds it against that.
func sameButPositions(a, b *core.Report) bool {
	return a.Instance == b.Instance && a.PodUID == b.PodUID && a.Node == b.Node && a.Boot == b.Boot &&
		a.Manager == b.Manager && samePointed(a.ManagerRefused, b.ManagerRefused) &&
		a.State == b.State && a.Reason == b.Reason && a.Message == b.Message && a.Data == b.Data &&
		a.ConfigRefused == b.ConfigRefused && a.TokenRefused == b.TokenRefused &&
		a.VolumeLocked == b.VolumeLocked && a.SeenEpoch == b.SeenEpoch && a.ViewEpoch == b.ViewEpoch &&
		a.LastWritable == b.LastWritable && a.WritableEpoch == b.WritableEpoch &&
		a.NoWritesBelow == b.NoWritesBelow && a.NoReceivingBelow == b.NoReceivingBelow &&
		a.ClientSessions == b.ClientSessions &&
		a.Terminating == b.Terminating && a.Version == b.Version && a.Restarts == b.Restarts &&
		sameServer(a.Server, b.Server, a.Follows != "") && samePointed(a.Clone, b.Clone) &&
		samePointed(a.Archive, b.Archive) && a.Restore.Same(b.Restore) &&
		a.Errant.Equal(b.Errant) && a.Maintenance.Equal(b.Maintenance) &&
		a.ErrantEpoch == b.ErrantEpoch && a.NeedsReclone == b.NeedsReclone && a.MayLack == b.MayLack &&
		a.Former == b.Former && a.Lagging == b.Lagging && sameRoom(a.Room, b.Room) &&
		withheldBelow(a) == withheldBelow(b) && a.ClusterSize == b.ClusterSize && a.Leased == b.Leased &&
		a.Generation == b.Generation && a.Follows == b.Follows && sameSource(a.Source, b.Source)
}

func sameSource(a, b *core.Source) bool {
	return a == b || a != nil && b != nil && a.Name == b.Name && a.Generation == b.Generation &&
		a.Lacks == b.Lacks && a.Writable == b.Writable && a.Problem == b.Problem
}

func sameRoom(a, b *core.Room) bool {
	return a == b || a != nil && b != nil && a.Size == b.Size && a.Low == b.Low && a.Full == b.Full
}

func withheldBelow(r *core.Report) int64 {
	if r.Withheld == nil {
		return -1
	}
	return r.Withheld.Below
}

func samePointed[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameServer(a, b *core.Server, follows bool) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	x, y := a.SemiSync, b.SemiSync
	x.WaitSessions, y.WaitSessions = 0, 0
	return a.UUID == b.UUID && a.SuperReadOnly == b.SuperReadOnly && a.ReadOnly == b.ReadOnly &&
		a.Offline == b.Offline &&
		a.DataRemoved == b.DataRemoved && x == y && sameReplication(a.Replication, b.Replication) &&
		(follows || a.Executed.Equal(b.Executed) || a.Foreign().Equal(b.Foreign()))
}

func sameReplication(a, b *core.Replication) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.SourceHost == b.SourceHost && a.SourceUUID == b.SourceUUID && a.IORunning == b.IORunning &&
		a.Silent == b.Silent && a.NoSpace == b.NoSpace &&
		a.IOConnecting == b.IOConnecting && a.SQLRunning == b.SQLRunning && a.IOError == b.IOError &&
		a.IOErrno == b.IOErrno && a.Refused == b.Refused && a.SQLError == b.SQLError &&
		a.CopyHinders == b.CopyHinders && a.DelaySeconds == b.DelaySeconds
}

// sameStatus reports whether two statuses read alike.
func sameStatus(a, b *core.Status) bool {
	return a.Phase == b.Phase && a.Reason == b.Reason && a.Diagnosis == b.Diagnosis && a.State == b.State &&
		a.CurrentPrimary == b.CurrentPrimary && a.CurrentPrimaryAt.Equal(b.CurrentPrimaryAt) &&
		a.TargetPrimary == b.TargetPrimary && a.TargetPrimaryAt.Equal(b.TargetPrimaryAt) && a.Epoch == b.Epoch &&
		samePromotion(a.Promotion, b.Promotion) && sameOperation(a.Operation, b.Operation) &&
		a.FailingSince.Equal(b.FailingSince) && a.LastFailover.Equal(b.LastFailover) &&
		a.EstablishedAt.Equal(b.EstablishedAt) && a.AdoptedFrom == b.AdoptedFrom &&
		slices.Equal(a.InstanceNames, b.InstanceNames) && slices.Equal(a.Members, b.Members) &&
		a.LatestOrdinal == b.LatestOrdinal &&
		slices.Equal(a.Diverged, b.Diverged) && slices.Equal(a.Broken, b.Broken) && slices.Equal(a.Fenced, b.Fenced) &&
		a.Ready == b.Ready &&
		(a.Return == nil) == (b.Return == nil) &&
		(a.Return == nil || a.Return.Target == b.Return.Target && a.Return.At.Equal(b.Return.At)) &&
		a.Durable == b.Durable && a.DurableMessage == b.DurableMessage && a.CommitsHang == b.CommitsHang &&
		(a.Blocked == nil) == (b.Blocked == nil) && (a.Blocked == nil || sameNotice(*a.Blocked, *b.Blocked)) &&
		slices.EqualFunc(a.Notices, b.Notices, sameNotice) &&
		slices.EqualFunc(a.Past, b.Past, samePast)
}

func samePast(a, b core.PastOperation) bool {
	return a.Kind == b.Kind && a.Reason == b.Reason && a.From == b.From && a.To == b.To && a.Primary == b.Primary &&
		a.Epoch == b.Epoch && a.Proof == b.Proof &&
		a.StartedAt.Equal(b.StartedAt) && a.StoppedAt.Equal(b.StoppedAt) && a.EndedAt.Equal(b.EndedAt)
}

func sameNotice(a, b core.Notice) bool {
	return a.Is(b) && a.Message == b.Message && a.Since.Equal(b.Since)
}

func samePromotion(a, b *core.Promotion) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Epoch == b.Epoch && a.Instance == b.Instance && a.Proof == b.Proof &&
		a.Evidence == b.Evidence && a.From == b.From && a.Follows == b.Follows &&
		a.RequiredGTID.Equal(b.RequiredGTID) && a.RequiredAcks == b.RequiredAcks && a.AcksOrder == b.AcksOrder &&
		a.OrderedAcks == b.OrderedAcks && a.GrantedAt.Equal(b.GrantedAt) &&
		a.PodUID == b.PodUID && a.Node == b.Node && a.WritableSince.Equal(b.WritableSince) &&
		a.LosslessSince == b.LosslessSince && a.Size == b.Size && a.Leased == b.Leased &&
		a.Isolations == b.Isolations && slices.Equal(a.Pods, b.Pods) && slices.Equal(a.Ended, b.Ended) &&
		a.Awaited == b.Awaited && a.NoWritesBelow == b.NoWritesBelow
}

func sameOperation(a, b *core.Operation) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Step == b.Step && a.From == b.From && a.To == b.To && a.Reason == b.Reason &&
		a.StartedAt.Equal(b.StartedAt) && a.Deadline.Equal(b.Deadline) && a.PausedAt.Equal(b.PausedAt) &&
		slices.Equal(a.Witnesses, b.Witnesses)
}
