package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// recoverQuorum goes on with those who are left, on a human's word and only when it can
// be proved who of them has everything. A human's word that is refused is taken back,
// so that it is not carried out in another situation.
func (d *decision) recoverQuorum() {
	if only := d.onlyMember(); only != "" {
		d.Do(core.RebootGroup{Instance: only, Epoch: d.Status.Epoch})
		d.Announce(false, core.ReasonGroupAlone, only, only+" is the only member there is, and makes the group again after a restart")
		return
	}
	if d.isRecovering() {
		return
	}
	if !d.Cluster.Group.ForceQuorum {
		d.recoverOutage()
		return
	}
	heirs, stranger := quorate(d.heirs()), d.stranger()
	switch {
	case !d.g.Bootstrapped:
		d.refuse(core.RefusalQuorumPresent, "there is no group yet whose quorum could be lost")
	case d.seen.agreed:
		d.refuse(core.RefusalQuorumPresent, fmt.Sprintf("the group has its quorum: %d members are online", d.seen.online))
	case d.isOutdated():
		d.refuse(core.RefusalViewChanged, "members have come or gone since it was asked for, in view "+d.Cluster.Group.ForceView+". Look at the group as it is now, and ask again: kubectl cnmsql group recover "+d.Cluster.Name)
	case len(heirs) > 0:
		d.takeAsItIs(d.withCompanions(heirs))
	case stranger != "":
		d.refuse(core.RefusalSplitBrain, stranger+" was left out by the last recovery, and is online in a group of its own that has a quorum; those whom the group went on with are not, and may have acknowledged writes since. Bring them back, and stop the Pods of those who were left out; or, if they are gone for good, delete their Pods and PersistentVolumeClaims, and ask again")
	default:
		if why := d.unproven(); why != "" {
			d.refuse(core.RefusalNoSafeSurvivor, why)
			return
		}
		d.recoverFrom(d.survivors())
	}
}

// isOutdated: the human's word was given in a view of the group that has passed, by those
// who are still online, or where nobody is by the last view that had a quorum.
func (d *decision) isOutdated() bool {
	asked, survivors := d.Cluster.Group.ForceView, d.survivors()
	if asked == "" {
		return false
	}
	if len(survivors) == 0 {
		return d.g.ViewID != asked
	}
	return !slices.ContainsFunc(survivors, func(in *core.Instance) bool {
		v, _ := viewOf(in)
		return v.ViewID == asked
	})
}

// onlyMember is the one instance of a cluster of one whose mysqld has been restarted.
// Nobody else can hold anything, so that no human is needed; "" where there are, or
// were, others.
func (d *decision) onlyMember() string {
	if !d.g.Bootstrapped || d.seen.agreed || len(d.Instances) != 1 || d.g.ViewMax > 1 || len(d.g.LeftOut) > 0 {
		return ""
	}
	in := &d.Instances[0]
	r, known := in.Report.Get()
	v, _ := viewOf(in)
	if !known || r.Server == nil || r.Data != core.DataPopulated || v.State != core.MemberOffline || d.IsFenced(in.Name) {
		return ""
	}
	return in.Name
}

// recoverFrom goes on with online survivors, if there are any and nobody who is known
// holds more: they may be members that the group had expelled, and went on without.
func (d *decision) recoverFrom(survivors []*core.Instance) {
	switch starting := d.starting(); {
	case len(starting) > 0:
		d.Block(core.RefusalQuorumLost, "the group has lost its quorum; the recovery that was asked for waits until mysqld of "+strings.Join(starting, ", ")+" has started, and tells what it holds")
	case len(survivors) == 0:
		d.reboot()
	case d.holdsMore(survivors) == "":
		d.force(survivors)
	default:
		d.dissolve(survivors, d.holdsMore(survivors))
	}
}

// starting are those whose mysqld was started and does not answer yet: it will in a moment.
func (d *decision) starting() []string {
	var out []string
	for _, in := range d.heirs() {
		if r, known := in.Report.Get(); known && r.State == core.Recovering {
			out = append(out, in.Name)
		}
	}
	return out
}

// dissolve has the survivors leave what is left of the group, for it to be recreated by
// one who holds more; but only if it can be.
func (d *decision) dissolve(survivors []*core.Instance, more string) {
	lead, reason, why := d.rebootLead()
	if lead == nil {
		d.refuse(reason, fmt.Sprintf("%s holds transactions that those who are still online lack, so that the group would have to be rebooted, and %s", more, why))
		return
	}
	if d.isFencedLead(lead) {
		return
	}
	for _, in := range survivors {
		d.Do(core.FreezeIO{Instance: in.Name, Epoch: d.Status.Epoch + 1})
	}
	d.Say(fmt.Sprintf("%s holds transactions that those who are still online lack: they leave what is left of the group, and it is rebooted", more))
}

