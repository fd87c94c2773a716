package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// recoverOutage reboots the group without a human's word, where the user wishes it, on
// the proof that a human's word is answered with, and on more: whatever a human should
// look at is left to one. It is tried once in an outage.
func (d *decision) recoverOutage(*recovery) {
	lead, _ := d.recoverySource()
	d.g.OutageTried = lead.Name
	d.rebootFrom(lead, core.ReasonTotalOutage, afterOutage+", "+holdsAll(lead))
}

// afterOutage and asAsked tell on whose word somebody goes on.
const (
	afterOutage = "after an outage of all members"
	asAsked     = "as a human requested"
)

// onWord tells on whose word the recovery is that is under way.
func onWord(op *core.Operation) string {
	if op.Reason == core.ReasonTotalOutage {
		return afterOutage
	}
	return asAsked
}

// nextTime returns what a human can do next. What the operator has tried by itself,
// it does not try again.
func nextTime(op *core.Operation) string {
	if op.Reason == core.ReasonTotalOutage {
		return "request the recovery yourself, because the operator does not try it a second time"
	}
	return "request the recovery again"
}

// isAnybodyIn reports whether an instance says that it is in a group, whatever became of that.
func (d *decision) isAnybodyIn() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		v, known := viewOf(&in)
		return known && v.State != core.MemberOffline
	})
}

// back are those whose mysqld runs again, and is in no group.
func (d *decision) back() []string {
	return d.named(func(in *core.Instance) bool {
		v, known := viewOf(in)
		return known && v.State == core.MemberOffline &&
			in.Report.Is(func(r core.Report) bool { return r.Server != nil })
	})
}

// named are the instances of which something is true.
func (d *decision) named(is func(*core.Instance) bool) []string {
	var out []string
	for i := range d.Instances {
		if is(&d.Instances[i]) {
			out = append(out, d.Instances[i].Name)
		}
	}
	return out
}

// everyone are the names of all instances.
func (d *decision) everyone() []string { return d.named(func(*core.Instance) bool { return true }) }

// awaited are those who have to be heard before it is known who holds all, each with why
// it is not.
func (d *decision) awaited() []string {
	var out []string
	for i := range d.Instances {
		if in := &d.Instances[i]; d.awaits(in) != "" {
			out = append(out, in.Name+" ("+d.awaits(in)+")")
		}
	}
	return out
}

func (d *decision) awaits(in *core.Instance) string {
	r, known := in.Report.Get()
	_, heard := viewOf(in)
	switch {
	case d.isNew(in): // whatever becomes of it: it holds nothing
		return ""
	case !known:
		return in.NoAnswer()
	case in.IsStopping():
		return "it is being stopped"
	case r.Server == nil:
		return "its mysqld does not answer"
	case !heard, !d.isFresh(in), !in.Pod.Known(), !in.Volume.Known():
		return nothingNew
	case isJoining(r):
		return "it looks for a group"
	}
	return ""
}

const nothingNew = "nothing new is known of it"

// lookAgain comes back in a moment where something new may be known of an instance then.
func (d *decision) lookAgain(*recovery) {
	if slices.ContainsFunc(d.Instances, func(in core.Instance) bool { return d.awaits(&in) == nothingNew }) {
		d.RecheckAt(d.Now.Add(time.Second))
	}
}

// handedOver tells why a human has to reboot the group although the operator may;
// "" when none has to, as far as it is known.
func (d *decision) handedOver() string {
	for _, rule := range []func() string{d.wasTried, d.isOfThePast, d.isUnsettled, d.hasFenced, d.lacksData,
		d.hasDiverged, d.hasNoLead, d.lacksSeen} {
		if why := rule(); why != "" {
			return why
		}
	}
	return ""
}

func (d *decision) wasTried() string {
	if d.g.OutageTried == "" {
		return ""
	}
	return d.g.OutageTried +
		" was told to reboot the group, without effect: the operator does not try it a second time"
}

