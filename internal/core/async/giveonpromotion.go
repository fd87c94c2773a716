package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// awaitPromoted waits for the instance that was promoted, unless another is to be promoted instead.
func (d *decision) awaitPromoted() {
	if !d.giveOn() {
		d.Doing("waiting for " + d.Status.Promotion.Instance + " to become writable: " + d.promotionProgress())
	}
}

// seesPromotion reports whether a manager has seen in the Cluster's own status that the present
// promotion was made. What it knows by an order of the operator it cannot act upon. Managers of
// earlier releases do not tell one from the other.
func seesPromotion(r core.Report, p *core.Promotion) bool {
	return r.SeenEpoch >= p.Epoch && (r.ViewEpoch == 0 || r.ViewEpoch >= p.Epoch)
}

// giveOn has the promotion of a failover given to another instance, and reports whether it does: the
// promoted one answers, does not see that it is promoted, and gets nothing done, as where it does not
// reach the API server. Whoever gets it has seen the present promotion. So it never goes back and
// forth between two that both see nothing. The present target has to promise first that it takes no
// writes, as any primary that is replaced; if it opens before that, it stays. A human's choice stays
// as well.
func (d *decision) giveOn() bool {
	op, p := d.Status.Operation, d.Status.Promotion
	if op == nil || op.Kind != core.OperationFailover || op.Step != core.StepPromote ||
		p.Proof == core.ProofAcceptedLoss || !d.awaitSight() {
		return false
	}
	to := d.seesInstead()
	if to == "" || !d.canPromise() {
		return false
	}
	d.Warn(core.RefusalDeadline, fmt.Sprintf("%s was promoted, but made no progress for %s (%s). The operator "+
		"promotes %s instead, as soon as %[1]s has promised to take no writes", p.Instance, stallLimit,
		d.promotionProgress(), to))
	op.Step, op.To = core.StepProve, to
	op.Witnesses = append(slices.Clone(op.Witnesses), witnesses(d.Observation)...)
	slices.Sort(op.Witnesses)
	op.Witnesses = slices.Compact(op.Witnesses)
	d.failOver()
	return true
}

// awaitSight looks at a promoted instance that does not see the promotion, and returns whether it has got
// nothing done for long, by a word that is not older than that.
func (d *decision) awaitSight() (isOver bool) {
	r, serves := serving(d.holder())
	if !serves || seesPromotion(r, d.Status.Promotion) {
		return false
	}
	until, _ := d.stallsAt()
	if d.Now.Before(until) {
		d.RecheckAt(until)
		return false
	}
	d.RecheckAt(d.Now.Add(stallLimit)) // another may see it later
	return d.fresh(d.holder(), until)
}

// seesInstead names who would be elected in place of the promoted instance, if that one has seen the
// promotion and holds all that is required; "" when there is none.
func (d *decision) seesInstead() string {
	p := d.Status.Promotion
	b := d.ballot(p.Instance, "")
	b.failed = d.Status.Operation.From
	e := b.elect()
	if e.refusal != "" || !e.holds.Contains(p.RequiredGTID) {
		return ""
	}
	if no, _ := d.exceedsPolicy(e); no != "" {
		return ""
	}
	if !d.Instance(e.winner).Report.Is(func(r core.Report) bool { return seesPromotion(r, p) }) {
		return ""
	}
	return e.winner
}
