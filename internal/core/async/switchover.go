package async

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

const (
	// catchUpBacklog is how many transactions an instance may lack and count as abreast.
	catchUpBacklog = 200
	// catchUpAge is how old a position of the primary may be that the target has
	// reached, though it lacks more by now.
	catchUpAge = 2 * time.Second
	// ackersPatience is how long a primary that goes away waits at most for those who are
	// to acknowledge its successor's commits.
	ackersPatience = time.Minute
)

func (d *decision) inSwitchover() bool {
	return d.Status.Operation != nil && d.Status.Operation.Kind == core.OperationSwitchover
}

// switchoverWished reports whether somebody wants another primary than the present one.
func (d *decision) switchoverWished() bool {
	return d.Status.TargetPrimary != "" && d.Status.TargetPrimary != d.Status.Promotion.Instance
}

// beginSwitchover starts one if it was asked for, or if the primary has to go.
func (d *decision) beginSwitchover() {
	if d.Status.Operation != nil {
		return
	}
	if d.switchoverWished() {
		d.start(core.ReasonRequested)
	} else if why := d.hasToGo(); why != "" {
		d.chooseSuccessor(why)
	}
}

// hasToGo returns why the primary cannot stay where there are others; "" when it can.
func (d *decision) hasToGo() core.Reason {
	switch holder := d.holder(); {
	case len(d.Instances) == 1:
	case d.diagnosis.name == core.PrimaryTerminating:
		return core.ReasonPodTerminating
	case holder.Pod.Is(func(pod core.Pod) bool { return pod.DemoteRequested }):
		return core.ReasonDemoteRequested
	case draft.LosesVolume(holder):
		return core.ReasonVolumeDeleting
	}
	return ""
}

// chooseSuccessor chooses a target because the primary has to go.
func (d *decision) chooseSuccessor(why core.Reason) {
	var able []draft.Candidate
	var tired []string
	var rested time.Time
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		r, serves := serving(in)
		switch until := d.RestsUntil(d.Status.Promotion.Instance, in.Name); {
		case !serves || d.refusesTarget(in.Name) != nil:
		case !until.IsZero():
			tired, rested = append(tired, in.Name), until
			d.RecheckAt(until)
		default:
			able = append(able, draft.Candidate{In: in, Report: r})
		}
	})
	if len(able) == 0 && len(tired) > 0 {
		d.Doing(fmt.Sprintf("the primary %s must hand over (%s), but %s did not take over in time. The operator "+
			"tries again at %s",
			d.Status.Promotion.Instance, why,
			strings.Join(tired, ", "), rested.UTC().Format("15:04:05 MST")))
		return
	}
	if len(able) == 0 {
		d.Doing(fmt.Sprintf("the primary %s must hand over (%s), but no replica can take over yet",
			d.Status.Promotion.Instance, why))
		return
	}
	d.setTarget(slices.MinFunc(able, d.ByFitness).In.Name)
	d.begin(why)
}

// earlier names an instance that serves, and whose MySQL is of an earlier series than that of another:
// it may not be able to follow it. "" when there is none.
func (d *decision) earlier(than *core.Instance) string {
	name, of := "", than.Report
	others(d.Observation, than.Name, func(in *core.Instance) {
		if r, ok := serving(in); ok && of.Is(func(later core.Report) bool {
			return core.CompareSeries(r.Version, later.Version) < 0 && later.Version != ""
		}) {
			name = in.Name
		}
	})
	return name
}

// start begins the switchover that somebody asked for. A refused wish is taken
// back, so that it does not come true by surprise later.
func (d *decision) start(why core.Reason) {
	target := d.Status.TargetPrimary
	no := d.refusesTarget(target)
	if no == nil {
		no = unready(d.Instance(target))
	}
	if no != nil {
		d.Warn(no.Reason, "switchover to "+target+" refused: "+no.Message)
		d.setTarget(d.Status.Promotion.Instance)
		d.Again = true
		return
	}
	d.begin(why)
}

// refuseWhileFenced takes back a wish for another primary, and gives up a switchover that has not begun to stop
// writes: a human has stopped them, and it would come true when the fence is taken off.
func (d *decision) refuseWhileFenced() {
	primary := d.Status.Promotion.Instance
	if d.inSwitchover() && d.Status.Operation.Step == core.StepCatchUp {
		d.giveUp(core.RefusalPrimaryFenced, "the primary "+primary+" is fenced")
		return
	}
	if d.Status.Operation != nil || !d.switchoverWished() {
		return
	}
	d.Warn(core.RefusalPrimaryFenced, fmt.Sprintf("switchover to %s refused: the primary %s is fenced; take the fence "+
		"off %s first, and ask again", d.Status.TargetPrimary, primary, primary))
	d.setTarget(primary)
	d.Again = true
}