// isOfThePast tells that the status was set back; "" when it was not. Whom the group went on without
// since is not in it.
func (d *decision) isOfThePast() string {
	if last := d.LastEpoch(); last > d.Status.Epoch {
		return fmt.Sprintf("the Cluster's status was set back to epoch %d, and instances have seen epoch %d",
			d.Status.Epoch, last)
	}
	return ""
}

// isUnsettled returns why the last recovery is not over; "" when nothing tells that. A recovery was
// begun, and the group was not seen since, or has not taken back whom it went on without. Who is
// right is no question of positions alone.
func (d *decision) isUnsettled() string {
	switch {
	case len(d.g.LeftOut) > 0:
		return "the last recovery is not complete (" + d.without() + ")"
	case d.g.ViewID == "":
		return "the last recovery is not complete (no member was seen to continue)"
	}
	return ""
}

// hasFenced returns whom a human has taken out of service, or wants to, or whose data a human wants
// recreated; "" when there is none. The human may have a reason not to see that data go on.
func (d *decision) hasFenced() string {
	fenced := d.named(func(in *core.Instance) bool {
		return d.IsFenced(in.Name) || in.Pod.Is(func(pod core.Pod) bool { return pod.FencingRequested })
	})
	switch {
	case len(fenced) > 0:
		return agree(fenced, "is fenced", "are fenced")
	case len(d.Cluster.Reinit) > 0:
		return "the data of " + strings.Join(core.ReinitNames(d.Cluster.Reinit), ", ") + " is to be recreated"
	}
	return ""
}

// lacksData returns who has no data, or that there are fewer instances than the group had
// members; "" when neither is so. Who has lost its volume may have been one of the majority that
// made a write acknowledged. Whether it ever had data cannot be told, but where it is known to be new,
// or the group never had more than one member.
func (d *decision) lacksData() string {
	empty := d.named(func(in *core.Instance) bool {
		return !d.neverJoined(in) && !d.g.IsNew(in.Name) && (in.SaysEmpty() ||
			in.Report.Is(func(r core.Report) bool { return r.Server != nil && r.Data != core.DataPopulated }) ||
			in.Volume.Is(func(vol core.Volume) bool { return !vol.Exists || vol.Deleting }))
	})
	switch {
	case len(empty) > 0:
		return agree(empty, "has no data, and may have lost it", "have no data, and may have lost it")
	case d.everMembers() < d.g.ViewMax:
		return fmt.Sprintf("there are %d instances, and the group had %d members", d.everMembers(),
			d.g.ViewMax)
	}
	return ""
}

func (d *decision) hasDiverged() string {
	diverged := d.named(func(in *core.Instance) bool {
		return slices.Contains(d.Status.Diverged, in.Name) ||
			in.Report.Is(func(r core.Report) bool { return !r.Errant.IsEmpty() })
	})
	if len(diverged) == 0 {
		return ""
	}
	return agree(diverged, "has diverged", "have diverged")
}

// hasNoLead returns why nobody can reboot the group; "" when somebody can, or while somebody is not
// heard yet, who may be the one.
func (d *decision) hasNoLead() string {
	if len(d.awaited()) > 0 {
		return ""
	}
	_, why := d.recoverySource()
	return why
}

// recoverySource is who would reboot the group on a human's word, or why nobody does.
func (d *decision) recoverySource() (lead *core.Instance, why string) {
	if why := d.unproven(); why != "" {
		return nil, why
	}
	lead, _, why = d.rebootLead()
	return lead, why
}

// lacksSeen returns what was seen in the group, or after its end, that nobody holds any more; ""
// when nothing is missing, or while who goes on is not known.
func (d *decision) lacksSeen() string {
	lead, _ := d.recoverySource()
	if lead == nil || len(d.awaited()) > 0 {
		return ""
	}
	if gap := d.Plan.Carried.Held.Subtract(draft.Held([]*core.Instance{lead})); !gap.IsEmpty() {
		return "no instance still holds what was seen before (" + gap.Abbreviate(4) + ")"
	}
	return ""
}

