package group

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// switchOver waits until the target is close to the primary, asks the group to make it
// primary, when somebody wishes that, and gives up at the deadline. There is no way back to
// go: the group is consistent at any time. Nor can the group be told to stop once it elects.
func (d *decision) switchOver() {
	if !d.seen.agreed || d.seen.primary == "" || d.isPast() ||
		d.Status.Operation != nil && d.Status.Operation.Kind != core.OperationSwitchover {
		return
	}
	if d.Status.Operation == nil {
		d.beginSwitchover()
	}
	op := d.Status.Operation
	if op == nil {
		return
	}
	if why := d.WhyCalledOff(op); why != "" && op.Step == core.StepCatchUp {
		d.endSwitchover()
		d.Tell(op.Reason, fmt.Sprintf("switchover to %s called off: %s", op.To, why))
		d.Again = true
		return
	}
	d.keepDeadline(op)
	if limit := d.lateness(op); limit != "" {
		d.giveUpLate(op, limit)
		return
	}
	if no := d.cannotBePrimary(op.To); no != nil {
		d.giveUp(op, no.Reason, fmt.Sprintf("%s cannot become primary: %s; %s stays primary", op.To,
			no.Message, op.From))
		return
	}
	if d.IsRouteBusy(op) {
		d.AwaitRoute(op)
		return
	}
	if op.Step == core.StepCatchUp {
		if !d.letCatchUp(op) {
			return
		}
		op.Step, op.PausedAt = core.StepSetPrimary, d.Now
		d.keepDeadline(op)
	}
	d.Do(core.SetGroupPrimary{Instance: d.seen.primary, Primary: op.To, UUID: d.seen.members[op.To].UUID,
		Within: d.transactionsTake(), Epoch: d.Status.Epoch})
	d.Doing(fmt.Sprintf("handing over from %s to %s (%s)", op.From, op.To, op.Reason))
}

// giveUpLate ends a switchover whose time is up. Where the group was asked already, nobody
// asks it by itself for a while, for this member or another: each time may stop writes.
func (d *decision) giveUpLate(op *core.Operation, limit string) {
	if op.Step == core.StepCatchUp {
		d.endSwitchover()
		d.GiveUpLate(op.To, fmt.Sprintf("%s did not catch up with %s within %s; writes were not stopped; %s stays "+
			"primary", op.To, op.From, limit, op.From))
		return
	}
	why := fmt.Sprintf("the group did not make %s primary within %s", op.To, limit)
	d.NoteReturn(op.To, why)
	d.giveUp(op, core.RefusalDeadline, fmt.Sprintf("%s; %s stays primary", why, op.From))
}

func (d *decision) giveUp(op *core.Operation, reason core.Reason, message string) {
	d.endSwitchover()
	d.Announce(true, reason, op.To, message)
}

// endSwitchover ends a switchover, and the wish with it.
func (d *decision) endSwitchover() {
	d.Status.Operation = nil
	d.Status.TargetPrimary, d.Status.TargetPrimaryAt = d.Status.CurrentPrimary, d.Now
}

// beginSwitchover looks for somebody who wishes another primary.
func (d *decision) beginSwitchover() {
	primary := d.Instance(d.seen.primary)
	if primary == nil {
		return
	}
	pod, podKnown := primary.Pod.Get()
	switch {
	case d.Status.TargetPrimary != d.Status.CurrentPrimary && d.Status.TargetPrimary != "":
		if no := d.cannotBePrimary(d.Status.TargetPrimary); no != nil {
			d.Warn(no.Reason, fmt.Sprintf("%s cannot become primary: %s", d.Status.TargetPrimary, no.Message))
			d.Status.TargetPrimary, d.Status.TargetPrimaryAt = d.Status.CurrentPrimary, d.Now
			return
		}
		d.begin(core.ReasonRequested)
	case primary.IsStopping():
		d.chooseSuccessor(core.ReasonPodTerminating)
	case podKnown && pod.DemoteRequested:
		d.chooseSuccessor(core.ReasonDemoteRequested)
	case draft.LosesVolume(primary):
		d.chooseSuccessor(core.ReasonVolumeDeleting)
	}
}

