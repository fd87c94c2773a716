package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// errant returns the transactions that a replica has executed and a writable
// primary has not, from two reports of which the primary's was certainly read
// later; ok is false when there is no such pair. (A replica's set held against
// an older set of the primary shows transactions that were merely replicated
// in between. What the primary itself is about to commit is not errant either.)
func errant(replica, primary *core.Instance) (gtid.Set, bool) {
	pr, ok := primary.Report.Get()
	if !ok || pr.Server == nil {
		return gtid.Set{}, false
	}
	var extra gtid.Set
	compared := false
	for _, f := range heard(replica) {
		r, known := f.Get()
		if !known || r.Server == nil || r.Data != core.DataPopulated || !primary.Report.ReadAfter(f) {
			continue
		}
		more := r.Server.Executed.Subtract(pr.Server.Executed)
		own := more.Of(pr.Server.UUID)
		if !compared {
			extra, compared = more.Subtract(own), true
		}
		if hasCommitted(primary, f) {
			return extra.Union(own), true
		}
	}
	return extra, compared
}

// commitTime is how long a commit of which the wait has ended may take until it
// is in the primary's own position.
const commitTime = 500 * time.Millisecond

// hasCommitted reports whether what the primary had sent when a replica was read is in the
// primary's own position by now. It sends a transaction before it commits it, and does not commit
// while the commit waits for acknowledgements.
func hasCommitted(primary *core.Instance, read core.Fact[core.Report]) bool {
	isIdle := func(f core.Fact[core.Report]) bool {
		r, known := f.Get()
		return known && r.Server != nil && r.Server.SemiSync.WaitSessions == 0
	}
	return isIdle(primary.Report) && slices.ContainsFunc(primary.Earlier, func(f core.Fact[core.Report]) bool {
		return isIdle(f) && f.ReadAfter(read) && primary.Report.NotBefore().Sub(f.Received()) >= commitTime
	})
}

// heard is what an instance said while it could be reached, newest first.
func heard(in *core.Instance) []core.Fact[core.Report] {
	return append([]core.Fact[core.Report]{in.Report}, in.Earlier...)
}

// lastWord is what an instance says, or has said last while it cannot be asked; unknown if it was
// never heard.
func lastWord(in *core.Instance) core.Fact[core.Report] {
	if in.Report.Known() {
		return in.Report
	}
	return in.Latest
}

// lostTransactions are those of the primary's own server that replicas hold and
// the writable primary does not. A replica that was found diverged before says
// nothing about the primary.
func lostTransactions(o *core.Observation) gtid.Set {
	holder := holderOf(o)
	pr, ok := holder.Report.Get()
	if !ok || pr.Server == nil {
		return gtid.Set{}
	}
	var lost gtid.Set
	others(o, holder.Name, func(in *core.Instance) {
		if slices.Contains(o.Cluster.Status.Diverged, in.Name) {
			return
		}
		if extra, ok := errant(in, holder); ok && slices.Contains(extra.Sources(), pr.Server.UUID) {
			lost = lost.Union(extra)
		}
	})
	return lost
}

// judgeReplicas keeps the lists of diverged and broken instances. A verdict of
// divergence, once made while the primary answered, stands until a comparison
// with a writable primary says otherwise: it must survive the primary. Nothing
// changes for an instance that cannot be asked.
func (d *decision) judgeReplicas() {
	holder := d.holder()
	if holder == nil {
		return
	}
	trusted := d.isReference()
	others(d.Observation, holder.Name, func(in *core.Instance) {
		if r, known := in.Report.Get(); known {
			d.judgeDivergence(in, r, holder, trusted)
			d.judgeReplication(in, r)
		}
	})
	isOut := func(name string) bool { return d.Instance(name) == nil || name == holder.Name }
	d.Status.Diverged = slices.DeleteFunc(d.Status.Diverged, isOut)
	d.Status.Broken = slices.DeleteFunc(d.Status.Broken, isOut)
}

// isReference reports whether what the granted primary has is the cluster's history by definition.
// It is while the granted primary takes writes, and after it was demoted from doing so, or from
// being about to with all that it had to have.
func (d *decision) isReference() bool {
	switch name := d.diagnosis.name; {
	case name.IsWell(), name == core.PrimaryFull:
		return true
	case name == core.PrimaryDemoted, name == core.PrimaryClosed:
		r, serves := serving(d.holder())
		p := d.Status.Promotion
		wasReady := !p.WritableSince.IsZero() || !p.RequiredGTID.IsEmpty()
		return serves && wasReady && !d.mayLack(r) &&
			r.Server.Executed.Contains(p.RequiredGTID) && lostTransactions(d.Observation).IsEmpty()
	default:
		return false
	}
}