// remember keeps what the group surely had: its primary's transactions while there is one,
// and all that anybody was seen to have executed since. An operator that was lost with the
// nodes goes by what was written into the status. What one holds that the group went on without
// may have the numbers of other transactions.
func (d *decision) remember() {
	if !d.g.Bootstrapped {
		return
	}
	if in := d.Instance(d.seen.primary); d.seen.agreed && in != nil {
		if r, known := in.Report.Get(); known && r.Server != nil {
			d.Plan.Carried.Held = r.Server.Executed
			return
		}
	}
	d.Plan.Carried.Held = d.Observation.Carried.Held.Union(d.g.Recorded)
	for i := range d.Instances {
		in := &d.Instances[i]
		if executed, known := in.LastExecuted.Get(); known && !d.outOfHistory(in) && !d.g.WentOnWithout(in.Name) {
			d.Plan.Carried.Held = d.Plan.Carried.Held.Union(executed)
		}
	}
}

// wayOut tells what to do about a group whose quorum is lost, or why what is done about it fails.
func (d *decision) wayOut() string {
	fails := d.rebootFails()
	switch {
	case fails == "":
		return d.wayBack()
	case d.onlyMember() != "":
		return fails
	}
	return fails + ". " + d.wayBack()
}

func (d *decision) wayBack() string {
	back, awaited, ask := d.back(), d.awaited(), d.askForIt()
	switch {
	case d.onlyMember() != "", len(back) == 0 && (d.isAnybodyIn() || !d.Cluster.Group.RecoverOutage):
		return "Bring the members back; if they are gone for good, see " + ask
	case !d.isAnybodyIn():
		return d.outageAdvice(awaited)
	case len(awaited) > 0:
		return strings.Join(back, ", ") + " cannot join a group without a quorum. Bring back " + strings.Join(awaited,
			", ") + "; if that does not help, see " + ask
	}
	return strings.Join(back, ", ") + " cannot join a group without a quorum. To have the group go on: " + ask
}

func (d *decision) askForIt() string { return "kubectl cnmsql group recover " + d.Cluster.Name }

// unknownAdvice is what to do when those who are back are in no group, and nobody knows of
// the others; "" while nobody is back.
func (d *decision) unknownAdvice() string {
	back, awaited := d.back(), d.awaited()
	if len(back) == 0 || len(awaited) == 0 || d.recoveryState() != groupOutage {
		return ""
	}
	return ". " + agree(back, "is", "are") + " back, and in no group. " + d.outageAdvice(awaited)
}

// outageAdvice is for a group in which nobody is known to be any more.
func (d *decision) outageAdvice(awaited []string) string {
	first, gone := "", "if it is gone for good: "
	if len(awaited) > 1 {
		gone = "if they are gone for good: "
	}
	if len(awaited) > 0 {
		first = "Bring back " + strings.Join(awaited, ", ") + " first, to see what is held there; then, or " + gone
	}
	why := d.handedOver()
	switch {
	case !d.Cluster.Group.RecoverOutage:
		return d.wordAdvice(first)
	case why == "" && first != "":
		return "The operator waits for " + strings.Join(awaited, ", ") + ": it reboots the group when all instances " +
			"answer, and one holds all that the others hold. Or, " + gone + d.askForIt()
	case first == "":
		first = "Check that; then: "
	}
	return "The operator does not reboot the group by itself: " + why + ". " + first + d.askForIt()
}

// wordAdvice is what a human's word would do.
func (d *decision) wordAdvice(first string) string {
	lead, why := d.recoverySource()
	switch {
	case first != "":
		return first + d.askForIt()
	case lead == nil:
		return "All instances are back, and none is in a group; " + why + ": " + d.askForIt()
	}
	holds, and := "holds all that any of them holds", "; to have it reboot the group: "
	if excess := d.heldByExcluded(lead); excess != "" {
		holds = "holds all that the instances hold that are not excluded, and " + excess
	}
	if d.IsFenced(lead.Name) {
		and = ", and is fenced; take the fence off, and have it reboot the group: "
	}
	return "All instances are back, and none is in a group. " + lead.Name + " " + holds + and + d.askForIt()
}

// agree has a verb agree with who does it.
func agree(names []string, one, many string) string {
	if len(names) == 1 {
		return names[0] + " " + one
	}
	return strings.Join(names, ", ") + " " + many
}
