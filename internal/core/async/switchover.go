package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// catchUpBacklog is how many transactions the target may lack when the
	// old primary is made read-only.
	catchUpBacklog = 200
	// catchUpFresh is how old the two positions may be that are held against
	// each other for that.
	catchUpFresh = 200 * time.Millisecond
)

func (d *decision) inSwitchover() bool {
	return d.s.Operation != nil && d.s.Operation.Kind == core.OperationSwitchover
}

// switchoverWished: somebody wants another primary than the present one.
func (d *decision) switchoverWished() bool {
	return d.s.TargetPrimary != "" && d.s.TargetPrimary != d.s.Promotion.Instance
}

// beginSwitchover starts one if it was asked for, or if the primary has to go.
func (d *decision) beginSwitchover() {
	if d.s.Operation != nil {
		return
	}
	pod, _ := d.holder().Pod.Get()
	switch {
	case d.switchoverWished():
		d.start(core.ReasonRequested)
	case d.diagnosis.name == core.PrimaryTerminating && len(d.o.Instances) > 1:
		d.handOver(core.ReasonPodTerminating)
	case pod.DemoteRequested && len(d.o.Instances) > 1:
		d.handOver(core.ReasonDemoteRequested)
	}
}

// handOver chooses a target because the primary has to go.
func (d *decision) handOver(why core.Reason) {
	best := ""
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if in.Name != d.s.Promotion.Instance && d.refusesTarget(in.Name) == nil {
			best = in.Name
			break
		}
	}
	if best == "" {
		d.say(fmt.Sprintf("the primary %s has to go (%s), but no replica can take over yet", d.s.Promotion.Instance, why))
		return
	}
	d.setTarget(best)
	d.begin(why)
}

func (d *decision) start(why core.Reason) {
	if no := d.refusesTarget(d.s.TargetPrimary); no != nil {
		d.warn(core.Reason(no.Reason), "switchover to "+d.s.TargetPrimary+" refused: "+no.Message)
		d.setTarget(d.s.Promotion.Instance)
		return
	}
	d.begin(why)
}

func (d *decision) begin(why core.Reason) {
	d.s.Operation = &core.Operation{Kind: core.OperationSwitchover, Step: core.StepCatchUp, From: d.s.Promotion.Instance,
		To: d.s.TargetPrimary, Reason: why, StartedAt: d.now(), Deadline: d.now().Add(d.o.Cluster.SwitchoverLimit)}
	d.tell(why, fmt.Sprintf("switchover from %s to %s begins", d.s.Promotion.Instance, d.s.TargetPrimary))
	d.say("switching over from " + d.s.Promotion.Instance + " to " + d.s.TargetPrimary)
	d.plan.Again = true
}

// refusesTarget tells why an instance cannot be switched to; nil when it can.
func (d *decision) refusesTarget(name string) *core.Problem {
	in := d.o.Instance(name)
	if in == nil {
		return &core.Problem{Reason: string(core.RefusalTargetUnknown), Message: "the cluster has no such instance"}
	}
	r, ok := serving(in)
	if !ok {
		return &core.Problem{Reason: string(core.RefusalTargetNotReady), Message: "its mysqld does not answer, or holds no data"}
	}
	pod, _ := in.Pod.Get()
	switch {
	case slices.Contains(d.s.Diverged, name):
		return &core.Problem{Reason: string(core.RefusalTargetDiverged), Message: "it has transactions that the primary lacks"}
	case r.Terminating || pod.Terminating:
		return &core.Problem{Reason: string(core.RefusalTargetNotReady), Message: "it is being stopped"}
	case !streams(r, d.s.Promotion.Instance):
		return &core.Problem{Reason: string(core.RefusalTargetNotReplicating), Message: "it does not replicate from " + d.s.Promotion.Instance + " with both threads running"}
	}
	return nil
}

