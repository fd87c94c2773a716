package group

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// provision makes what is missing, replaces what has ended, and takes away what is too
// much or out of date. While something outside the cluster hinders it, it only gives
// instances back what they have lost.
func (d *decision) provision() {
	if d.besideKept {
		return
	}
	if d.Cluster.Problem == nil {
		d.grow()
	}
	for i := range d.Instances {
		if in := &d.Instances[i]; d.MayGiveBack(in) {
			d.keep(in)
		}
	}
	if d.Cluster.Problem != nil {
		return
	}
	if d.Status.Operation == nil && !d.shrink() {
		d.rollOut()
	}
}

// grow makes instances up to the wished number, but not while nobody can give them
// data.
func (d *decision) grow() {
	if (d.g.Bootstrapped || d.Status.AdoptedFrom != "") && !d.seen.agreed {
		return
	}
	before := slices.Clone(d.Status.InstanceNames)
	d.MakeInstances()
	if len(d.Status.InstanceNames) > len(before) {
		d.tellEvenSize()
		d.noteNew(before)
	}
}

// tellEvenSize warns of an even number of members when the group has just come to the wished size.
func (d *decision) tellEvenSize() {
	if n := len(d.Status.InstanceNames); n%2 == 0 && n == d.Cluster.Wanted {
		d.Warn(core.ReasonEvenSize, fmt.Sprintf("a group of %d survives no more failures than one of %d: choose an "+
			"odd number of instances", n, n-1))
	}
}

// keep gives an instance its volume and Pod back when they are known to be gone, and
// clears a Pod out of the way that will not run again.
func (d *decision) keep(in *core.Instance) {
	vol, volKnown := in.Volume.Get()
	pod, podKnown := in.Pod.Get()
	switch {
	case !volKnown || !podKnown || pod.Terminating:
	case !pod.Exists && (vol.Deleting || in.IsGone() && d.IsSurplus(in)):
	case !pod.Exists && !vol.Exists:
		d.Do(core.CreateVolume{Instance: in.Name, Ordinal: in.Ordinal}, core.CreatePod{Instance: in.Name,
			Ordinal: in.Ordinal, Image: d.ImageFor(in, d.givers())})
	case !pod.Exists:
		d.Do(core.CreatePod{Instance: in.Name, Ordinal: in.Ordinal, Image: d.ImageFor(in, d.givers())})
	case !vol.Exists && pod.NeverStarted && !pod.Terminated && !pod.Rejected:
		d.Do(core.CreateVolume{Instance: in.Name, Ordinal: in.Ordinal})
	case !d.g.IsNew(in.Name) && d.KeepData(in, d.seen.primary, d.cannotLose):
	case pod.Terminated, pod.Rejected, d.LosesItsPod(in), d.IsCorrected(in, pod, d.givers()):
		d.Do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonInstanceRestarted})
	}
}

// shrink removes the instance with the highest ordinal when there are more than
// wished; true while it has something to do. The member leaves the group first, so
// that no ghost of it stays in the view.
func (d *decision) shrink() bool {
	victim := d.victim()
	if victim == nil {
		return false
	}
	what := "removing " + victim.Name
	r, known := victim.Report.Get()
	switch {
	case !d.seen.agreed:
		d.Block(core.RefusalScaleQuorum, victim.Name+" is not removed: it is not known whether the group has a "+
			"majority; bring its members back, or raise spec.instances again")
	case victim.Name == d.seen.primary:
		d.chooseSuccessor(core.ReasonScaleDown)
	case victim.IsLeaving():
		d.Doing(what)
	case slices.Contains(d.Status.Diverged, victim.Name):
		d.Block(core.ReasonDiverged, victim.Name+" is to be removed, but holds transactions that no other instance "+
			"has; if they do not matter: kubectl cnmsql reinit "+d.Cluster.Name+" "+victim.Name)
	case !known && !d.holdsNothing(victim):
		d.Doing("waiting for " + victim.Name + " to report what it holds before it is removed; if its data " +
			"does not matter, delete its PersistentVolumeClaim, then its Pod")
	case known && !d.holdsNothing(victim) && r.Server == nil:
		d.Doing("waiting for mysqld of " + victim.Name + ", which is to be removed")
	case d.haveLeave(victim, what, core.RefusalScaleQuorum) && d.compareHeld(victim, what):
		d.remove(victim)
	}
	return true
}