// judgeDivergence marks an instance as diverged when either the primary's position or its own
// comparison says so, and takes that back when neither does. Only a primary that takes writes
// clears anybody: the next election must not rest on a verdict of its own.
//
// While the primary follows an external server, nobody diverges: it gets what another has had of that server
// before. Who holds what it does not get is found when it takes writes.
func (d *decision) judgeDivergence(in *core.Instance, r core.Report, holder *core.Instance, trusted bool) {
	if d.followsServer() {
		return
	}
	var extra gtid.Set
	compared := false
	if trusted {
		extra, compared = errant(in, holder)
	}
	if r.ErrantEpoch == d.Status.Promotion.Epoch {
		extra = extra.Union(r.Errant)
	}
	extra = extra.Subtract(harmless(r, holder))
	if trusted && !slices.Contains(d.Status.Diverged, in.Name) && mayBeErrant(in, holder) {
		d.again(core.Refresh{Instance: holder.Name})
	}
	switch {
	case in.SaysEmpty():
		d.Status.Diverged = draft.Without(d.Status.Diverged, in.Name)
	case !extra.IsEmpty():
		d.markDiverged(in.Name, extra)
	case compared && d.takesWrites():
		d.Status.Diverged = draft.Without(d.Status.Diverged, in.Name)
	}
}

// mayBeErrant reports whether a replica has executed what no writable primary has written as far as
// is known here, but the primary was asked before. Then the primary is asked again at once: should
// it fail first, nobody could tell any more. Its own transactions are only on their way.
func mayBeErrant(replica, primary *core.Instance) bool {
	r, serves := serving(replica)
	p, known := primary.Report.Get()
	if !serves || !known || p.Server == nil || primary.Report.ReadAfter(replica.Report) {
		return false
	}
	return !r.Server.Executed.Without(p.Server.UUID).Subtract(p.Server.Executed).Subtract(
		harmless(r, primary)).IsEmpty()
}

func (d *decision) markDiverged(name string, extra gtid.Set) {
	if slices.Contains(d.Status.Diverged, name) {
		return
	}
	d.Status.Diverged = append(d.Status.Diverged, name)
	slices.Sort(d.Status.Diverged)
	d.Warn(core.ReasonDiverged, name+" holds transactions that the primary does not have: "+extra.Abbreviate(10)+
		". It is kept read-only and out of every Service; its data is kept. Decide whether these transactions "+
		"matter; kubectl cnmsql reinit "+d.Cluster.Name+" "+name+" throws them away and has it cloned again")
}

func (d *decision) judgeReplication(in *core.Instance, r core.Report) {
	name, sick := in.Name, d.sickness(in, r)
	if r.NoReceivingBelow > d.Status.Promotion.Epoch && r.Server != nil && r.Server.Replication != nil &&
		r.Server.Replication.SQLError == "" && !r.NeedsReclone {
		sick = "" // it was told to receive nothing
	}
	switch {
	case sick == "":
		d.Status.Broken = draft.Without(d.Status.Broken, name)
	case slices.Contains(d.Status.Broken, name):
	case (d.Status.Operation != nil || !d.takesWrites()) && !d.waitsForCopyOf(r):
		// While the primary changes, appliers and receivers stop for a moment, with errors.
	case d.hasJustChanged():
		d.RecheckAt(d.Status.Promotion.WritableSince.Add(attachTime))
	default:
		d.Status.Broken = append(d.Status.Broken, name)
		slices.Sort(d.Status.Broken)
		d.Warn(core.ReasonBroken, "replication of "+name+" is broken: "+sick)
	}
}

// waitsForCopyOf reports whether a primary that is closed until enough replicas have its data would wait for ever
// for this one. A copy alone gives it what it lacks, and it holds data: nobody but a human throws those away.
func (d *decision) waitsForCopyOf(r core.Report) bool {
	return r.NeedsReclone && d.inGiving() && d.diagnosis.name == core.PrimaryClosed
}

// hasJustChanged reports whether replicas may still be on their way to a new primary.
func (d *decision) hasJustChanged() bool {
	p := d.Status.Promotion
	return p.From != "" && !p.WritableSince.IsZero() && d.Now.Before(p.WritableSince.Add(attachTime))
}