// switchOver goes on with a switchover, from whichever step it stands at.
func (d *decision) switchOver() {
	op := d.s.Operation
	if op.Step == core.StepPromote && (d.diagnosis.name == core.PrimaryHealthy || d.diagnosis.name == core.PrimaryTerminating) {
		d.settle()
		return
	}
	if !op.Deadline.IsZero() {
		d.recheckAt(op.Deadline)
	}
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
	if isFailing(d.diagnosis.name) {
		d.s.Operation = nil
		d.failOver()
		return
	}
	if no := d.refusesTarget(op.To); no != nil {
		d.giveUp(core.Reason(no.Reason), no.Message)
		return
	}
	if d.s.TargetPrimary != op.To {
		d.giveUp(core.ReasonRequested, "targetPrimary was changed")
		return
	}
	if !d.now().Before(op.Deadline) {
		d.giveUp(core.RefusalDeadline, op.To+" did not catch up within spec.maxSwitchoverDelay")
		return
	}
	from, to := d.o.Instance(op.From), d.o.Instance(op.To)
	since := d.now().Add(-catchUpFresh)
	if freshFrom, freshTo := d.fresh(from, since), d.fresh(to, since); !freshFrom || !freshTo {
		return
	}
	source, _ := from.Report.Get()
	target, _ := to.Report.Get()
	if source.Server == nil {
		return
	}
	if backlog := source.Server.Executed.Subtract(target.Server.Executed).Count(); backlog > catchUpBacklog {
		d.say(fmt.Sprintf("waiting for %s to catch up before %s is made read-only: %d transactions behind", op.To, op.From, backlog))
		d.recheckAt(d.now().Add(catchUpFresh))
		return
	}
	op.Step = core.StepDemote
	d.demoteAndGrant(op)
}

// demoteAndGrant opens the read-only window and ends it with the target's promotion.
func (d *decision) demoteAndGrant(op *core.Operation) {
	next := d.nextEpoch()
	proof, ok := prove(d.o, next)
	if !ok {
		d.holderLostOrDemote(op, next)
		return
	}
	from := d.holder()
	r, _ := from.Report.Get()
	executed, answers := executedOf(r)
	if !answers {
		d.becomeFailover(op)
		return
	}
	target := d.o.Instance(op.To)
	tr, serves := serving(target)
	if !serves || !d.now().Before(op.Deadline) {
		d.wayBack(op, proof, "the target "+op.To+" cannot take over")
		return
	}
	d.grant(election{winner: op.To, podUID: tr.PodUID, node: tr.Node, holds: executed}, proof, d.promotionAcks())
	d.say("promoting " + op.To)
}

func (d *decision) holderLostOrDemote(op *core.Operation, next int64) {
	if d.holder().Report.Known() {
		d.again(core.Demote{Instance: op.From, Epoch: next})
		d.say("making " + op.From + " read-only")
		return
	}
	d.becomeFailover(op)
}

// becomeFailover: the old primary went away in the middle.
func (d *decision) becomeFailover(op *core.Operation) {
	to := op.To
	d.s.Operation = nil
	d.failOver()
	if d.s.Operation != nil && d.s.Operation.To == "" {
		d.s.Operation.To = to
	}
}

// awaitTarget waits for the promoted target, and takes the way back when it
// fails or when time is up.
func (d *decision) awaitTarget(op *core.Operation) {
	late := !d.now().Before(op.Deadline)
	failed := isFailing(d.diagnosis.name)
	if !late && !failed {
		d.say("waiting for " + op.To + " to become writable: " + d.promotionProgress())
		return
	}
	next := d.nextEpoch()
	proof, ok := prove(d.o, next)
	if !ok {
		d.holderLostOrDemote(&core.Operation{From: d.s.Promotion.Instance, To: op.From}, next)
		return
	}
	d.wayBack(op, proof, fmt.Sprintf("%s did not become writable (%s)", op.To, d.diagnosis.says))
}

// wayBack makes the best of those that are left primary: the old one, unless it
// lacks something.
func (d *decision) wayBack(op *core.Operation, proof proven, why string) {
	e := ballot{o: d.o, prefer: op.From, diverged: d.s.Diverged}.elect()
	if e.refusal != "" {
		d.block(e.refusal, why+", and nobody else can: "+e.why)
		return
	}
	d.warn(core.RefusalDeadline, "switchover to "+op.To+" given up: "+why+"; "+e.winner+" is made writable again")
	op.From = d.s.Promotion.Instance
	d.grant(e, proof, d.promotionAcks())
}

// giveUp ends a switchover that has not begun to hurt.
func (d *decision) giveUp(reason core.Reason, why string) {
	d.warn(reason, "switchover to "+d.s.Operation.To+" given up: "+why)
	d.s.Operation = nil
	if reason != core.ReasonRequested {
		d.setTarget(d.s.Promotion.Instance)
	}
}
