package async

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// receiveGrace is how long replicas may take to notice that a dead primary sends
// nothing more, before their IO threads are stopped.
const receiveGrace = 300 * time.Millisecond

// failOver replaces a primary that fails. Each step is derived from what is
// observed, so that a restarted operator goes on where the last one stood.
func (d *decision) failOver() {
	if d.s.FailingSince.IsZero() {
		d.s.FailingSince = d.now()
	}
	if d.s.Operation == nil || d.s.Operation.Kind != core.OperationFailover {
		d.s.Operation = &core.Operation{Kind: core.OperationFailover, From: d.s.Promotion.Instance,
			Reason: core.Reason(d.diagnosis.name), StartedAt: d.s.FailingSince}
		d.warn(core.ReasonFailover, fmt.Sprintf("the primary %s fails (%s): %s", d.s.Promotion.Instance, d.diagnosis.name, d.diagnosis.says))
	}
	op := d.s.Operation
	next := d.nextEpoch()
	proof, isProven := prove(d.o, next)
	if d.restartInPlace(isProven) {
		return
	}
	if until := d.s.FailingSince.Add(d.o.Cluster.FailoverDelay); d.now().Before(until) {
		op.Step = core.StepDelay
		d.say(fmt.Sprintf("the primary %s fails (%s); it is replaced if it is not back in %s (spec.failoverDelay)",
			op.From, d.diagnosis.name, until.Sub(d.now()).Round(time.Second)))
		d.recheckAt(until)
		return
	}
	if !isProven {
		d.seekProof(next)
		return
	}
	op.Step = core.StepElect
	if d.positionsStable(next, proof.since) {
		d.electSuccessor(proof)
	}
}

// restartInPlace: when nobody may be promoted, starting the crashed mysqld again
// is the remedy. Once the primary has promised to stay read-only it takes a new
// promotion instead.
func (d *decision) restartInPlace(isProven bool) bool {
	holder := d.holder()
	r, known := holder.Report.Get()
	if !known || isProven || r.Data != core.DataPopulated {
		return false
	}
	e := d.ballot(holder.Name, "").elect()
	if e.refusal == "" {
		return false
	}
	if r.State == core.Stopped {
		d.do(core.RestartInPlace{Instance: holder.Name, Epoch: d.s.Promotion.Epoch})
		d.warn(core.ReasonRestartInPlace, "mysqld of "+holder.Name+" is started again in place: "+e.why)
	}
	if r.State == core.Failed {
		d.block(core.Reason(r.Reason), holder.Name+": "+r.Message+"; and nobody can take over: "+e.why)
	}
	if r.State == core.Hung {
		return false
	}
	d.say(fmt.Sprintf("mysqld of %s is being started again (%s); nobody can take over: %s", holder.Name, r.State, e.why))
	return true
}

// seekProof asks the old primary's manager for its word, if it can be asked.
func (d *decision) seekProof(next int64) {
	holder := d.holder()
	d.s.Operation.Step = core.StepProve
	if holder.Report.Known() {
		d.do(core.Demote{Instance: holder.Name, Epoch: next})
		d.plan.Again = true
		d.say("asking the manager of " + holder.Name + " to promise that it stays read-only")
		return
	}
	d.block(core.RefusalNoProof, fmt.Sprintf(
		"the primary %s fails (%s: %s), and there is no proof yet that it cannot take writes: its manager does not answer and its kubelet has not reported its end. "+
			"Nobody is promoted meanwhile. If its node is dead for good, taint it: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		holder.Name, d.diagnosis.name, d.diagnosis.says, nodeOr(d.s.Promotion.Node)))
}

func nodeOr(node string) string {
	if node == "" {
		return "NODE"
	}
	return node
}

// positionsStable: every reachable replica was asked after the proof, and none
// still receives what a dead primary sent. Those that go on receiving have
// their IO threads stopped.
func (d *decision) positionsStable(next int64, since time.Time) bool {
	stable := true
	others(d.o, d.s.Promotion.Instance, func(in *core.Instance) {
		if !d.fresh(in, since) {
			stable = false
			return
		}
		r, ok := serving(in)
		if !ok || r.FrozenBelow >= next || r.Server.Replication == nil || !r.Server.Replication.IORunning {
			return
		}
		stable = false
		if d.now().Before(since.Add(receiveGrace)) {
			d.do(core.Refresh{Instance: in.Name})
			d.recheckAt(d.now().Add(20 * time.Millisecond))
			return
		}
		d.again(core.FreezeIO{Instance: in.Name, Epoch: next})
	})
	if !stable {
		d.say("reading what the replicas hold")
	}
	return stable
}

// electSuccessor promotes the replica that holds the most; or, if none may be,
// the demoted primary itself, whose history is the reference.
func (d *decision) electSuccessor(proof proven) {
	holder := d.holder()
	e := d.ballot(holder.Name, d.s.Operation.To).elect()
	if e.refusal != "" {
		if own, ok := d.reinstate(proof); ok {
			e = own
		}
	}
	if e.refusal != "" {
		d.block(e.refusal, fmt.Sprintf("the primary %s fails (%s: %s), and nobody is promoted: %s", holder.Name, d.diagnosis.name, d.diagnosis.says, e.why))
		return
	}
	d.grant(e, proof, d.promotionAcks())
	d.say("promoting " + e.winner)
}

// reinstate gives the promotion back to the old primary, when its manager
// promised to be read-only and its data is there: it holds all that was ever
// acknowledged in its epoch.
func (d *decision) reinstate(proof proven) (election, bool) {
	holder := d.holder()
	r, known := holder.Report.Get()
	if !known || proof.proof != core.ProofManagerFenced || r.Data != core.DataPopulated || r.State == core.Failed || r.Terminating {
		return election{}, false
	}
	return election{winner: holder.Name, podUID: r.PodUID, node: r.Node}, true
}

func (d *decision) ballot(exclude, prefer string) ballot {
	return ballot{o: d.o, exclude: exclude, prefer: prefer, diverged: d.s.Diverged}
}