// unready tells why traffic could not be led to the target of a switchover; nil when it could.
func unready(target *core.Instance) *core.Problem {
	why := draft.Unready(target)
	switch {
	case why == "":
		return nil
	case target.Pod.Known():
		why = "its Pod is " + why
	}
	return &core.Problem{Reason: core.RefusalTargetNotReady, Message: why}
}

func (d *decision) begin(why core.Reason) {
	op := &core.Operation{Kind: core.OperationSwitchover, Step: core.StepCatchUp, From: d.Status.Promotion.Instance,
		To: d.Status.TargetPrimary, Reason: why, StartedAt: d.Now}
	d.Status.Operation = op
	d.keepDeadline(op)
	d.Tell(why, fmt.Sprintf("switchover from %s to %s begins", op.From, op.To))
	d.Doing("switching over from " + op.From + " to " + op.To)
	d.Again = true
}

// refusesTarget tells why an instance cannot be switched to; nil when it can.
func (d *decision) refusesTarget(name string) *core.Problem {
	in := d.Instance(name)
	if in == nil {
		return &core.Problem{Reason: core.RefusalTargetUnknown, Message: "the cluster has no such instance"}
	}
	r, no := d.cannotLead(in)
	if no != nil {
		return no
	}
	if !streams(r, d.Status.Promotion.Instance) {
		return &core.Problem{Reason: core.RefusalTargetNotReplicating, Message: "it does not replicate from " +
			d.Status.Promotion.Instance + " with both threads running"}
	}
	if sick := d.sickness(in, r); sick != "" {
		return &core.Problem{Reason: core.RefusalTargetNotReplicating, Message: sick}
	}
	return nil
}

// cannotLead returns what an instance says, and why it cannot become primary, whomever it follows. The
// problem is nil when it can, and then it serves.
func (d *decision) cannotLead(in *core.Instance) (core.Report, *core.Problem) {
	r, ok := serving(in)
	switch {
	case !in.Report.Known():
		return r, &core.Problem{Reason: core.RefusalTargetNotReady, Message: "its manager does not answer"}
	case slices.Contains(d.Status.Diverged, in.Name):
		return r, &core.Problem{Reason: core.RefusalTargetDiverged,
			Message: "it has transactions that the primary lacks"}
	case !ok:
		return r, &core.Problem{Reason: core.RefusalTargetNotReady,
			Message: fmt.Sprintf("its mysqld does not serve the cluster's data (%s)", r.State)}
	case in.IsStopping() || d.IsEnding(in.Name):
		return r, &core.Problem{Reason: core.RefusalTargetNotReady, Message: "it is being stopped"}
	case d.IsFenced(in.Name):
		return r, &core.Problem{Reason: core.RefusalTargetNotReady,
			Message: draft.FencedText(d.Cluster.Name, in.Name)}
	case draft.LosesVolume(in):
		return r, &core.Problem{Reason: core.RefusalTargetNotReady, Message: draft.VolumeGoes}
	case !r.IsEligible():
		return r, &core.Problem{Reason: core.RefusalTargetNotReplicating, Message: whyUnfit(r)}
	case r.IsFull():
		return r, &core.Problem{Reason: core.RefusalTargetFull, Message: core.TargetFullText}
	case d.mayLack(r):
		text := "it " + draft.MayLackText + "; it can become primary when it holds what " +
			d.Status.Promotion.Instance +
			" had"
		return r, &core.Problem{Reason: core.RefusalTargetNotReady, Message: text}
	}
	return r, nil
}

// switchOver goes on with a switchover, from whichever step it stands at.
func (d *decision) switchOver() {
	op := d.Status.Operation
	d.keepDeadline(op)
	switch op.Step {
	case core.StepCatchUp:
		d.catchUp(op)
	case core.StepDemote:
		d.demoteAndGrant(op)
	default:
		d.awaitTarget(op)
	}
}