// holdsMore names an instance that is not online and holds what the survivors lack; "" if
// none is known to.
func (d *decision) holdsMore(survivors []*core.Instance) string {
	theirs := draft.Held(survivors)
	for _, in := range d.heirs() {
		r, known := in.Report.Get()
		if known && r.Server != nil && r.Data == core.DataPopulated && !d.strays(in) && !theirs.Contains(r.Server.Holds()) {
			return in.Name
		}
	}
	return ""
}

func (d *decision) refuse(reason core.Reason, why string) {
	d.Do(core.ClearForceQuorum{})
	d.Announce(true, reason, "", "the recovery of the quorum was refused: "+why)
}

// quorate are those who are online in a group with a quorum.
func quorate(all []*core.Instance) []*core.Instance {
	return slices.DeleteFunc(all, func(in *core.Instance) bool { return !isQuorate(in) })
}

func isQuorate(in *core.Instance) bool {
	v, known := viewOf(in)
	return known && v.IsQuorate()
}

// stranger names one who is online in a group with a quorum, and from whom the group
// may not go on.
func (d *decision) stranger() string {
	for i := range d.Instances {
		if in := &d.Instances[i]; isQuorate(in) {
			return in.Name
		}
	}
	return ""
}

// withCompanions adds those who were left out and are online in the same group: the recovery
// did not come about, and the group of before goes on.
func (d *decision) withCompanions(heirs []*core.Instance) []*core.Instance {
	view, _ := viewOf(heirs[0])
	for i := range d.Instances {
		in := &d.Instances[i]
		if v, _ := viewOf(in); isQuorate(in) && !slices.Contains(heirs, in) && (vote{view: v}).key() == (vote{view: view}).key() {
			heirs = append(heirs, in)
		}
	}
	return heirs
}

// takeAsItIs: somebody has a group with a quorum, so that none is forced beside it. If
// all who have one have the same, and most of its members say so, it is taken as the
// whole group: a recovery may have come about late, or those who were left out may be
// all that is left.
func (d *decision) takeAsItIs(quorate []*core.Instance) {
	first := quorate[0]
	view, _ := viewOf(first)
	for _, in := range quorate[1:] {
		if v, _ := viewOf(in); (vote{view: v}).key() != (vote{view: view}).key() {
			d.refuse(core.RefusalSplitBrain, fmt.Sprintf("%s and %s are online in different groups, and both have a quorum: stop one of them, with all its members, and ask again", first.Name, in.Name))
			return
		}
	}
	seen := agreedOn(d.Observation, view)
	lead := d.Instance(seen.primary)
	if 2*len(quorate) <= len(view.Members) || lead == nil || !slices.Contains(quorate, lead) {
		d.refuse(core.RefusalQuorumPresent, first.Name+" is online in a group with a quorum, of which too few can be asked: forcing another would split it")
		return
	}
	var members []string
	for name := range seen.members {
		members = append(members, name)
	}
	slices.Sort(members)
	r, _ := lead.Report.Get()
	d.Status.Epoch++
	d.countOn(members, r.Server.Holds(), draft.Held(quorate))
	d.Do(core.ClearForceQuorum{})
	d.Announce(true, core.ReasonQuorumForced, strings.Join(members, ","), fmt.Sprintf("as a human asked for, the group of %s, which has a quorum, is taken as the whole group; %s", strings.Join(members, ", "), d.without()))
	d.Again = true
}

// survivors are online members that have lost the majority.
func (d *decision) survivors() []*core.Instance {
	return slices.DeleteFunc(d.heirs(), func(in *core.Instance) bool {
		v, known := viewOf(in)
		return !known || !v.IsSurvivor()
	})
}

// force goes on with the survivors. A surviving primary has everything; so has one who
// is alone; else one must hold all that the others hold. Those who reach it go on with
// it; the others join again.
func (d *decision) force(survivors []*core.Instance) {
	d.fencedLast(survivors)
	lead := leader(survivors)
	if lead == nil {
		d.refuse(core.RefusalNoSafeSurvivor, incomparable(survivors))
		return
	}
	if d.isFencedLead(lead) {
		return
	}
	v, _ := viewOf(lead)
	survivors = slices.DeleteFunc(survivors, func(in *core.Instance) bool { return in != lead && !reaches(v, in.Name) })
	var members []string
	for _, in := range survivors {
		members = append(members, in.Name)
	}
	slices.Sort(members)
	d.Status.Epoch++
	r, _ := lead.Report.Get()
	d.countOn(members, r.Server.Holds(), draft.Held(survivors))
	d.beginRecovery(core.StepForce, core.ReasonQuorumForced, lead.Name, core.ForceMembers{Instance: lead.Name, Members: strings.Join(members, ","), View: v.ViewID, Epoch: d.Status.Epoch})
	d.Announce(true, core.ReasonQuorumForced, lead.Name, fmt.Sprintf("as a human asked for, %s goes on with %s as the whole group; %s", lead.Name, strings.Join(members, ", "), d.without()))
}

