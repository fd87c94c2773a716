package async

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// starvePatience is how long commits may wait for ever, while instances that are away may
// come back and acknowledge them, before the primary is closed.
const starvePatience = 30 * time.Second

// starves reports whether commits wait for ever for acknowledgements that only instances without
// data could give, and only the primary can give them data. MySQL's clone waits until every commit
// of the donor has ended, so that neither would end.
func (d *decision) starves() bool {
	holder := d.holder()
	r, ok := serving(holder)
	return ok && d.lacksReplicas(r) && len(d.dependents()) > 0
}

// lacksReplicas reports whether commits of the primary wait for ever, for fewer replicas are
// attached than have to acknowledge them.
func (d *decision) lacksReplicas(primary core.Report) bool {
	return primary.Server.SemiSync.Starves(d.attached(primary, d.Status.Promotion.Instance))
}

// dependents are the instances without data to which nobody but the primary can give it, or gives it.
func (d *decision) dependents() []string {
	primary := d.Status.Promotion.Instance
	var out []string
	for _, in := range d.Recipients() {
		if len(d.replicaDonors(nil, in.Name)) == 0 && d.holder().CanCloneTo(in) {
			out = append(out, in.Name)
		}
	}
	others(d.Observation, primary, func(in *core.Instance) {
		r, known := in.Report.Get()
		if known && r.State == core.Cloning && r.Clone != nil && core.IsHostOf(r.Clone.Donor,
			primary) && !d.IsSurplus(in) {
			out = append(out, in.Name)
		}
	})
	return out
}

// mayGive reports whether the history that would be copied is the cluster's, and the
// primary could send it.
func (d *decision) mayGive() bool {
	if d.diagnosis.name == core.PrimaryClosed {
		_, serves := serving(d.holder())
		return serves
	}
	return d.diagnosis.name == core.PrimaryHealthy
}

// mayReturn names an instance that may have data and is on its way back, "" when there
// is none.
func (d *decision) mayReturn() string {
	name := ""
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		isOut := slices.Contains(d.Status.Diverged, in.Name) || slices.Contains(d.Status.Broken, in.Name) ||
			d.IsFenced(in.Name) || d.IsSurplus(in)
		if !isOut && !in.SaysEmpty() && !in.IsGone() {
			name = in.Name
		}
	})
	return name
}

// beginGiving closes a primary that starves: it becomes read-only, gives its data, and
// takes writes again when enough replicas are attached for commits to end.
func (d *decision) beginGiving() {
	d.starving = d.starves()
	if !d.starving || d.Status.Operation != nil || d.diagnosis.name != core.PrimaryHealthy {
		return
	}
	if d.ordersRefusedBelow("") != 0 {
		return // nobody could be ordered to copy: the next epoch comes first (resume)
	}
	p := d.Status.Promotion
	d.Plan.Carried.Starving = d.Observation.Carried.Starving.Or(p.Epoch, d.Now)
	until := d.Plan.Carried.Starving.At.Add(starvePatience)
	if away := d.mayReturn(); away != "" && d.Now.Before(until) {
		d.Doing(fmt.Sprintf("commits on %s wait for %s to come back; if it does not by %s, %s becomes read-only to "+
			"give its data to others",
			p.Instance, away, until.UTC().Format("15:04:05 MST"), p.Instance))
		d.RecheckAt(until)
		return
	}
	d.Status.Operation = &core.Operation{Kind: core.OperationGiveData, Step: core.StepDemote, From: p.Instance,
		To: strings.Join(d.dependents(), ", "), Reason: core.ReasonGivesData, StartedAt: d.Now}
	d.tellClosed()
	d.Again = true
}

func (d *decision) tellClosed() {
	op := d.Status.Operation
	d.Announce(true, core.ReasonGivesData, op.From, fmt.Sprintf("%s takes no writes while it gives its data to %s: "+
		"commits wait for a replica, no replica with data is attached, and copying waits for these commits. It takes "+
		"writes again by itself when enough replicas are attached; to allow writes sooner, set "+
		"spec.mysql.semiSync.dataDurability to preferred", op.From, op.To))
}

func (d *decision) inGiving() bool {
	return d.Status.Operation != nil && d.Status.Operation.Kind == core.OperationGiveData &&
		!d.diagnosis.name.IsFailing()
}

// giveData goes on with it, from whatever is observed. A primary that fails meanwhile is
// replaced as ever.
func (d *decision) giveData() {
	op := d.Status.Operation
	switch d.diagnosis.name {
	case core.PrimaryClosed:
		op.Step = core.StepCopy
		d.tellClosed()
		d.giveOrOpen()
	case core.PrimaryPromoting:
		d.Doing("waiting for " + d.Status.Promotion.Instance + " to become writable: " + d.promotionProgress())
	case core.PrimaryLostTransactions:
		d.blockLost()
	case core.PrimaryHealthy, core.PrimaryTerminating, core.PrimaryIsolated, core.PrimaryFull:
		d.closeOrStay(op)
	default:
		d.Doing("the primary " + op.From + ", which was to give its data: " + d.diagnosis.says)
	}
}