// catchUp lets the target come close while the old primary still takes writes.
func (d *decision) catchUp(op *core.Operation) {
	no := d.refusesTarget(op.To)
	switch {
	case d.diagnosis.name.IsFailing():
		d.Status.Operation = nil
		d.failOver()
	case d.diagnosis.name == core.PrimaryLostTransactions:
		d.giveUp(core.RefusalLostTransactions, "the primary has lost transactions: "+d.diagnosis.says)
	case no != nil:
		d.giveUp(no.Reason, no.Message)
	case d.Status.TargetPrimary != op.To:
		d.giveUp(core.ReasonRequested, "status.targetPrimary was changed to "+d.Status.TargetPrimary)
	case d.WhyCalledOff(op) != "":
		d.callOff(op)
	case d.lateness(op) != "":
		d.giveUp(core.RefusalDeadline, op.To+" did not catch up within spec.maxSwitchoverDelay")
	case d.IsRouteBusy(op):
		d.AwaitRoute(op)
	case d.gatherAckers(op):
	case d.letCatchUp(op):
		op.Step, op.PausedAt = core.StepDemote, d.Now
		d.keepDeadline(op)
		d.demoteAndGrant(op)
	}
}

// gatherAckers waits for those who are to acknowledge the target's commits, and reports whether
// it does: the primary's Pod goes away, and of those who stay beside the target too few have
// received so much that they could acknowledge soon, but they are on their way. A replica that
// was away and has much to receive is Ready, and lets nothing be committed until it has it.
func (d *decision) gatherAckers(op *core.Operation) bool {
	from := d.Instance(op.From)
	pod, known := from.Pod.Get()
	source, answers := serving(from)
	if !known || !pod.Terminating || !answers {
		return false
	}
	patience := min(ackersPatience, pod.Grace/2)
	if !op.Deadline.IsZero() {
		patience = min(patience, op.Deadline.Sub(op.StartedAt)/2)
	}
	until := op.StartedAt.Add(patience)
	if !d.Now.Before(until) || d.Now.Before(op.StartedAt) {
		return false
	}
	near, far := 0, []string{}
	otherMembers(d.Observation, op.From, func(in *core.Instance) {
		switch r, serves := serving(in); {
		case in.Name == op.To || !serves || !streams(r, op.From):
		case d.isAbreast(in, r.Server.Holds(), from, source):
			near++
		default:
			far = append(far, in.Name)
			d.Do(core.Refresh{Instance: in.Name})
		}
	})
	if need := d.promotionAcks(); near >= need || near+len(far) < need {
		return false
	}
	d.Do(core.Refresh{Instance: op.From})
	d.Doing(fmt.Sprintf("%s still takes writes until %s has received enough: commits on %s would wait for it",
		op.From, strings.Join(far, ", "), op.To))
	d.RecheckAt(d.Now.Add(draft.CatchUpPace))
	return true
}

// isAbreast reports whether, of what the source has executed, what an instance has lacks little, or
// nothing of what it was a moment ago. How much it seems to lack depends on which of the two was
// read first, and on a busy machine that alone may be more than little.
func (d *decision) isAbreast(in *core.Instance, has gtid.Set, source *core.Instance, now core.Report) bool {
	return now.Server.Executed.Subtract(has).Count() <= catchUpBacklog || d.hasReached(in, has, source, catchUpAge)
}

// hasReached reports whether what an instance has includes what the source had executed, no longer ago than
// age and surely before the instance was asked.
func (d *decision) hasReached(in *core.Instance, has gtid.Set, source *core.Instance, age time.Duration) bool {
	return d.hasAllOf(in, has, source, age, func(s *core.Server) gtid.Set { return s.Executed })
}

// hasAllOf is hasReached of what the source had, by what mysqld said.
func (d *decision) hasAllOf(in *core.Instance, has gtid.Set, source *core.Instance, age time.Duration,
	had func(*core.Server) gtid.Set) bool {
	for _, f := range append([]core.Fact[core.Report]{source.Report}, source.Earlier...) {
		r, known := f.Get()
		if known && r.Server != nil && in.Report.ReadAfter(f) && d.Now.Sub(f.NotBefore()) <= age &&
			has.Contains(had(r.Server)) {
			return true
		}
	}
	return false
}

// demoteAndGrant opens the read-only window and ends it with the target's promotion.
func (d *decision) demoteAndGrant(op *core.Operation) {
	next := d.nextEpoch()
	proof, ok := prove(d.Observation, next)
	r, answers := serving(d.holder())
	switch {
	case !ok && d.lateness(op) != "" && d.diagnosis.name == core.PrimaryHealthy:
		d.giveUp(core.RefusalDeadline, op.From+" was not made read-only in time: "+d.lateness(op))
		return
	case !ok && d.holder().Report.Known() && !d.diagnosis.name.IsFailing():
		d.askToDemote(next)
		return
	case !ok && d.canPromise() && d.Now.Before(d.asking(next).At.Add(promisePatience)):
		d.Plan.Carried.Asking = d.asking(next)
		d.RecheckAt(d.Plan.Carried.Asking.At.Add(promisePatience))
		d.askToDemote(next)
		return
	case !ok || !answers: // or it promises nothing: there are other proofs
		d.becomeFailover(op.To, d.diagnosis.says)
		return
	case !d.fresh(d.holder(), proof.since):
		// What was read before the promise held may lack the last commits.
		d.Doing("waiting for " + op.From + " to report its final position")
		return
	}
	e, no := d.takesOver(op, r)
	if no != "" {
		d.wayBack(op, proof, no)
		return
	}
	d.grant(e, proof, d.promotionAcks())
	d.Doing("promoting " + op.To)
}

