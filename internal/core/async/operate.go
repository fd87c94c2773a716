package async

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// operate decides who may be writable.
func (d *decision) operate() {
	switch {
	case d.s.Promotion == nil:
		d.bootstrap()
	case d.inSwitchover():
		d.switchOver()
	case isFailing(d.diagnosis.name):
		d.failOver()
	case d.diagnosis.name == core.PrimaryHealthy || d.diagnosis.name == core.PrimaryTerminating:
		d.settle()
		d.beginSwitchover()
	case d.diagnosis.name == core.PrimaryLostTransactions:
		d.block(core.RefusalLostTransactions, "the primary "+d.s.Promotion.Instance+" has lost transactions: "+d.diagnosis.says+
			". Nothing is promoted or cloned; decide which copy is right, and switch over to the replica that holds them")
	case d.diagnosis.name == core.PrimaryFenced:
		d.block(core.RefusalPrimaryFenced, "the primary "+d.s.Promotion.Instance+" is fenced; writes are stopped until it is unfenced")
	case d.diagnosis.name == core.PrimaryPromoting:
		d.say("waiting for " + d.s.Promotion.Instance + " to become writable: " + d.promotionProgress())
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

// bootstrap chooses the first primary, once: the instance with the lowest
// ordinal, when it says itself that it has no data.
func (d *decision) bootstrap() {
	if d.o.Cluster.Problem != nil || !d.s.EstablishedAt.IsZero() {
		return
	}
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if r, known := in.Report.Get(); known && r.Data == core.DataPopulated {
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
	if !known || r.Data != core.DataEmpty {
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
	d.s.Epoch = d.nextEpoch()
	d.s.Promotion = &core.Promotion{
		Epoch: d.s.Epoch, Instance: e.winner, Proof: p.proof, Evidence: p.evidence, From: from,
		RequiredGTID: e.holds, RequiredAcks: acks, GrantedAt: d.now(), PodUID: e.podUID, Node: e.node,
	}
	d.setTarget(e.winner)
	if op := d.s.Operation; op != nil {
		op.To, op.Step = e.winner, core.StepPromote
	}
	d.tell(core.ReasonPromotionGranted, fmt.Sprintf("%s may take writes in epoch %d; proof that nobody else does: %s (%s)", e.winner, d.s.Epoch, p.proof, p.evidence))
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
	if op.Kind == core.OperationSwitchover && op.Step != core.StepPromote {
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
// primary waits for.
func (d *decision) promotionAcks() int {
	applied := d.s.Promotion.RequiredAcks
	if r, known := d.holder().LastWord.Get(); known && r.Server != nil && r.Server.SemiSync.SourceEnabled {
		applied = max(applied, r.Server.SemiSync.Acks)
	}
	return d.o.Cluster.Durability.AtPromotion(len(d.o.Instances), applied)
}

// fresh returns the report of an instance that was taken after t, or asks for one.
func (d *decision) fresh(in *core.Instance, t time.Time) bool {
	if !in.Report.Known() || !in.Report.NotBefore().Before(t) {
		return true
	}
	d.again(core.Refresh{Instance: in.Name})
	return false
}

// executedOf is what the holder had executed when it was demoted; ok is false
// when its mysqld does not answer.
func executedOf(r core.Report) (gtid.Set, bool) {
	if r.Server == nil {
		return gtid.Set{}, false
	}
	return r.Server.Executed, true
}
