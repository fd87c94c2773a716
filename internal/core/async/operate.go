package async

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// operate decides who may be writable.
func (d *decision) operate() {
	switch {
	case d.Status.Promotion == nil && d.Status.AdoptedFrom != "":
		d.chooseAdopted()
	case d.Status.Promotion == nil:
		d.bootstrap()
	case d.overrides():
	case d.Status.EstablishedAt.IsZero() && !d.takesWrites():
		d.awaitFirst()
	case d.diagnosis.name == core.PrimaryFenced:
		d.refuseWhileFenced()
		d.Block(core.RefusalPrimaryFenced, fmt.Sprintf("a human fenced the primary %s: no instance takes writes, and "+
			"the operator promotes none. To end this: kubectl cnmsql fence off %s %[1]s", d.Status.Promotion.Instance,
			d.Cluster.Name))
	case d.inSwitchover():
		d.switchOver()
	case d.inGiving():
		d.giveData()
	case d.diagnosis.name == core.PrimaryIsolated:
		d.replaceIsolated()
	case d.diagnosis.name == core.PrimaryFull:
		d.settle()
		d.beginSwitchover()
	case d.diagnosis.name.IsFailing(), d.isReplacing():
		d.failOver()
	case d.diagnosis.name.IsWell():
		d.settle()
		if d.takeOver() {
			return
		}
		d.beginGiving()
		d.beginSwitchover()
		d.failBack()
	case d.diagnosis.name == core.PrimaryLostTransactions:
		d.blockLost()
	case d.diagnosis.name == core.PrimaryPromoting:
		d.awaitPromoted()
	case d.diagnosis.name == core.PrimaryUnreachable && d.Status.Operation != nil:
		d.Block(core.RefusalNoProof, d.noProof(false))
	default:
		d.leaveAlone()
	}
}

// promotionProgress tells what a promoted instance still has to do.
func (d *decision) promotionProgress() string {
	p := d.Status.Promotion
	r, known := d.holder().Report.Get()
	_, serves := serving(d.holder())
	switch {
	case !known:
		return "its manager does not answer yet"
	case !serves && r.Message != "":
		return fmt.Sprintf("%s, %s", r.State, r.Message)
	case !serves && r.State == core.Running && r.Server == nil:
		return "its mysqld was started, and has not told its manager yet what it holds"
	case !serves && r.State == core.Running:
		return "its manager does not say yet that mysqld has the cluster's data"
	case !serves:
		return string(r.State)
	}
	said := ""
	if lacks := p.RequiredGTID.Subtract(r.Server.Executed); !lacks.IsEmpty() {
		said = fmt.Sprintf("it lacks %s (%s), ", core.Plural(lacks.Count(), "transaction"), lacks.Abbreviate(4))
	}
	switch {
	case !seesPromotion(r, p):
		return said + "its manager has not seen the promotion yet"
	case r.Message != "":
		return said + r.Message
	case said != "":
		return strings.TrimSuffix(said, ", ")
	default:
		return "it has all required transactions, takes the Lease and becomes writable"
	}
}

func (d *decision) blockLost() {
	primary := d.Status.Promotion.Instance
	d.Block(core.RefusalLostTransactions, fmt.Sprintf("the primary %s has lost transactions: %s. Stop the "+
		"application now: each new write reuses a lost GTID. The operator promotes and clones nothing until you "+
		"decide. %s. Do not wait for a copy in between: copies begin after the last deletion", primary,
		d.diagnosis.says,
		twoCopies(primary)))
}

// twoCopies tells what to do where the primary and its replicas hold different histories.
func twoCopies(primary string) string {
	return fmt.Sprintf("Check what is missing. If the replicas are right: delete the PersistentVolumeClaim, then the "+
		"Pod of %s, and nothing else. If %[1]s is right: delete those of each replica that holds what it lacks, and "+
		"check the status after each (kubectl delete pvc/NAME pod/NAME --wait=false)", primary)
}

// takesWrites reports whether the granted primary is writable, whatever else is the matter with it.
func (d *decision) takesWrites() bool { return d.diagnosis.name.TakesWrites() }

