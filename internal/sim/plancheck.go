package sim

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// verdict is what the truth says of a plan when it is made. It counts once the plan's
// status is written: a plan that the API refuses, because somebody else wrote first, was
// never done.
type verdict struct {
	*truth
	violation *Violation
	follows   []func()
}

// accept counts the verdict, because the status of the plan is written: it fails the run for a
// violation, and does what follows from the plan.
func (v *verdict) accept() {
	if v.violation != nil {
		v.w.fail(v.violation.Invariant, "%s", v.violation.What)
	}
	for _, follow := range v.follows {
		follow()
	}
}

func (v *verdict) fail(invariant, format string, args ...any) {
	if v.violation == nil {
		v.violation = &Violation{Invariant: invariant, What: fmt.Sprintf(format, args...), At: v.w.now}
	}
}

func (v *verdict) onceWritten(do func()) { v.follows = append(v.follows, do) }

// judge holds a plan against what it was made from, and a proof against what is true.
// What it needs it works out itself, without the code under test.
func (tr *truth) judge(o *core.Observation, plan *core.Plan) *verdict {
	v := &verdict{truth: tr}
	v.checkPlan(o, plan)
	return v
}

func (v *verdict) checkPlan(o *core.Observation, plan *core.Plan) {
	before, after := o.Cluster.Status.Promotion, plan.Status.Promotion
	if before != nil && after == nil || plan.Status.Epoch < o.Cluster.Status.Epoch {
		v.fail("I1", "a promotion or its epoch was taken back")
		return
	}
	for _, e := range plan.Effects {
		v.checkUnknown(o, e)
	}
	if plan.Status.Diagnosis == core.PrimaryLostTransactions && before != nil {
		v.checkLost(o, before)
	}
	if before != nil {
		v.checkDiverged(o, plan, before)
	}
	if after == nil || before != nil && after.Epoch == before.Epoch && after.Instance == before.Instance {
		return
	}
	if before != nil && isRenewal(before, after) {
		v.w.cover.count("truth", "an epoch begins for the same primary")
		return
	}
	v.w.cover.count("proof", string(after.Proof))
	switch {
	case after.Epoch <= o.Cluster.Status.Epoch || after.Epoch != plan.Status.Epoch:
		v.fail("I1", "a promotion without a new epoch: %d after %d", after.Epoch, o.Cluster.Status.Epoch)
	case after.Proof == core.ProofTakenOver:
		v.checkTakeOver(before, after)
		return
	case after.Proof == core.ProofAcceptedLoss:
		v.onceWritten(func() { v.must, v.acked = gtid.Set{}, nil })
		return
	case slices.Contains(plan.Status.Diverged, after.Instance) ||
		// A status that went back may tell of what is over.
		after.Proof != core.ProofStatusRestored && slices.Contains(o.Cluster.Status.Diverged, after.Instance):
		v.fail("I4", "%s has diverged and is promoted", after.Instance)
	case after.Proof == core.ProofBootstrap:
		if before != nil || !o.Cluster.Status.EstablishedAt.IsZero() {
			v.fail("I5", "an established cluster is bootstrapped")
		}
		return
	}
	v.checkProof(before, after)
	v.checkPosition(o, plan, after)
}

// checkDiverged (I6): whoever is found diverged holds what the primary does not.
func (v *verdict) checkDiverged(o *core.Observation, plan *core.Plan, p *core.Promotion) {
	primary := v.w.serverOf(p.Instance)
	if primary == nil || primary.epoch != p.Epoch || v.lied {
		return
	}
	for _, name := range plan.Status.Diverged {
		s := v.w.serverOf(name)
		if s == nil || slices.Contains(o.Cluster.Status.Diverged, name) {
			continue
		}
		v.w.cover.count("truth", "found diverged")
		if primary.db.executed.Contains(s.db.executed) {
			v.fail("I6", "%s is said to have diverged from %s, which has all that it holds", name, p.Instance)
		}
	}
}

// isRenewal reports whether the next epoch begins for the same primary, which goes on.
func isRenewal(before, after *core.Promotion) bool {
	return after.Instance == before.Instance && after.Proof == before.Proof &&
		after.From == before.From && after.Epoch > before.Epoch && after.GrantedAt.Equal(before.GrantedAt)
}

// checkProof (I1): what the proof says is true.
func (v *verdict) checkProof(before, after *core.Promotion) {
	if after.Proof == core.ProofQuorumCut {
		v.onceWritten(func() { v.cutBelow[before.Instance] = after.Epoch })
		return
	}
	for _, s := range v.w.servers() {
		if s.manager.me == before.Instance && before.Instance != after.Instance && s.epoch == before.Epoch &&
			!(after.Proof == core.ProofLeaseExpired && v.isExcused(s)) {
			v.fail("I1", "%s is promoted by %s (%s), and %s still takes writes", after.Instance, after.Proof,
				after.Evidence, before.Instance)
		}
	}
}

// checkPosition (I3): what the promoted must have includes what any other known,
// non-diverged instance holds.
func (v *verdict) checkPosition(o *core.Observation, plan *core.Plan, after *core.Promotion) {
	if after.Proof == core.ProofStatusRestored {
		return // it takes writes, and goes on
	}
	winner := o.Instance(after.Instance)
	if winner == nil || !winner.Report.Is(tellsPosition) {
		v.fail("I3", "%s is promoted, and its position is not known", after.Instance)
		return
	}
	for i := range o.Instances {
		in := &o.Instances[i]
		r, known := in.Report.Get()
		if !known || !tellsPosition(r) || slices.Contains(plan.Status.Diverged, in.Name) {
			continue
		}
		if !after.RequiredGTID.Contains(r.Server.Holds()) {
			v.fail("I3", "%s is promoted at %s, although %s holds %s", after.Instance, after.RequiredGTID,
				in.Name, r.Server.Holds())
		}
	}
}

func tellsPosition(r core.Report) bool {
	return r.State == core.Running && r.Data == core.DataPopulated && r.Server != nil
}

// checkUnknown (I6): nothing is taken away from an instance of which the fact that
// it would rest on is unknown.
func (v *verdict) checkUnknown(o *core.Observation, e core.Effect) {
	switch e := e.(type) {
	case core.DeletePod:
		if in := o.Instance(e.Instance); in == nil || !in.Pod.Known() {
			v.fail("I6", "%s, though Kubernetes' facts are not known", e)
		}
	case core.DeleteInstance:
		in := o.Instance(e.Instance)
		vol, known := in.Volume.Get()
		if !in.Report.Known() && (!known || vol.Bound) {
			v.fail("I6", "%s, though it is not known what it holds", e)
		}
	case core.Demote:
		if in := o.Instance(e.Instance); in == nil || !in.Report.Known() {
			v.fail("I6", "%s, which cannot be asked", e)
		}
	}
}

// checkLost fails the run when a primary that is said to have lost transactions has them. A
// primary whose commits wait for acknowledgements may be taken for one that lost them: that is
// known, counted as a finding, and too frequent to end a run.
func (v *verdict) checkLost(o *core.Observation, p *core.Promotion) {
	s := v.w.serverOf(p.Instance)
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
	if !waits && !s.semi.enabled && !v.lied { // else it may have given a number twice
		v.fail("I6", "%s is said to have lost what it has executed", p.Instance)
	}
	// A finding that is known, and too frequent to end a run.
	v.w.cover.count("finding", "a commit that waits is taken for lost")
	at := v.w.now
	v.onceWritten(func() { v.falseAlarm = at })
}
