package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// receiveGrace is how long replicas may take to notice that a dead primary
	// sends nothing more, before their IO threads are stopped.
	receiveGrace = 300 * time.Millisecond
	// receiveLook is how often they are asked meanwhile.
	receiveLook = 20 * time.Millisecond
	// electionPatience is how long an election waits for the word of an instance
	// that was heard of; who has not answered by then counts as unknown.
	electionPatience = 10 * time.Second
)

// holdElection reads the candidates' positions after the proof, and promotes one.
func (d *decision) holdElection(f *failure) {
	next, proof := f.next, f.proof
	begun := d.electingSince(next)
	d.Status.Operation.Step, d.Status.Operation.Deadline = core.StepElect, begun.Add(electionPatience)
	since := countsSince(begun, proof)
	if !d.readPositions(proof, next, since, begun.Add(electionPatience)) {
		return
	}
	d.electSuccessor(proof, since)
}

// countsSince is since when positions count that are read after a proof. A proof by Kubernetes' word
// is as old as the word is repeated: what was read since this operator first had it, at begun, was
// certainly read after it.
func countsSince(begun time.Time, proof proven) time.Time {
	since := begun.Add(time.Nanosecond)
	if proof.since.Before(since) {
		since = proof.since
	}
	return since
}

// isRefused reports whether nobody takes over from a primary that fails: it is too soon, or an
// election among the others has come to its end, and who would win exceeds a bound of the user's or
// cannot be asked since the proof. It goes by what the failover goes by, for a plan that promotes
// another must not make a new Pod of the primary. What passes in a moment is waited for, for the proof
// by the end of the Pod is gone once there is another: who lags applies what it has received, and the
// time between failovers may be nearly over.
func (d *decision) isRefused(holder *core.Instance) bool {
	next, op, begun := d.nextEpoch(), d.Status.Operation, d.Observation.Carried.Proven
	proof, isProven := prove(d.Observation, next)
	switch _, serves := serving(holder); {
	case d.inSwitchover():
		return false
	case d.tooSoon() != "":
		return d.Now.Add(electionPatience).Before(d.Status.LastFailover.Add(d.Cluster.Policy.MinTimeBetweenFailover))
	case !isProven || begun.Epoch != next || serves || op == nil || op.Kind != core.OperationFailover:
		return false
	}
	b := d.ballot(holder.Name, op.To)
	b.after(proof, countsSince(begun.At, proof), next)
	b.drained = true
	isOpen, patient := false, d.Now.Before(begun.At.Add(electionPatience))
	others(d.Observation, holder.Name, func(in *core.Instance) {
		r, ok := serving(in)
		isAsked := in.Report.Known() && in.Report.NotBefore().Before(b.since)
		isOpen = isOpen || patient && (isAsked || ok && receives(r))
	})
	e := d.electWithin(b)
	catchesUp := e.refusal == core.RefusalLag && patient
	return !isOpen && !catchesUp && e.refusal != ""
}

// electingSince is since when this very operator has had a proof for the next
// epoch. One that has just started has only just got it: what another one's clock
// said in the status is not held against what is read now.
func (d *decision) electingSince(next int64) time.Time {
	d.Plan.Carried.Proven = d.Observation.Carried.Proven.Or(next, d.Now)
	return d.Plan.Carried.Proven.At
}

// readPositions reports whether every instance that is heard of was asked after the proof, and
// none still receives what a dead primary sent. Who was not is asked, and those that go on receiving have
// their IO threads stopped: what they say they hold is final once they are. Nobody is waited for longer than
// patience. A demoted primary that answers sends on what it holds, and is asked itself. Of one that is merely cut off
// from its acknowledgements, also who does not receive at this moment promises to receive nothing: it may begin to.
func (d *decision) readPositions(proof proven, next int64, since, patience time.Time) bool {
	stable := true
	_, sends := serving(d.holder())
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Name == d.Status.Promotion.Instance && !sends {
			continue
		}
		patient := d.Now.Before(patience)
		if patient && !d.fresh(in, since) {
			stable = false
			continue
		}
		switch r, ok := serving(in); {
		case !ok || sends:
		case proof.proof == core.ProofQuorumCut && r.NoReceivingBelow < next:
			stable = stable && !patient
			d.again(core.ReceivePromise{Instance: r.Instance, Epoch: next})
		case receives(r):
			stable = stable && !patient
			d.stopReceiving(r, next, since)
		}
	}
	if !stable {
		d.Doing("reading what the replicas hold")
		d.RecheckAt(patience)
	}
	return stable
}

