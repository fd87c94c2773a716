package sim

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// checkPlan holds a plan against what it was made from, and a proof against what
// is true. What it needs it works out itself, without the code under test.
func (tr *truth) checkPlan(o *core.Observation, plan *core.Plan) {
	before, after := o.Cluster.Status.Promotion, plan.Status.Promotion
	if before != nil && after == nil || plan.Status.Epoch < o.Cluster.Status.Epoch {
		tr.w.fail("I1", "a promotion or its epoch was taken back")
		return
	}
	for _, e := range plan.Effects {
		tr.checkUnknown(o, e)
	}
	if plan.Status.Diagnosis == core.PrimaryLostTransactions && before != nil {
		tr.checkLost(o, before)
	}
	if before != nil {
		tr.checkDiverged(o, plan, before)
	}
	if after == nil || before != nil && after.Epoch == before.Epoch && after.Instance == before.Instance {
		return
	}
	if before != nil && isRenewal(before, after) {
		tr.w.cover.count("truth", "an epoch begins for the same primary")
		return
	}
	tr.w.cover.count("proof", string(after.Proof))
	switch {
	case after.Epoch <= o.Cluster.Status.Epoch || after.Epoch != plan.Status.Epoch:
		tr.w.fail("I1", "a promotion without a new epoch: %d after %d", after.Epoch, o.Cluster.Status.Epoch)
	case after.Proof == core.ProofAcceptedLoss:
		tr.must, tr.acked = gtid.Set{}, nil
		return
	case slices.Contains(plan.Status.Diverged, after.Instance) || slices.Contains(o.Cluster.Status.Diverged, after.Instance):
		tr.w.fail("I4", "%s has diverged and is promoted", after.Instance)
	case after.Proof == core.ProofBootstrap:
		if before != nil || !o.Cluster.Status.EstablishedAt.IsZero() {
			tr.w.fail("I5", "an established cluster is bootstrapped")
		}
		return
	}
	tr.checkProof(before, after)
	tr.checkPosition(o, plan, after)
}

// checkDiverged (I6): whoever is found diverged holds what the primary does not.
func (tr *truth) checkDiverged(o *core.Observation, plan *core.Plan, p *core.Promotion) {
	primary := tr.w.serverOf(p.Instance)
	if primary == nil || primary.epoch != p.Epoch || tr.lied {
		return
	}
	for _, name := range plan.Status.Diverged {
		s := tr.w.serverOf(name)
		if s == nil || slices.Contains(o.Cluster.Status.Diverged, name) {
			continue
		}
		tr.w.cover.count("truth", "found diverged")
		if primary.db.executed.Contains(s.db.executed) {
			tr.w.fail("I6", "%s is said to have diverged from %s, which has all that it holds", name, p.Instance)
		}
	}
}

// isRenewal: the next epoch begins for the same primary, which goes on.
func isRenewal(before, after *core.Promotion) bool {
	return after.Instance == before.Instance && after.Proof == before.Proof &&
		after.From == before.From && after.Epoch > before.Epoch && after.GrantedAt.Equal(before.GrantedAt)
}

// checkProof (I1): what the proof says is true.
func (tr *truth) checkProof(before, after *core.Promotion) {
	if after.Proof == core.ProofQuorumCut {
		tr.cutBelow[before.Instance] = after.Epoch
		return
	}
	for _, s := range tr.w.servers() {
		if s.manager.me == before.Instance && before.Instance != after.Instance && s.epoch == before.Epoch && !(after.Proof == core.ProofLeaseExpired && tr.isExcused(s)) {
			tr.w.fail("I1", "%s is promoted by %s (%s), and %s still takes writes", after.Instance, after.Proof, after.Evidence, before.Instance)
		}
	}
}

// checkPosition (I3): what the promoted must have includes what any other known,
// non-diverged instance holds.
func (tr *truth) checkPosition(o *core.Observation, plan *core.Plan, after *core.Promotion) {
	winner := o.Instance(after.Instance)
	if winner == nil || !isPositionKnown(winner) {
		tr.w.fail("I3", "%s is promoted, and its position is not known", after.Instance)
		return
	}
	for i := range o.Instances {
		in := &o.Instances[i]
		if !isPositionKnown(in) || slices.Contains(plan.Status.Diverged, in.Name) {
			continue
		}
		if r, _ := in.Report.Get(); !after.RequiredGTID.Contains(r.Server.Holds()) {
			tr.w.fail("I3", "%s is promoted at %s, although %s holds %s", after.Instance, after.RequiredGTID, in.Name, r.Server.Holds())
		}
	}
}

func isPositionKnown(in *core.Instance) bool {
	r, known := in.Report.Get()
	return known && r.State == core.Running && r.Data == core.DataPopulated && r.Server != nil
}

// checkUnknown (I6): nothing is taken away from an instance of which the fact that
// it would rest on is unknown.
func (tr *truth) checkUnknown(o *core.Observation, e core.Effect) {
	switch e := e.(type) {
	case core.DeletePod:
		if in := o.Instance(e.Instance); in == nil || !in.Pod.Known() {
			tr.w.fail("I6", "%s, though Kubernetes' facts are not known", e)
		}
	case core.DeleteInstance:
		in := o.Instance(e.Instance)
		vol, known := in.Volume.Get()
		if !in.Report.Known() && (!known || vol.Bound) {
			tr.w.fail("I6", "%s, though it is not known what it holds", e)
		}
	case core.Demote:
		if in := o.Instance(e.Instance); in == nil || !in.Report.Known() {
			tr.w.fail("I6", "%s, which cannot be asked", e)
		}
	}
}

// checkLost: a primary that is said to have lost transactions does not have them.
func (tr *truth) checkLost(o *core.Observation, p *core.Promotion) {
	s := tr.w.serverOf(p.Instance)
	if s == nil || s.manager.uid != p.PodUID {
		return
	}
	waits := false
	for i := range o.Instances {
		in := &o.Instances[i]
		for _, f := range append([]core.Fact[core.Report]{in.Report}, in.Earlier...) {
			r, known := f.Get()
			if !known || r.Server == nil || slices.Contains(o.Cluster.Status.Diverged, in.Name) {
				continue
			}
			if !s.db.logged.Contains(r.Server.Executed) {
				return
			}
			waits = waits || !s.db.executed.Contains(r.Server.Executed)
		}
	}
	if !waits && !s.semi.enabled && !tr.lied { // else it may have given a number twice
		tr.w.fail("I6", "%s is said to have lost what it has executed", p.Instance)
	}
	// A finding that is known, and too frequent to end a run.
	tr.w.cover.count("finding", "a commit that waits is taken for lost")
	tr.falseAlarm = tr.w.now
}
