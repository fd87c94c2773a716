package group

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// fence keeps the list of members that a human takes out of the group. Nobody is
// fenced whom the group needs for its majority.
func (d *decision) fence() {
	for _, in := range d.FencingChanged() {
		why := d.cannotSpare(in.Name, d.size())
		switch {
		case d.IsFenced(in.Name):
			d.Unfence(in.Name, "it joins the group again")
		case why != "":
			d.BlockAbout(core.RefusalFenceQuorum, in.Name, in.Name+" is not fenced: "+why+
				"; take the fence off, or bring the others back first")
		default:
			d.Fence(in.Name, "it leaves the group, its mysqld runs on read-only")
		}
	}
	d.TidyFenced()
}

// size is the number of members of which a majority is counted.
func (d *decision) size() int { return d.g.Size(d.everyone()) }

// sizeWithout is size when a member leaves for good, or until it has new data: the group is smaller without it.
func (d *decision) sizeWithout() int { return len(d.g.Voters(d.everyone())) - 1 }

// cannotSpare says why a member cannot be missed in a group of a size, "" when it can.
// Members that are on their way out already are not counted on, nor is one that hangs: its manager kills it as
// soon as the others can do without it. Nobody knows whether a primary hangs that is not heard.
func (d *decision) cannotSpare(name string, size int) string {
	if !d.g.Bootstrapped {
		return "the group is not made yet"
	}
	if !d.seen.agreed {
		return "it is not known whether the group has a majority without it"
	}
	if _, in := d.seen.members[name]; !in {
		return ""
	}
	online := d.named(func(in *core.Instance) bool {
		return in.Name != name && d.seen.isOnline(in.Name) && !d.isGoing(in.Name)
	})
	hung := d.named(func(in *core.Instance) bool {
		return slices.Contains(online, in.Name) && in.Report.Is(isHung)
	})
	left := len(online) - len(hung)
	text := ""
	if len(hung) > 0 {
		text = ", not counting " + strings.Join(hung, ", ") + " (mysqld hangs)"
	}
	if primary := d.seen.primary; slices.Contains(online, primary) && !d.Instance(primary).Report.Known() {
		left--
		text += ", not counting the primary " + primary + " (its manager does not answer)"
	}
	if left >= core.Majority(size) {
		return ""
	}
	return fmt.Sprintf("%d of %d members would be left online%s, and %d are a majority", left, size, text,
		core.Majority(size))
}

func isHung(r core.Report) bool { return r.State == core.Hung }

// cannotLose tells why the group needs a member whose claim is gone or going, and which leaves it until it has
// new data; "" when it does not. Whom the others do not reach, it does not have.
func (d *decision) cannotLose(in *core.Instance) string {
	if d.seen.members[in.Name].State == core.MemberUnreachable {
		return ""
	}
	if why := d.cannotSpare(in.Name, d.sizeWithout()); why != "" {
		return "because " + why + ". The operator deletes it when the others are back"
	}
	return ""
}

// isGoing reports whether the member is fenced, stopped, or was told to leave.
func (d *decision) isGoing(name string) bool {
	in := d.Instance(name)
	r, heard := in.Report.Get()
	return d.IsFenced(name) || in.IsStopping() || d.IsEnding(name) || heard && r.NoReceivingBelow > d.Status.Epoch
}

// reinit makes the data of members again on a human's word, one after another.
func (d *decision) reinit() {
	if len(d.Cluster.Reinit) > 0 && d.isPast() { // the requests may be of the past, too
		d.Doing("the data of " + strings.Join(core.ReinitNames(d.Cluster.Reinit), ", ") +
			" is recreated when the operator has repaired the Cluster's status, which was set back")
		return
	}
	for _, asked := range d.SettleReinits(d.Status.CurrentPrimary) {
		name := asked.Instance
		in := d.Instance(name)
		switch {
		case d.IsSurplus(in) && !slices.Contains(d.Status.Diverged, name): // it is removed, and its data with it
			d.Do(core.ClearReinit{Instance: name})
		case !d.seen.agreed || d.Status.Operation != nil:
			d.Doing("the data of " + name + " is recreated when the group has its quorum")
			return
		case d.haveLeave(in, "recreating the data of "+name, core.RefusalReinitQuorum) && d.clearReinit(asked, in):
			d.MakeAnew(in)
			return
		default:
			return
		}
	}
}

// clearReinit reports whether the data of an instance that is out of the group may be thrown away: the
// primary holds all that it holds, or a human was told what goes with it. One that could not be asked
// when that was asked for was a human's to judge.
func (d *decision) clearReinit(asked core.ReinitRequest, in *core.Instance) bool {
	if r, known := in.Report.Get(); !known || r.Server == nil {
		return d.LetGoUnheard(asked)
	}
	return d.MayGiveUp(asked) || d.compareHeld(in, "recreating the data of "+in.Name)
}

// welcomeBack begins the next epoch, in which a member joins again that was asked to leave,
// and need not any more.
func (d *decision) welcomeBack() {
	if d.Cluster.Group.ForceQuorum || d.isPast() { // those who were told to leave make way for one that is rebooted
		return
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		if known && r.NoReceivingBelow > d.Status.Epoch && isOf(r, in) && !d.IsSurplus(in) && !d.g.Excludes(in.Name) &&
			!d.MayBeReinitialized(in.Name) {
			d.Status.Epoch = r.NoReceivingBelow
			d.Again = true
		}
	}
}

// isOf reports whether the report is of the instance's present Pod, and that Pod and its volume stay. The
// promise of one that is recreated goes with its data.
func isOf(r core.Report, in *core.Instance) bool {
	return in.Pod.Is(func(p core.Pod) bool { return p.Exists && !p.Terminating && p.UID == r.PodUID }) &&
		!in.Volume.Is(func(v core.Volume) bool { return !v.Exists || v.Deleting })
}

// haveLeave has a member leave the group, if it can be spared, and reports whether it is out: the
// group has what it acknowledged then. That it cannot be spared is refused by name, until it can.
func (d *decision) haveLeave(in *core.Instance, what string, refusal core.Reason) bool {
	if d.isPast() {
		d.Doing(what + " waits until the operator has repaired the Cluster's status, which was set back")
		return false
	}
	if _, listed := d.seen.members[in.Name]; !listed {
		return true
	}
	if why := d.cannotSpare(in.Name, d.sizeWithout()); why != "" {
		d.BlockAbout(refusal, in.Name, what+" waits: "+why+"; bring the others back")
		return false
	}
	d.Doing(what + ": it leaves the group")
	if !d.noteLeaving(in.Name) {
		return false
	}
	if r, known := in.Report.Get(); known && r.NoReceivingBelow <= d.Status.Epoch {
		d.Do(core.ReceivePromise{Instance: in.Name, Epoch: d.Status.Epoch + 1})
	}
	return false
}

// noteLeaving notes in the status that a member leaves, and reports whether that stood there before. It is told
// afterwards: the manager of a primary that hangs kills its mysqld by what the status says of the others.
func (d *decision) noteLeaving(name string) bool {
	isIt := func(m core.GroupMember) bool { return m.Instance == name }
	if i := slices.IndexFunc(d.g.Members, isIt); i >= 0 {
		d.g.Members[i].Leaving = true
	}
	before := d.Cluster.Status.Group
	noted := before != nil && slices.ContainsFunc(before.Members, func(m core.GroupMember) bool {
		return isIt(m) && m.Leaving
	})
	d.Again = d.Again || !noted
	return noted
}
