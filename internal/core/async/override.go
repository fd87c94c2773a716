package async

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// overrides promotes whom a human chose although acknowledged writes may be lost;
// true when it did. It is about one epoch, and only about a primary that is failing.
func (d *decision) overrides() bool {
	want := d.o.Cluster.Override
	if want == nil || d.s.Promotion == nil {
		return false
	}
	in := d.o.Instance(want.To)
	switch {
	case want.Epoch != d.s.Promotion.Epoch:
		d.do(core.ClearOverride{})
		return false
	case d.takesWrites():
		d.refuseOverride("the primary " + d.s.Promotion.Instance + " takes writes; switch over instead")
		return false
	case in == nil:
		d.refuseOverride("the cluster has no instance " + want.To)
		return false
	}
	r, serves := serving(in)
	if !serves || !eligible(r) {
		d.refuseOverride(want.To + " cannot be promoted: its mysqld does not serve the cluster's data, or its applier has stopped")
		return false
	}
	d.beginFailover(d.diagnosis.says)
	d.s.Diverged = without(d.s.Diverged, want.To)
	e := election{winner: want.To, podUID: r.PodUID, node: r.Node, holds: r.Server.Holds()}
	d.grant(e, proven{proof: core.ProofAcceptedLoss, evidence: "a human accepted that writes which " + want.To + " does not hold are lost"}, 0)
	d.warn(core.ReasonOverride, fmt.Sprintf("%s is promoted on a human's word, without a proof that nobody else takes writes; what it does not hold is lost", want.To))
	d.do(core.ClearOverride{})
	d.say("promoting " + want.To)
	return true
}

func (d *decision) refuseOverride(why string) {
	d.warn(core.RefusalOverride, "the accepted loss of data is not carried out: "+why)
	d.do(core.ClearOverride{})
}
