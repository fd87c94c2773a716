package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// operate decides who may be writable.
func (d *decision) operate() {
	switch {
	case d.s.Promotion == nil:
		d.bootstrap()
	case d.overrides():
	case d.s.EstablishedAt.IsZero() && !d.takesWrites():
		d.awaitFirst()
	case d.diagnosis.name == core.PrimaryFenced:
		d.block(core.RefusalPrimaryFenced, "the primary "+d.s.Promotion.Instance+" is fenced; writes are stopped until it is unfenced")
	case d.inSwitchover():
		d.switchOver()
	case d.diagnosis.name == core.PrimaryIsolated:
		d.replaceIsolated()
	case isFailing(d.diagnosis.name), d.isReplacing():
		d.failOver()
	case d.diagnosis.name == core.PrimaryHealthy || d.diagnosis.name == core.PrimaryTerminating:
		d.settle()
		d.beginSwitchover()
		d.failBack()
	case d.diagnosis.name == core.PrimaryLostTransactions:
		d.blockLost()
	case d.diagnosis.name == core.PrimaryPromoting:
		d.say("waiting for " + d.s.Promotion.Instance + " to become writable: " + d.promotionProgress())
	case d.diagnosis.name == core.PrimaryUnreachable && d.s.Operation != nil:
		d.block(core.RefusalNoProof, d.noProof(false))
	default:
		d.say("the primary " + d.s.Promotion.Instance + ": " + d.diagnosis.says + "; that is no reason to replace it")
	}
}

func (d *decision) promotionProgress() string {
	r, known := d.holder().Report.Get()
	switch {
	case !known:
		return "its manager does not answer yet"
	case r.Message != "":
		return fmt.Sprintf("%s, %s", r.State, r.Message)
	default:
		return string(r.State)
	}
}

func (d *decision) blockLost() {
	d.block(core.RefusalLostTransactions, "the primary "+d.s.Promotion.Instance+" has lost transactions: "+d.diagnosis.says+
		". Nothing is promoted or cloned until you decide which copy is right, and delete the Pods and PersistentVolumeClaims of the others")
}

// takesWrites: the holder is writable, whatever else is the matter with it.
func (d *decision) takesWrites() bool {
	switch d.diagnosis.name {
	case core.PrimaryHealthy, core.PrimaryTerminating, core.PrimaryLostTransactions, core.PrimaryIsolated:
		return true
	default:
		return false
	}
}

// awaitFirst: the cluster never had a primary, so there is nothing to fail over;
// the instance that was chosen to be the first has to get there.
func (d *decision) awaitFirst() {
	p := d.s.Promotion
	r, known := d.holder().Report.Get()
	switch {
	case known && r.State == core.Failed:
		d.block(core.Reason(r.Reason), p.Instance+": "+sentence(r.Reason, r.Message))
	case known && !mayGoOn(r, p):
		d.block(core.RefusalNoProof, fmt.Sprintf("%s was to become the first primary on node %s and now runs on node %s, and nobody knows what became of its first Pod; delete this Cluster and create it again",
			p.Instance, p.Node, r.Node))
	case known && r.State == core.Stopped && r.Data == core.DataPopulated:
		d.do(core.RestartInPlace{Instance: p.Instance, Epoch: p.Epoch})
		fallthrough
	default:
		d.say("waiting for " + p.Instance + " to become the first primary: " + d.promotionProgress())
	}
}

// sentence joins a reason and a message.
func sentence(reason, message string) string {
	switch {
	case message == "":
		return reason
	case reason == "":
		return message
	default:
		return reason + ": " + message
	}
}

// bootstrap chooses the first primary, once: the instance with the lowest
// ordinal, when it says itself that it has no data. An instance that was there
// before the status knew of it may hold data: it must be heard first.
func (d *decision) bootstrap() {
	if d.o.Cluster.Problem != nil || !d.s.EstablishedAt.IsZero() {
		return
	}
	stranger := ""
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		r, known := in.Report.Get()
		if in.Exists() && !slices.Contains(d.s.InstanceNames, in.Name) {
			stranger = in.Name
		}
		if known && r.Data == core.DataPopulated {
			d.block(core.RefusalDataWithoutStatus, in.Name+" has data, but the Cluster's status does not know of any primary: the status was lost. "+
				"Nothing is initialised; restore the status, or create a Cluster with another name")
			return
		}
	}
	if len(d.o.Instances) == 0 {
		return
	}
	first := &d.o.Instances[0]
	r, known := first.Report.Get()
	switch {
	case stranger != "":
		d.say("waiting to hear what " + stranger + " holds, which the Cluster's status does not know of")
		return
	case !known || r.Data != core.DataEmpty || r.State == core.Failed || r.Terminating:
		d.say("waiting for " + first.Name + " to start")
		return
	}
	d.grant(election{winner: first.Name, podUID: r.PodUID, node: r.Node}, proven{proof: core.ProofBootstrap, evidence: "there never was a primary"}, 0)
	d.say("initialising " + first.Name)
}