func (d *decision) stopReceiving(r core.Report, next int64, since time.Time) {
	if r.NoReceivingBelow >= next || d.Now.Before(since.Add(receiveGrace)) {
		d.Do(core.Refresh{Instance: r.Instance})
		d.RecheckAt(d.Now.Add(receiveLook))
		return
	}
	d.again(core.ReceivePromise{Instance: r.Instance, Epoch: next})
}

// electSuccessor promotes who holds the most: a replica, or the demoted primary
// itself once its mysqld can be asked. When no replica may be promoted, that is
// waited for.
func (d *decision) electSuccessor(proof proven, since time.Time) {
	holder := d.holder()
	b := d.ballot("", d.Status.Operation.To)
	b.after(proof, since, d.nextEpoch())
	r, serves := serving(holder)
	if !serves {
		b.exclude, b.drained = holder.Name, true
	}
	e := d.electWithin(b)
	switch {
	case e.refusal == "":
		d.grant(e, proof, d.promotionAcks())
		d.Doing("promoting " + e.winner)
	case serves && r.Terminating:
		d.Doing(fmt.Sprintf("%s is being stopped: waiting until a replica holds all that it holds", holder.Name))
	case d.comesBack(holder):
		// It waits for a word before it recovers, and others may wait for what it holds. It is
		// started to say that, also where it may not open any more, for its lease was taken.
		if back, known := holder.Report.Get(); known && back.State == core.Stopped &&
			mayGoOn(back, d.Status.Promotion) {
			d.blockRestarts(back)
			d.startInPlace(back, "no other instance can take over: "+e.why)
		}
		said := fmt.Sprintf("waiting for %s to report what it holds; no other instance can be promoted: %s",
			holder.Name, e.why)
		if !holder.Report.Known() {
			said += besides(holder)
		}
		d.Doing(said)
	default:
		if end := d.Status.Operation.Deadline; e.refusal == core.RefusalLag && d.Now.Before(end) {
			d.RecheckAt(end) // then it counts as refused
		}
		d.Block(e.refusal, fmt.Sprintf("the primary %s is failing (%s: %s), and the operator promotes nobody: %s%s%s",
			holder.Name,
			d.diagnosis.name, d.diagnosis.says, e.why, besides(holder), d.wayOut(e.refusal)))
	}
}

// wayOut tells what a human may do who would rather lose something than wait.
func (d *decision) wayOut(refusal core.Reason) string {
	override := "kubectl cnmsql failover " + d.Cluster.Name + " --to INSTANCE --accept-data-loss"
	switch primary := d.Status.Promotion.Instance; {
	case refusal == core.RefusalTooFewKnown:
		return ". To promote a replica anyway and lose what it lacks: " + override
	case refusal == core.RefusalIncomparable:
		return ". Compare them, then choose: " + override + "; the others keep their data"
	case refusal == core.RefusalAllDiverged && !slices.Contains(d.Status.Diverged, primary) &&
		d.diagnosis.name != core.PrimaryDataLost && !d.holder().IsGone():
		return ". Bring " + primary + " back: it is the only one that has not diverged. Or choose: " + override
	case refusal == core.RefusalAllDiverged:
		return ". Choose: " + override
	}
	return ""
}

// electWithin holds an election within the bounds that the user set. If they
// forbid the winner, the demoted primary itself may be as good.
func (d *decision) electWithin(b ballot) election {
	e := b.elect()
	if e.refusal != "" {
		return e
	}
	refusal, why := d.exceedsPolicy(e)
	if refusal == "" {
		return e
	}
	b.prefer = d.Status.Promotion.Instance
	if again := b.elect(); again.refusal == "" && again.winner == b.prefer {
		return again
	}
	return election{refusal: refusal, why: why}
}

// comesBack reports whether the old primary's manager answers and starts mysqld by itself, or its
// new Pod is on its way.
func (d *decision) comesBack(holder *core.Instance) bool {
	r, known := holder.Report.Get()
	if !known {
		pod, podKnown := holder.Pod.Get()
		return podKnown && d.diagnosis.name == core.PodGone && (!pod.Exists || pod.NeverStarted)
	}
	_, serves := serving(holder)
	return !serves && r.State != core.Failed && r.State != core.Fenced && !r.Terminating &&
		(r.Data == core.DataPopulated || r.Data == core.DataUnknown)
}

func (d *decision) ballot(exclude, prefer string) ballot {
	return ballot{o: d.Observation, exclude: exclude, prefer: prefer, diverged: d.Status.Diverged,
		fenced: d.Status.Fenced}
}