// compareHeld compares the victim, which is out of the group, with the primary, and reports
// whether that holds all that the victim holds. It was asked after the victim.
func (d *decision) compareHeld(victim *core.Instance, what string) bool {
	r, known := victim.Report.Get()
	if victim.SaysEmpty() || !known {
		return true
	}
	primary, p, answers := d.Instance(d.seen.primary), core.Report{}, false
	if primary != nil {
		p, answers = primary.Report.Get()
	}
	switch {
	case !answers:
		d.Doing(what + ": waiting for a primary that can be asked whether it holds all that " + victim.Name + " holds")
	case p.Server == nil:
		d.Doing(what + ": waiting for mysqld of " + primary.Name + ", to ask whether it holds all that " +
			victim.Name + " holds")
	case !primary.Report.ReadAfter(victim.Report):
		d.Doing(what + ": comparing what it holds with what " + primary.Name + " holds")
		d.Do(core.Refresh{Instance: primary.Name})
		d.Again = true
	case p.Server.Holds().Contains(r.Server.Holds()):
		return true
	default: // if it is for good, the victim will say that it has diverged
		d.Doing(fmt.Sprintf("%s waits: %s lacks transactions that it holds (%s)", what, primary.Name,
			r.Server.Holds().Subtract(p.Server.Holds()).Abbreviate(4)))
	}
	return false
}

// victim is the last instance that is too much, of those who are not in the group if
// there are any: the group does not miss them. Those of which nothing is left are
// forgotten on the way, and the majority is counted without them.
func (d *decision) victim() *core.Instance {
	var last, outside *core.Instance
	for i := max(d.Cluster.Wanted, 1); i < len(d.Instances); i++ {
		in := &d.Instances[i]
		if !in.IsGone() {
			last = in
			if _, inside := d.seen.members[in.Name]; !inside && in.Report.Known() {
				outside = in
			}
			continue
		}
		if slices.Contains(d.Status.InstanceNames, in.Name) {
			d.Status.InstanceNames = draft.Without(d.Status.InstanceNames, in.Name)
			d.g.ViewMax = min(d.g.ViewMax, max(len(d.Status.InstanceNames), len(d.seen.members)))
			d.Again = true
		}
	}
	d.countWithoutRemoved()
	if outside != nil {
		return outside
	}
	return last
}

// countWithoutRemoved makes the number smaller of which a majority is counted: those who were taken
// out on purpose are counted no more. Nobody else makes it smaller.
func (d *decision) countWithoutRemoved() {
	if d.seen.agreed {
		d.g.ViewMax = min(d.g.ViewMax, max(len(d.Status.InstanceNames), len(d.seen.members)))
	}
}

func (d *decision) remove(victim *core.Instance) {
	if d.RemoveInstance(victim) {
		d.tellEvenSize()
	}
	d.countWithoutRemoved()
}

// settled reports whether everybody is online and ready, and no other primary is wished. Only then
// is anything restarted on purpose.
func (d *decision) settled() bool {
	if !d.seen.agreed || d.seen.primary == "" || d.Status.TargetPrimary != d.Status.CurrentPrimary {
		return false
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		if !d.seen.isOnline(in.Name) || !in.IsReady() || d.IsEnding(in.Name) || d.HasTried(in) {
			return false
		}
	}
	return true
}

// rollOut replaces managers, and restarts instances whose Pod is out of date, one at a time: secondaries
// first, then the primary after handing over, if one of the others can become primary.
func (d *decision) rollOut() {
	if d.mendByRestart() || !d.settled() || d.ReplaceManagers(d.seen.primary) {
		return
	}
	handsOver := false
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, known := in.Pod.Get()
		switch {
		case !known || !pod.Exists || pod.Current || d.IsOnlyCopy(in):
		case in.Name != d.seen.primary || d.isOldest(in.Name):
			d.Restart(in, pod)
			return
		default:
			handsOver = true
		}
	}
	if handsOver {
		d.chooseSuccessor(core.ReasonRollout)
	}
}