// grant permits the winner of an election to be writable in the next epoch.
func (d *decision) grant(e election, p proven, acks int) {
	from := ""
	if d.s.Promotion != nil {
		from = d.s.Promotion.Instance
	}
	d.tellLost(e)
	d.s.Epoch = d.nextEpoch()
	d.s.Promotion = &core.Promotion{
		Epoch: d.s.Epoch, Instance: e.winner, Proof: p.proof, Evidence: p.evidence, From: from,
		RequiredGTID: e.holds, RequiredAcks: acks, GrantedAt: d.now(), PodUID: e.podUID, Node: e.node, Pods: []string{e.podUID},
		LosslessSince: d.losslessSince(acks), Size: max(len(d.s.InstanceNames), 1),
	}
	d.diagnosis = finding{core.PrimaryPromoting, "it is being made writable"}
	d.setTarget(e.winner)
	if op := d.s.Operation; op != nil {
		op.To, op.Step = e.winner, core.StepPromote
		if op.Kind == core.OperationFailover {
			op.Deadline = time.Time{}
		}
	}
	d.tell(core.ReasonPromotionGranted, fmt.Sprintf("%s may take writes in epoch %d; proof that nobody else does: %s (%s)", e.winner, d.s.Epoch, p.proof, p.evidence))
}

// tellLost: who was promoted before never got what it had to have, and the winner
// does not have it either.
func (d *decision) tellLost(e election) {
	p := d.s.Promotion
	if p == nil || !p.WritableSince.IsZero() {
		return
	}
	if lost := p.RequiredGTID.Subtract(e.holds); !lost.IsEmpty() {
		d.warn(core.ReasonLost, fmt.Sprintf("%s is promoted without %s, which %s had and nobody who can be promoted holds: what was acknowledged of it is lost",
			e.winner, lost.Abbreviate(10), p.From))
	}
}

// losslessSince of a promotion in the next epoch: what is acknowledged in it waits
// for replicas, and so did all that the promise of the present one speaks of.
func (d *decision) losslessSince(acks int) int64 {
	if d.o.Cluster.Durability.Mode != core.DurabilityQuorum || acks == 0 {
		return 0
	}
	if before := d.s.Promotion; before != nil && before.LosslessSince > 0 {
		return before.LosslessSince
	}
	return d.s.Epoch
}

func (d *decision) nextEpoch() int64 {
	if d.s.Promotion == nil {
		return d.s.Epoch + 1
	}
	return max(d.s.Epoch, d.s.Promotion.Epoch) + 1
}

func (d *decision) setTarget(name string) {
	if d.s.TargetPrimary != name {
		d.s.TargetPrimary, d.s.TargetPrimaryAt = name, d.now()
	}
}

// settle records that the holder is writable and ends the operation that led there.
func (d *decision) settle() {
	p, holder := d.s.Promotion, d.holder()
	r, _ := holder.Report.Get()
	p.PodUID, p.Node = r.PodUID, r.Node
	if p.WritableSince.IsZero() {
		p.WritableSince = d.now()
	}
	if d.s.CurrentPrimary != p.Instance {
		d.s.CurrentPrimary, d.s.CurrentPrimaryAt = p.Instance, d.now()
	}
	if d.s.EstablishedAt.IsZero() {
		d.s.EstablishedAt = d.now()
		d.tell(core.ReasonPrimaryEstablished, p.Instance+" is the primary")
	}
	if d.s.TargetPrimary == "" {
		d.setTarget(p.Instance)
	}
	if op := d.s.Operation; op != nil && d.operationEnded(op) {
		d.s.Operation = nil
	}
	d.s.FailingSince = time.Time{}
}

// operationEnded tells the user how an operation ended.
func (d *decision) operationEnded(op *core.Operation) bool {
	p := d.s.Promotion
	if op.Kind == core.OperationSwitchover && op.Step != core.StepPromote && op.Step != core.StepReturn {
		return false
	}
	took := d.now().Sub(op.StartedAt).Round(time.Millisecond)
	switch {
	case p.Instance != op.From:
		d.tell(core.ReasonPrimaryChanged, fmt.Sprintf("%s: %s is the primary now, after %s (%s), %s", op.Kind, p.Instance, op.From, op.Reason, took))
	default:
		d.tell(core.ReasonRecovered, fmt.Sprintf("%s is writable again after %s", p.Instance, took))
	}
	if op.Kind == core.OperationFailover && p.Instance != op.From {
		d.s.LastFailover = d.now()
	}
	return true
}

// promotionAcks is the number of acknowledgements the first commit of a new
// primary waits for. Under quorum it is what the next election may rely on, too:
// not more than what was acknowledged before is known to be on.
func (d *decision) promotionAcks() int {
	applied := d.s.Promotion.RequiredAcks
	if r, known := d.holder().LastWord.Get(); known && d.o.Cluster.Durability.Mode != core.DurabilityQuorum && r.Server != nil && r.Server.SemiSync.SourceEnabled {
		applied = max(applied, r.Server.SemiSync.Acks)
	}
	return d.o.Cluster.Durability.AtPromotion(len(d.o.Instances), applied)
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