// fencedLast: of those who hold the same, one that is not fenced is chosen.
func (d *decision) fencedLast(all []*core.Instance) {
	slices.SortStableFunc(all, func(a, b *core.Instance) int {
		switch x, y := d.IsFenced(a.Name), d.IsFenced(b.Name); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
}

// isFencedLead: who is to go on is fenced, and would leave the group at once, or not make it.
func (d *decision) isFencedLead(lead *core.Instance) bool {
	if !d.IsFenced(lead.Name) {
		return false
	}
	d.refuse(core.RefusalSurvivorFenced, fmt.Sprintf("%s is the one to go on, and is fenced: take the fence off (kubectl cnmsql fence off %s %s), and ask again", lead.Name, d.Cluster.Name, lead.Name))
	return true
}

// recoveryLimit is how long a recovery may take. Forcing the members beside nodes that
// have fallen silent takes half a minute and more: the group's own protocol settles what
// was under way first, and mysqld answers no question about its group meanwhile.
const recoveryLimit = 3 * time.Minute

// beginRecovery: the human's word is taken back, if there was one, and its execution is in
// the status. It is given once: what it rested on may not be so a moment later.
func (d *decision) beginRecovery(step core.Step, reason core.Reason, lead string, order core.Effect) {
	d.Status.Operation = &core.Operation{Kind: core.OperationQuorumRecovery, Step: step, From: d.Status.CurrentPrimary, To: lead,
		Reason: reason, StartedAt: d.Now, Deadline: d.Now.Add(recoveryLimit)}
	d.Do(order)
	if d.Cluster.Group.ForceQuorum {
		d.Do(core.ClearForceQuorum{})
	}
}

// isRecovering goes on with a recovery that has begun, until the group has its quorum or
// time is up.
func (d *decision) isRecovering() bool {
	op := d.Status.Operation
	switch {
	case !d.isUnderWay():
		return false
	case d.seen.agreed:
		d.Status.Operation = nil
		return false
	}
	if d.Cluster.Group.ForceQuorum {
		d.Do(core.ClearForceQuorum{}) // it is under way, or was
	}
	if !d.Now.Before(op.Deadline) || d.hasLeft(op) {
		d.Status.Operation = nil
		d.Announce(true, core.RefusalDeadline, op.To, fmt.Sprintf("%s was told to go on %s ago, and the group has no quorum; see what became of it, and %s: kubectl cnmsql group recover %s",
			op.To, d.Now.Sub(op.StartedAt).Round(time.Second), nextTime(op), d.Cluster.Name))
		return true
	}
	d.Say(fmt.Sprintf("%s, %s goes on (%s); it may take a minute or two, and mysqld answers no question about its group meanwhile", onWord(op), op.To, d.without()))
	d.RecheckAt(op.Deadline)
	return true
}

// isUnderWay: a recovery of the quorum.
func (d *decision) isUnderWay() bool {
	op := d.Status.Operation
	return op != nil && op.Kind == core.OperationQuorumRecovery
}

// hasLeft: the survivor that was to go on is in no group any more.
func (d *decision) hasLeft(op *core.Operation) bool {
	in := d.Instance(op.To)
	if in == nil || in.IsGone() {
		return true
	}
	v, known := viewOf(in)
	return known && op.Step == core.StepForce && v.State != core.MemberOnline
}

func reaches(v *core.GroupView, name string) bool {
	for _, m := range v.Members {
		if core.IsHostOf(m.Host, name) {
			return m.State == core.MemberOnline
		}
	}
	return false
}

// leader is the survivor who is known to have everything that any of them has.
func leader(survivors []*core.Instance) *core.Instance {
	for _, in := range survivors {
		if len(survivors) == 1 || isAuthority(in, survivors) {
			return in
		}
	}
	return draft.Dominating(survivors)
}

// isAuthority: it is the primary, and each of the other survivors is in its view or holds
// nothing that it lacks. One that was cut off alone still calls itself primary after the
// others have elected another, who acknowledged writes.
func isAuthority(in *core.Instance, survivors []*core.Instance) bool {
	v, _ := viewOf(in)
	r, _ := in.Report.Get()
	return v.Role == core.MemberPrimary && r.Server != nil && !slices.ContainsFunc(survivors, func(other *core.Instance) bool {
		o, known := other.Report.Get()
		return !reaches(v, other.Name) && (!known || o.Server == nil || !r.Server.Holds().Contains(o.Server.Holds()))
	})
}