// resume lets replicas receive again that withhold for a failover or a removal that
// has not come about. Promises are never revoked, because another operator may act on
// them at this moment. Instead the same primary is promoted into the promised epoch, and the
// conditional write of the status lets only one operator do this. The same is done for a
// primary that refuses the orders of its epoch, because it admitted an order to demote and its
// volume did not take the promise.
func (d *decision) resume() {
	p := d.Status.Promotion
	if d.diagnosis.name != core.PrimaryHealthy || d.Status.Operation != nil || d.takesAway() {
		return
	}
	if !d.holder().Report.Is(func(r core.Report) bool { return r.PodUID == p.PodUID }) {
		return // another Pod of it has taken over: the status names that first
	}
	until := d.ordersRefusedBelow("")
	if until == 0 {
		return
	}
	d.Status.Epoch = max(d.nextEpoch(), until)
	p.Epoch, p.WritableSince = d.Status.Epoch, time.Time{}
	d.Tell(core.ReasonPrimaryContinues, fmt.Sprintf("%s stays the primary, in epoch %d: a change was ordered, but "+
		"not completed", p.Instance, p.Epoch))
	d.Again = true
}

// ordersRefusedBelow is the epoch below which an instance other than the named one refuses
// orders or does not receive, if that is later than the present; 0 when nobody does.
func (d *decision) ordersRefusedBelow(name string) int64 {
	victim, until := d.lastSurplus(), int64(0)
	if d.isMissed(victim) {
		victim = nil
	}
	others(d.Observation, name, func(in *core.Instance) {
		r, known := in.Report.Get()
		// What it has seen counts as well: the promise may have gone with its data, and
		// orders of an earlier epoch are refused all the same.
		if below := max(r.NoReceivingBelow, r.SeenEpoch); known && below > d.Status.Promotion.Epoch && in != victim &&
			!d.MayBeReinitialized(in.Name) && isOf(r, in) {
			until = max(until, below)
		}
	})
	return until
}

// isMissed reports whether an instance that is to be removed, and promised for that to receive nothing, has to
// receive once more, for fewer acknowledge than have to. Either it has received what the primary has not committed,
// since its acknowledgement was lost on the way: that commit would never end. Or those who stay do not hold what it
// holds, and do not receive: it would not be removed, and no commit would end.
func (d *decision) isMissed(victim *core.Instance) bool {
	if victim == nil || victim.Name == d.Status.Promotion.Instance {
		return false
	}
	v, answers := serving(victim)
	p, serves := serving(d.holder())
	if !answers || !serves || !d.lacksReplicas(p) {
		return false
	}
	isAhead := p.Server.SemiSync.WaitSessions > 0 && !p.Server.Executed.Contains(v.Server.Holds())
	return isAhead || d.isLastToReceive(victim, v)
}

// isLastToReceive reports whether an instance that is to be removed, and says r, holds what too few of the others hold,
// and too few of them receive, but it could. It has been compared.
func (d *decision) isLastToReceive(victim *core.Instance, r core.Report) bool {
	holder := d.holder()
	return r.IsEligible() && d.isMember(victim.Name) && !slices.Contains(d.Status.Diverged, victim.Name) &&
		holder.Report.ReadAfter(victim.Report) && d.notHeldElsewhere(r, victim, holder) != "" &&
		d.receiveBeside(victim) < d.wishedWithout(victim, holder)
}

// isOf reports whether the report is of the instance's present Pod, and nothing is known to take
// that Pod away.
func isOf(r core.Report, in *core.Instance) bool {
	return in.Pod.Is(func(pod core.Pod) bool { return pod.Exists && !pod.Terminating && pod.UID == r.PodUID }) &&
		!in.Volume.Is(func(vol core.Volume) bool { return vol.Deleting })
}

// takesAway reports whether this plan removes the data of an instance.
func (d *decision) takesAway() bool {
	return slices.ContainsFunc(d.Effects, func(e core.Effect) bool {
		switch e.(type) {
		case core.DeleteInstance, core.ReinitInstance:
			return true
		}
		return false
	})
}

// replicationError is the error with which a replica's replication stopped.
func replicationError(r core.Report) string {
	if r.NeedsReclone {
		return "the primary has purged transactions that this instance lacks; kubectl cnmsql reinit has it cloned again"
	}
	if r.Server == nil || r.Server.Replication == nil {
		return ""
	}
	rep := r.Server.Replication
	switch {
	case !rep.SQLRunning && rep.SQLError != "":
		return rep.SQLError
	case !rep.IORunning && !rep.IOConnecting && rep.IOError != "":
		return rep.IOError
	default:
		return ""
	}
}