// mendByRestart restarts an instance that runs and cannot join the group, and whose Pod is out of date: the
// changed spec may be what mends it, and it must not wait until all are online. It reports whether it did.
// The group has not listed whom it restarts, and so keeps its majority. While that one cannot be asked,
// the operator may see none where most are out of the group; then no other is restarted.
func (d *decision) mendByRestart() bool {
	if !d.seen.agreed || d.seen.primary == "" || d.Status.TargetPrimary != d.Status.CurrentPrimary ||
		d.isRestarting() {
		return false
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		if pod, known := in.Pod.Get(); known && pod.Exists && !pod.Terminating && !pod.Current && d.cannotJoin(in) {
			d.Restart(in, pod)
			return true
		}
	}
	return false
}

// cannotJoin reports whether the instance says that it could not join the group, of which it is no member,
// and its data stay when its Pod ends.
func (d *decision) cannotJoin(in *core.Instance) bool {
	_, listed := d.seen.members[in.Name]
	return !listed && in.Volume.Known() && !draft.LosesVolume(in) &&
		in.Report.Is(func(r core.Report) bool { return r.Reason == core.MemberJoinFailed })
}

// isRestarting reports whether the Pod of an instance is about to end, or one has been restarted for the spec
// as it is and its mysqld refuses that.
func (d *decision) isRestarting() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		return in.IsStopping() || d.IsEnding(in.Name) || d.HasTried(&in)
	})
}

// isOldest reports whether all other members run a newer MySQL, or there are none. The group would
// make none of them primary, and will elect one when this member leaves.
func (d *decision) isOldest(name string) bool {
	for other := range d.seen.members {
		if other != name && d.seen.older(other) == "" {
			return false
		}
	}
	return true
}

// join gives every instance without data a donor: a secondary if one is free, so that
// the primary is spared; one recipient a donor.
func (d *decision) join() {
	if !d.seen.agreed || d.seen.primary == "" || d.isPast() {
		return
	}
	busy := d.BusyDonors()
	var begun, waiting []string
	givers := d.givers()
	for _, in := range d.Recipients() {
		if draft.IsUnsuited(in, givers) {
			d.Suit(in, givers)
			continue
		}
		donor := d.donor(busy, givers, in)
		if donor == "" {
			waiting = append(waiting, in.Name)
			continue
		}
		busy[donor] = true
		d.g.New = draft.Without(d.g.New, in.Name) // the status is written before the order is given
		d.Do(core.CloneFrom{Instance: in.Name, Donor: donor, Epoch: d.Status.Epoch})
		begun = append(begun, in.Name+" from "+donor+draft.LastClone(in))
	}
	d.TellClones(begun, waiting)
}

// givers are the primary, which is the first, and the other members that are online; none
// while it is not known who is.
func (d *decision) givers() []*core.Instance {
	primary := d.Instance(d.seen.primary)
	if !d.seen.agreed || primary == nil {
		return nil
	}
	out := []*core.Instance{primary}
	for i := range d.Instances {
		if in := &d.Instances[i]; in.Name != primary.Name && d.seen.isOnline(in.Name) {
			out = append(out, in)
		}
	}
	return out
}

// donor is the primary only if nobody else is free.
func (d *decision) donor(busy map[string]bool, givers []*core.Instance, recipient *core.Instance) string {
	var donors []string
	for _, in := range append(slices.Clone(givers[1:]), givers[0]) {
		r, known := in.Report.Get()
		isFree := !busy[in.Name] && in.CanCloneTo(recipient)
		if isFree && (in == givers[0] || known && !r.Terminating) {
			donors = append(donors, in.Name)
		}
	}
	return draft.FirstOf(donors, recipient)
}