// awaitFirst waits for the instance that was chosen to be the first primary. The cluster never had
// a primary, so there is nothing to fail over: that instance has to get there.
func (d *decision) awaitFirst() {
	p := d.Status.Promotion
	r, known := d.holder().Report.Get()
	switch {
	case known && r.State == core.Failed:
		d.Block(r.Reason, p.Instance+": "+r.Problem().String())
	case known && !mayGoOn(r, p):
		d.Block(core.RefusalNoProof, fmt.Sprintf("%s was to become the first primary on node %s, but now runs on "+
			"node %s, and its first Pod may still run; delete this Cluster and create it again",
			p.Instance, p.Node, r.Node))
	case known && r.State == core.Stopped && r.Data == core.DataPopulated:
		d.Do(core.RestartInPlace{Instance: p.Instance, Epoch: p.Epoch})
		fallthrough
	default:
		d.Doing("waiting for " + p.Instance + " to become the first primary: " + d.promotionProgress())
	}
}

// bootstrap chooses the first primary, once: the instance with the lowest
// ordinal, when it says itself that it has no data. An instance that was there
// before the status knew of it may hold data: it must be heard first.
func (d *decision) bootstrap() {
	if d.Cluster.Problem != nil || !d.Status.EstablishedAt.IsZero() || d.IsBlocked() {
		return
	}
	stranger := ""
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		if in.Exists() && !slices.Contains(d.Status.InstanceNames, in.Name) {
			stranger = in.Name
		}
		if known && r.Data == core.DataPopulated {
			d.Block(core.RefusalDataWithoutStatus, in.Name+" has data, but the Cluster's status names no primary: "+
				"the status was lost. The operator initialises nothing; restore the status, or create a Cluster with "+
				"another name")
			return
		}
	}
	if len(d.Instances) == 0 {
		return
	}
	first := &d.Instances[0]
	r, known := first.Report.Get()
	switch {
	case stranger != "":
		d.Doing("waiting for " + stranger + " to report what it holds: the Cluster's status does not list it")
		return
	case !known || r.Data != core.DataEmpty || r.State == core.Failed || r.Terminating:
		d.Doing("waiting for " + first.Name + " to start")
		return
	}
	d.grant(election{winner: first.Name, podUID: r.PodUID, node: r.Node}, proven{proof: core.ProofBootstrap,
		evidence: "there never was a primary"}, 0)
	d.Doing("initialising " + first.Name)
}

// grant permits the winner of an election to be writable in the next epoch.
func (d *decision) grant(e election, p proven, acks int) {
	from, awaited := "", 0
	if p := d.Status.Promotion; p != nil {
		from, awaited = p.Instance, p.Awaited
	}
	follows := d.followsNext(p.proof)
	d.tellLost(e)
	d.Status.Epoch = d.nextEpoch()
	d.addMember(e.winner)
	d.Status.Promotion = &core.Promotion{
		Epoch: d.Status.Epoch, Instance: e.winner, Proof: p.proof, Evidence: p.evidence, From: from, Follows: follows,
		RequiredGTID: e.holds, RequiredAcks: acks, GrantedAt: d.Now, PodUID: e.podUID, Node: e.node,
		Pods: []string{e.podUID}, Awaited: awaited,
		LosslessSince: d.losslessSince(acks), Size: d.members(), Leased: d.Cluster.PrimaryLease,
		Isolations: d.isolations(),
	}
	d.diagnosis = finding{core.PrimaryPromoting, "it is being made writable"}
	d.setTarget(e.winner)
	if op := d.Status.Operation; op != nil {
		op.To, op.Step = e.winner, core.StepPromote
		if op.Kind == core.OperationFailover {
			op.Deadline = time.Time{}
		}
	}
	d.Tell(core.ReasonPromotionGranted,
		fmt.Sprintf("%s may %s in epoch %d; proof that nobody else does: %s (%s)", e.winner, mayDo(follows),
			d.Status.Epoch, p.proof, p.evidence))
}

// mayDo is what a promotion permits.
func mayDo(follows string) string {
	if follows != "" {
		return "follow " + follows
	}
	return "take writes"
}

// tellLost warns of what is lost when another is promoted: who was promoted before never got what
// it had to have, and the winner does not have it either.
func (d *decision) tellLost(e election) {
	p := d.Status.Promotion
	if p == nil || !p.WritableSince.IsZero() {
		return
	}
	if lost := p.RequiredGTID.Subtract(e.holds); !lost.IsEmpty() {
		d.Warn(core.ReasonLost, fmt.Sprintf("%s is promoted without %s: %s had these transactions, and no candidate "+
			"holds them. Those that were acknowledged are lost",
			e.winner, lost.Abbreviate(10), p.From))
	}
}

