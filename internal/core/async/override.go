package async

import (
	"fmt"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// overrides promotes whom a human chose although acknowledged writes may be lost;
// true when it did. It is about one epoch, and only about a primary that is failing.
func (d *decision) overrides() bool {
	want := d.Cluster.Override
	if want == nil || d.Status.Promotion == nil {
		return false
	}
	in := d.Instance(want.To)
	switch {
	case d.wasCarriedOut(want):
		d.Do(core.ClearOverride{})
		return false
	case want.Epoch != d.Status.Promotion.Epoch:
		d.RefuseOverride(fmt.Sprintf("it names %s, but the epoch is now %d. Check what would be lost now, then set "+
			"cnmsql.cnmsql.co/accept-data-loss=INSTANCE@%[2]d", want, d.Status.Promotion.Epoch))
		return false
	case d.isToTakeOver() && d.diagnosis.name == core.PrimaryHealthy && want.To == d.Status.Promotion.Instance:
		d.settle()
		d.takeOverAnyway()
		return true
	case d.takesWrites():
		d.RefuseOverride("the primary " + d.Status.Promotion.Instance + " " + serves(d.Status.Promotion) +
			"; switch over instead")
		return false
	case in == nil:
		d.RefuseOverride("the cluster has no instance " + want.To)
		return false
	}
	r, serves := serving(in)
	if !serves || !r.IsEligible() {
		d.RefuseOverride(want.To + " cannot be promoted: its mysqld does not serve the cluster's data, or its " +
			"applier has stopped")
		return false
	}
	d.beginFailover(d.diagnosis.says)
	d.Status.Diverged = draft.Without(d.Status.Diverged, want.To)
	e := election{winner: want.To, podUID: r.PodUID, node: r.Node, holds: r.Server.Holds()}
	d.grant(e, proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted the loss of writes that " + want.To +
		" does not hold"}, 0)
	d.Warn(core.ReasonOverride, fmt.Sprintf("%s is promoted because a human chose it, without a proof that no other "+
		"instance takes writes; writes that it does not hold are lost", want.To))
	d.Do(core.ClearOverride{})
	d.Doing("promoting " + want.To)
	return true
}

// wasCarriedOut reports whether the present promotion is what the word asked for: only the annotation is left.
func (d *decision) wasCarriedOut(want *core.Override) bool {
	p := d.Status.Promotion
	return p.Proof == core.ProofAcceptedLoss && p.Instance == want.To && want.Epoch >= 0 && want.Epoch < p.Epoch
}