// takesOver returns the target as the one that is promoted, or why it is not after all, now that the
// old primary's final position is known.
func (d *decision) takesOver(op *core.Operation, final core.Report) (e election, no string) {
	if late := d.lateness(op); late != "" {
		return e, late
	}
	in := d.Instance(op.To)
	if in == nil {
		return e, "the cluster has no such instance any more"
	}
	r, unfit := d.cannotLead(in)
	if unfit != nil {
		return e, unfit.Message
	}
	if more, _ := d.holdsMore(final); more != "" {
		return e, more + " holds transactions that " + op.From + " does not have"
	}
	if !final.Server.Executed.Contains(final.Server.Holds()) {
		return e, op.From + " has received transactions that it has not applied, and cannot send them to others"
	}
	return election{winner: op.To, podUID: r.PodUID, node: r.Node, holds: final.Server.Executed}, ""
}

// becomeFailover turns a switchover into a failover when the old primary went away in the middle,
// or the new one did not get there. Writes are stopped by then: nothing is waited for.
func (d *decision) becomeFailover(prefer, why string) {
	d.Status.Operation = nil
	d.beginFailover(why)
	d.Status.Operation.To, d.Status.Operation.Step = prefer, core.StepProve
	d.failOver()
}

// awaitTarget waits for the promoted instance, and goes back when that does not become
// writable in time. On the way back nobody is waited for better, so that time does not
// matter.
func (d *decision) awaitTarget(op *core.Operation) {
	name := d.diagnosis.name
	switch {
	case name.IsWell(), name == core.PrimaryFull:
		d.settle()
	case name == core.PrimaryLostTransactions:
		d.blockLost()
	case op.Step == core.StepPromote && name != core.PrimaryUnreachableButReplicasStream && d.turnBack(op):
	case name.IsFailing():
		if op.Step == core.StepPromote {
			d.NoteReturn(op.To, d.diagnosis.says)
		}
		d.becomeFailover(op.From, d.diagnosis.says)
	case name != core.PrimaryPromoting && d.Now.Before(d.pauseEnds(op)):
		d.Doing("waiting for " + d.Status.Promotion.Instance + " to become writable: " + d.promotionProgress())
	case name != core.PrimaryPromoting:
		d.Block(core.RefusalNoProof, d.noProof(false))
	default:
		d.Doing("waiting for " + d.Status.Promotion.Instance + " to become writable: " + d.promotionProgress())
	}
}

// wayBack makes the best of those that are left primary: the old one, unless it
// lacks something.
func (d *decision) wayBack(op *core.Operation, proof proven, why string) {
	e := d.ballot("", op.From).elect()
	if e.refusal != "" {
		d.Block(e.refusal, "switchover to "+op.To+" failed ("+why+"), and no other instance can take writes: "+e.why)
		return
	}
	d.Warn(core.RefusalDeadline, "switchover to "+op.To+" given up: "+why+"; "+e.winner+" is made writable instead")
	d.NoteReturn(op.To, why)
	d.grant(e, proof, d.promotionAcks())
	op.Step, op.Deadline = core.StepReturn, time.Time{}
	d.Doing("making " + e.winner + " writable again")
}

// giveUp ends a switchover that has not begun to hurt.
func (d *decision) giveUp(reason core.Reason, why string) {
	to := d.Status.Operation.To
	if text := "switchover to " + to + " given up: " + why; reason == core.RefusalDeadline {
		d.GiveUpLate(to, text)
	} else {
		d.Warn(reason, text)
	}
	d.Status.Operation = nil
	if reason != core.ReasonRequested {
		d.setTarget(d.Status.Promotion.Instance)
	}
	d.Again = true
}

// callOff ends a switchover that nobody wants any more, and that has not begun to hurt.
func (d *decision) callOff(op *core.Operation) {
	d.Tell(op.Reason, fmt.Sprintf("switchover to %s called off: %s", op.To, d.WhyCalledOff(op)))
	d.Status.Operation = nil
	d.setTarget(d.Status.Promotion.Instance)
	d.Again = true
}