// losslessSince of a promotion in the next epoch: what is acknowledged in it waits
// for replicas, and so did all that the promise of the present one speaks of.
func (d *decision) losslessSince(acks int) int64 {
	if !d.Cluster.Durability.Mode.WaitsForEver() || acks == 0 {
		return 0
	}
	if before := d.Status.Promotion; before.IsLossless() {
		return before.LosslessSince
	}
	return d.Status.Epoch
}

func (d *decision) nextEpoch() int64 {
	known := max(d.Status.Epoch, d.LastEpoch())
	if d.Status.Promotion == nil {
		return known + 1
	}
	return max(known, d.Status.Promotion.Epoch) + 1
}

func (d *decision) setTarget(name string) {
	if d.Status.TargetPrimary != name {
		d.Status.TargetPrimary, d.Status.TargetPrimaryAt = name, d.Now
	}
}

// settle records that the holder is writable and ends the operation that led there.
func (d *decision) settle() {
	p, holder := d.Status.Promotion, d.holder()
	if r, known := holder.Report.Get(); known {
		p.PodUID, p.Node = r.PodUID, r.Node
		if r.WritableEpoch == p.Epoch {
			p.NoWritesBelow = 0 // what was promised before was lost with a volume
		}
	}
	if p.WritableSince.IsZero() {
		p.WritableSince = d.Now
	}
	if d.Status.CurrentPrimary != p.Instance {
		d.Status.CurrentPrimary, d.Status.CurrentPrimaryAt, d.Status.Return = p.Instance, d.Now, nil
	}
	if d.Status.EstablishedAt.IsZero() {
		d.Status.EstablishedAt = d.Now
		d.Tell(core.ReasonPrimaryEstablished, p.Instance+" is the primary")
	}
	if d.Status.TargetPrimary == "" {
		d.setTarget(p.Instance)
	}
	if op := d.Status.Operation; op != nil && d.operationEnded(op) {
		d.Status.Operation = nil
	}
	d.Status.FailingSince = time.Time{}
}

// operationEnded tells the user how an operation ended.
func (d *decision) operationEnded(op *core.Operation) bool {
	p := d.Status.Promotion
	if op.Kind == core.OperationSwitchover && op.Step != core.StepPromote && op.Step != core.StepReturn {
		return false
	}
	took := d.Now.Sub(op.StartedAt).Round(time.Millisecond)
	switch {
	case op.Reason == core.ReasonReturn && p.Instance == op.To:
		d.Tell(core.ReasonRecovered, fmt.Sprintf("%s takes writes again, %s after the switchover to %s began",
			p.Instance, took, op.From))
		return true
	case p.Instance != op.From:
		d.Tell(core.ReasonPrimaryChanged, fmt.Sprintf("%s: %s is the primary now, after %s (%s), %s", op.Kind,
			p.Instance, op.From, op.Reason, took))
	default:
		d.Tell(core.ReasonRecovered, fmt.Sprintf("%s is writable again after %s", p.Instance, took))
	}
	if op.Kind == core.OperationFailover && p.Instance != op.From {
		d.Status.LastFailover = d.Now
	}
	return true
}

// promotionAcks is the number of acknowledgements the first commit of a new
// primary waits for. Under quorum it is what the next election may rely on, too:
// not more than what was acknowledged before is known to be on.
func (d *decision) promotionAcks() int {
	applied := d.Status.Promotion.RequiredAcks
	if r, known := d.holder().Latest.Get(); known && !d.Cluster.Durability.Mode.IsOnReplicas() && r.Server != nil &&
		r.Server.SemiSync.SourceEnabled {
		applied = max(applied, r.Server.SemiSync.Acks)
	}
	return d.Cluster.Durability.AtPromotion(d.members(), applied)
}

// fresh tells whether the report of an instance was taken after t, and asks for
// one if it was not. Nothing is waited for from one that cannot be asked.
func (d *decision) fresh(in *core.Instance, t time.Time) bool {
	if !in.Report.Known() || !in.Report.NotBefore().Before(t) {
		return true
	}
	d.again(core.Refresh{Instance: in.Name})
	return false
}