// closeOrStay decides about the primary while it takes writes, again or still. One that has opened
// again settles. One that was to be closed is, if commits still starve or it has promised already
// to take no writes; else it stays writable.
func (d *decision) closeOrStay(op *core.Operation) {
	d.starving = d.starves()
	isPromised := op.Step == core.StepDemote && d.isPromised()
	switch {
	case op.Step == core.StepPromote:
		d.settle()
	case d.starving, isPromised:
		d.tellClosed()
		d.askToDemote(d.nextEpoch())
	default:
		d.Status.Operation = nil
		d.Tell(core.ReasonRecovered, op.From+" stays writable: enough replicas are attached again")
		d.settle()
	}
}

// isPromised reports whether the primary's manager says that it has promised already to take no
// writes in this epoch.
func (d *decision) isPromised() bool {
	return d.holder().Report.Is(func(r core.Report) bool { return r.NoWritesBelow > d.Status.Promotion.Epoch })
}

// giveOrOpen waits while the primary is closed and too few replicas have its data, and then
// opens it in the next epoch. Nothing is committed on it meanwhile, so that copies of it
// end; join has them made.
func (d *decision) giveOrOpen() {
	holder, next := d.holder(), d.nextEpoch()
	proof, ok := prove(d.Observation, next)
	r, serves := serving(holder)
	if !ok || !serves {
		d.Doing(holder.Name + " is closed for writes, and its mysqld is started again to give its data: " +
			string(r.State))
		return
	}
	if !d.fresh(holder, proof.since) {
		return
	}
	have, need := d.ready(r)
	// Orders to copy are refused after a failover that has not come about: the primary opens
	// in the next epoch, in which they are not, and is closed again.
	refused := d.ordersRefusedBelow(holder.Name) != 0
	if have < need && d.Cluster.Durability.Mode.WaitsForEver() && !refused {
		if len(d.dependents()) == 0 {
			d.Doing(fmt.Sprintf("%d of %d replicas that a commit needs are attached: waiting for %s%s", have, need,
				strings.Join(d.laggards(), ", "), d.whoNeedsCopy()))
		}
		return
	}
	if name, mayGo := d.holdsMore(r); name != "" {
		d.keepClosed(holder.Name, name, mayGo)
		return
	}
	d.grant(election{winner: holder.Name, podUID: r.PodUID, node: r.Node, holds: r.Server.Holds()},
		proof, d.promotionAcks())
	d.Doing("making " + holder.Name + " writable again")
}

// whoNeedsCopy are those that are waited for, and need a human.
func (d *decision) whoNeedsCopy() (text string) {
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		if r, known := in.Report.Get(); known && r.NeedsReclone {
			text += "; replication of " + in.Name + " is broken: " + replicationError(r)
		}
	})
	return text
}

// ready counts the replicas that acknowledge from the first commit on, for they hold
// all that the closed primary does and are attached, or will be in its next epoch.
// More than those that are to stay beside it are not waited for.
func (d *decision) ready(closed core.Report) (have, need int) {
	p, stay, holds := d.Status.Promotion, 0, closed.Server.Holds()
	others(d.Observation, p.Instance, func(in *core.Instance) {
		stay += btoi(!d.IsSurplus(in))
		r, ok := serving(in)
		if !ok || d.isLeftOut(in.Name) || !holds.Contains(r.Server.Holds()) {
			return
		}
		attached := streams(r, p.Instance) && r.Server.SemiSync.ReplicaEnabled && r.Server.Holds().Contains(holds)
		if attached || r.NoReceivingBelow == d.nextEpoch() && r.IsEligible() {
			have++
		}
	})
	return have, min(max(d.promotionAcks(), 1), stay)
}

// isLeftOut reports whether what the instance holds does not count, for the instance is diverged or
// its data may be recreated.
func (d *decision) isLeftOut(name string) bool {
	return slices.Contains(d.Status.Diverged, name) || d.MayBeReinitialized(name)
}

// holdsMore names an instance that holds what the closed primary lacks. That a human wishes it again gives
// up what is only its own; what the primary had once, and lost, it does not. mayGo reports whether that is
// all there is, and nothing is missing but which volume the instance has: the wish may be for another.
func (d *decision) holdsMore(closed core.Report) (name string, mayGo bool) {
	holds := closed.Server.Holds()
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || slices.Contains(d.Status.Diverged, in.Name) {
			return
		}
		extra := r.Server.Holds().Subtract(holds)
		isLost := slices.Contains(extra.Sources(), closed.Server.UUID)
		if !isLost && (extra.IsEmpty() || d.IsToBeReinitialized(in.Name)) {
			return
		}
		if goes := !isLost && d.MayBeReinitialized(in.Name); name == "" || !goes {
			name, mayGo = in.Name, goes
		}
	})
	return name, mayGo
}

// keepClosed leaves a primary closed, for another instance holds more than it does.
func (d *decision) keepClosed(closed, more string, mayGo bool) {
	if mayGo {
		d.Doing(fmt.Sprintf("%s stays read-only until the operator can read which volume %s has, whose data is to be "+
			"recreated",
			closed, more))
		return
	}
	d.Block(core.RefusalLostTransactions, fmt.Sprintf("%s was made read-only to give its data to others, and stays "+
		"read-only: %s holds transactions that it lacks. %s", closed, more, twoCopies(closed)))
}