// chooseSuccessor has the group make the fittest of the others primary who can be, and of those who are as
// fit the one that lacks least.
func (d *decision) chooseSuccessor(reason core.Reason) {
	if d.Status.Operation != nil {
		return
	}
	able, tired, rested := d.candidates()
	if len(able) == 0 && len(tired) > 0 {
		d.RecheckAt(rested)
		d.Doing(fmt.Sprintf("%s should hand over (%s); the group did not make %s primary in time, "+
			"and is asked again at %s", d.seen.primary, reason, strings.Join(tired, ", "),
			rested.UTC().Format("15:04:05 MST")))
		return
	}
	if len(able) == 0 {
		d.Doing(fmt.Sprintf("%s should hand over (%s), but no other member can become primary", d.seen.primary, reason))
		return
	}
	best := slices.MinFunc(able, func(a, b draft.Candidate) int {
		return cmp.Or(d.ByFitness(a, b), cmp.Compare(d.lacks(a.Report), d.lacks(b.Report)))
	})
	d.Status.TargetPrimary, d.Status.TargetPrimaryAt = best.In.Name, d.Now
	d.begin(reason)
}

// candidates are the other members that stay and can become primary, in their order; tired are those of
// them that did not take over lately, and rest until then.
func (d *decision) candidates() (able []draft.Candidate, tired []string, rested time.Time) {
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Name == d.seen.primary || d.IsSurplus(in) || d.cannotBePrimary(in.Name) != nil {
			continue
		}
		r, known := in.Report.Get()
		switch until := d.RestsUntil(d.seen.primary, in.Name); {
		case !known || r.Server == nil:
		case !until.IsZero():
			tired, rested = append(tired, in.Name), until
		default:
			able = append(able, draft.Candidate{In: in, Report: r})
		}
	}
	return able, tired, rested
}

// lacks counts what the primary has executed and this member, by its report, has not.
func (d *decision) lacks(r core.Report) uint64 {
	source, _ := d.position(d.seen.primary)
	return source.Subtract(r.Server.Executed).Count()
}

func (d *decision) begin(reason core.Reason) {
	d.Status.Operation = &core.Operation{Kind: core.OperationSwitchover, Step: core.StepCatchUp,
		From: d.Status.CurrentPrimary, To: d.Status.TargetPrimary,
		Reason: reason, StartedAt: d.Now}
	d.Tell(reason, fmt.Sprintf("the group is to make %s primary instead of %s", d.Status.TargetPrimary,
		d.Status.CurrentPrimary))
	d.Again = true
}

// cannotBePrimary says why the group should not be asked for it, nil when it may.
func (d *decision) cannotBePrimary(name string) *core.Problem {
	in := d.Instance(name)
	no := func(reason core.Reason, why string) *core.Problem {
		return &core.Problem{Reason: reason, Message: why}
	}
	switch {
	case in == nil:
		return no(core.RefusalTargetUnknown, "the cluster has no such instance")
	case d.IsFenced(name):
		return no(core.RefusalTargetNotOnline, draft.FencedText(d.Cluster.Name, name))
	case !d.seen.isOnline(name):
		return no(core.RefusalTargetNotOnline, "it is not online in the group")
	}
	if in.IsStopping() || d.IsEnding(name) {
		return no(core.RefusalTargetNotOnline, "it is being stopped")
	}
	if draft.LosesVolume(in) && !d.IsStopping(d.seen.primary) { // else the group makes it primary all the same
		return no(core.RefusalTargetNotReady, draft.VolumeGoes)
	}
	if in.Report.Is(func(r core.Report) bool { return r.IsFull() }) {
		return no(core.RefusalTargetFull, core.TargetFullText)
	}
	if older := d.seen.older(name); older != "" {
		return no(core.RefusalTargetNewer, fmt.Sprintf("it runs MySQL %s and %s runs %s: a group makes nobody "+
			"primary who is newer than another member",
			d.seen.members[name].Version, older, d.seen.members[older].Version))
	}
	return nil
}
