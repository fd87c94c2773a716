package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// rebootAlone has the only member there is make the group again. Where there were others once, a backup of them, or
// the archive, may hold what they had received and this one never did; it gives these numbers again. So that is noted
// as a recovery, once: until the group is seen.
func (d *decision) rebootAlone(r *recovery) {
	if d.g.OnlineMax > 1 && !d.g.IsUndecided() {
		d.Status.Epoch = d.nextEpoch()
		held := draft.Held([]*core.Instance{d.Instance(r.only)})
		d.g.ViewID = ""
		d.g.NoteRecovery(core.GroupRecovery{Epoch: d.Status.Epoch, Held: held})
	}
	if !wasToldToReboot(d.Instance(r.only)) {
		d.Do(core.RebootGroup{Instance: r.only, Epoch: d.Status.Epoch})
	}
	d.Announce(false, core.ReasonGroupAlone, r.only, r.only+" is the only member, and reboots the group after a "+
		"restart")
}

// refuse takes a human's word back: it must not be carried out in another situation.
func (d *decision) refuse(reason core.Reason, why string) { d.refuseAbout(reason, "", why) }

// refuseAbout names who would have gone on.
func (d *decision) refuseAbout(reason core.Reason, lead, why string) {
	d.clearWord()
	d.Announce(true, reason, lead, "the recovery of the quorum was refused: "+why)
}

func (d *decision) refuseNeedless(r *recovery) {
	why := "there is no group yet whose quorum could be lost"
	if r.state == groupQuorate {
		why = fmt.Sprintf("the group has its quorum: %d members are online", d.seen.online)
	}
	d.refuse(core.RefusalQuorumPresent, why)
}

func (d *decision) refuseOutdated(*recovery) {
	d.refuse(core.RefusalViewChanged, "members joined or left since the recovery was requested in view "+
		d.Cluster.Group.ForceView+
		". Check the group as it is now, and request it again: "+d.askForIt())
}

func (d *decision) refuseApart(r *recovery) {
	d.refuse(core.RefusalSplitBrain, fmt.Sprintf("%s and %s are online in different groups, and both have a quorum: "+
		"stop all members of one of them, and request the recovery again", r.online[0].Name, r.apart.Name))
}

func (d *decision) refuseUnheard(r *recovery) {
	d.refuse(core.RefusalQuorumPresent, r.online[0].Name+" is online in a group with a quorum, but too few of its "+
		"members answer: forcing another quorum would split the group")
}

// refuseForeign tells first of one that was to go on and hangs: restarted, it tells whether it has.
func (d *decision) refuseForeign(r *recovery) {
	what := "Bring the instances of the recovered group back, and stop the Pods of the excluded ones. Or, if the " +
		"former are gone for good, delete their PersistentVolumeClaims, then their Pods, and request the recovery " +
		"again"
	if hung := d.named(func(in *core.Instance) bool {
		return !d.g.WentOnWithout(in.Name) && in.Report.Is(isHung)
	}); len(hung) > 0 {
		what = "mysqld of " + strings.Join(hung, ", ") + " hangs: delete the Pod first, and request the " +
			"recovery again when it is back"
	}
	d.refuse(core.RefusalSplitBrain, r.foreign+" was excluded by the last recovery, but is online in a separate "+
		"group with a quorum; the instances of the recovered group are not online, and may have acknowledged writes "+
		"since. "+
		what)
}

func (d *decision) refuseUnproven(r *recovery) { d.refuse(core.RefusalNoSafeSurvivor, r.unproven) }

func (d *decision) refuseReboot(r *recovery) {
	if len(r.survivors) == 0 {
		d.refuse(r.reason, "no member is online, and "+r.why)
		return
	}
	d.refuse(r.reason, fmt.Sprintf("%s holds transactions that the online members lack, so the group would have to "+
		"be rebooted, but %s", r.more, r.why))
}

func (d *decision) refuseLeaderless(r *recovery) {
	d.refuse(core.RefusalNoSafeSurvivor, incomparable(r.survivors))
}

// refuseFenced refuses a recovery when who is to go on is fenced, and would leave the group at
// once, or not make it.
func (d *decision) refuseFenced(lead *core.Instance) {
	d.refuse(core.RefusalSurvivorFenced, fmt.Sprintf("%s would lead the group, but is fenced: unfence it (kubectl "+
		"cnmsql fence off %s %s), and request the recovery again",
		lead.Name, d.Cluster.Name, lead.Name))
}

func (d *decision) awaitStart(r *recovery) {
	d.Block(core.RefusalQuorumLost,
		"the group has lost its quorum; the requested recovery waits until mysqld of "+
			strings.Join(r.starting, ", ")+" has started and reports what it holds")
}

// onlyMember is the one member of a group that never had another, whose mysqld has been
// restarted. Nobody else can hold anything, so that no human is needed; "" where there are,
// or were, others. An instance that is still being made is none. Whether there were others a status
// that was set back does not tell, and an order in its epoch would be refused.
func (d *decision) onlyMember() string {
	if d.isPast() || !d.g.Bootstrapped || d.seen.agreed || !d.neverHadMore() {
		return ""
	}
	members := d.named(func(in *core.Instance) bool { return !d.neverJoined(in) })
	if len(members) != 1 || len(d.Instances) > 1 && !d.holdsSeen(members[0]) {
		return ""
	}
	in := d.Instance(members[0])
	r, known := in.Report.Get()
	v, heard := viewOf(in)
	if !known || !heard || r.Server == nil || r.Data != core.DataPopulated || v.State != core.MemberOffline ||
		d.IsFenced(in.Name) {
		return ""
	}
	return in.Name
}

// neverHadMore reports whether no view of the group was seen with more than one member,
// and nobody is left out.
func (d *decision) neverHadMore() bool { return d.g.ViewMax <= 1 && len(d.g.LeftOut) == 0 }

// neverJoined reports whether the instance is new in a group that never had more than one member.
// It says, now, that it has no data, and none was taken from it; or it is not heard, and never held any. The primary
// that was seen last was a member, and has lost its volume if it has no data.
func (d *decision) neverJoined(in *core.Instance) bool {
	if in.Name == d.Status.CurrentPrimary {
		return false
	}
	r, known := in.Report.Get()
	if !known {
		return d.neverHadMore() && d.holdsNothing(in)
	}
	return d.neverHadMore() && d.isFresh(in) && in.SaysEmpty() && (r.Server == nil || !r.Server.DataRemoved)
}

// holdsSeen reports whether the instance was the primary that was seen last, and holds all
// that was seen. An instance that is empty now, and had joined while no operator ran, may
// have left a trace there.
func (d *decision) holdsSeen(name string) bool {
	return d.Status.CurrentPrimary == name &&
		draft.Held([]*core.Instance{d.Instance(name)}).Contains(d.Plan.Carried.Held)
}

// isOutdated reports whether the view of the group in which the human's word was given
// has passed: by the views of those who are still online, or where nobody is by the last
// view that had a quorum. A word for which they were told to leave was of their view, and stands.
func (d *decision) isOutdated(survivors []*core.Instance) bool {
	asked := d.Cluster.Group.ForceView
	if asked == "" || d.Plan.Carried.Dissolved == asked {
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

// survivors are online members that have lost the majority.
func (d *decision) survivors() []*core.Instance {
	return slices.DeleteFunc(d.recoverySources(), func(in *core.Instance) bool {
		v, known := viewOf(in)
		return !known || !v.IsSurvivor()
	})
}

// inQuorum are those who are online in a group with a quorum.
func inQuorum(all []*core.Instance) []*core.Instance {
	return slices.DeleteFunc(all, func(in *core.Instance) bool { return !isQuorate(in) })
}

func isQuorate(in *core.Instance) bool {
	v, known := viewOf(in)
	return known && v.IsQuorate()
}

// withCompanions adds those who were left out and are online in the same group: the recovery
// did not come about, and the group of before goes on.
func (d *decision) withCompanions(recoverySources []*core.Instance) []*core.Instance {
	if len(recoverySources) == 0 {
		return nil
	}
	view, _ := viewOf(recoverySources[0])
	for i := range d.Instances {
		in := &d.Instances[i]
		if v, _ := viewOf(in); isQuorate(in) && !slices.Contains(recoverySources, in) &&
			(vote{view: v}).key() == (vote{view: view}).key() {
			recoverySources = append(recoverySources, in)
		}
	}
	return recoverySources
}

// starting are those whose mysqld was started and does not answer yet: it will in a moment.
func (d *decision) starting() []string {
	var out []string
	for _, in := range d.recoverySources() {
		if r, known := in.Report.Get(); known && r.State == core.Recovering {
			out = append(out, in.Name)
		}
	}
	return out
}

// holdsMore names an instance that is not online and holds what the survivors lack; "" if
// none is known to.
func (d *decision) holdsMore(survivors []*core.Instance) string {
	theirs := draft.Held(survivors)
	for _, in := range d.recoverySources() {
		r, known := in.Report.Get()
		if known && r.Server != nil && r.Data == core.DataPopulated && !d.outOfHistory(in) &&
			!theirs.Contains(r.Server.Holds()) {
			return in.Name
		}
	}
	return ""
}

// lookAtGroup looks at those who are online in a group with a quorum: one that is in another
// than the first, and whether all the group can be spoken for. Most of its members are heard
// then, its primary among them.
func (d *decision) lookAtGroup(online []*core.Instance) (apart *core.Instance, isWhole bool) {
	if len(online) == 0 {
		return nil, false
	}
	view, _ := viewOf(online[0])
	for _, in := range online[1:] {
		if v, _ := viewOf(in); (vote{view: v}).key() != (vote{view: view}).key() {
			return in, false
		}
	}
	lead := d.Instance(agreedOn(d.Observation, view).primary)
	heard := len(online) + len(d.recoveringIn(view))
	return nil, 2*heard > len(view.Members) && lead != nil && slices.Contains(online, lead)
}

// recoveringIn are those who recover in the group that somebody sees who is online in it.
func (d *decision) recoveringIn(view *core.GroupView) []string {
	return d.named(func(in *core.Instance) bool {
		v, known := viewOf(in)
		return known && v.State == core.MemberRecovering && v.HasQuorum() &&
			(vote{view: v}).key() == (vote{view: view}).key()
	})
}

// takeAsItIs takes a group that somebody has with a quorum as the whole group, so that none
// is forced beside it. A recovery may have come about late, or those who were left out may
// be all that is left.
func (d *decision) takeAsItIs(r *recovery) {
	view, _ := viewOf(r.online[0])
	seen := agreedOn(d.Observation, view)
	members := slices.Sorted(maps.Keys(seen.members))
	d.Status.Epoch = d.nextEpoch()
	d.countOn(members, draft.Held([]*core.Instance{d.Instance(seen.primary)}), draft.Held(r.online))
	d.clearWord()
	d.Announce(true, core.ReasonQuorumForced, strings.Join(members, ","),
		fmt.Sprintf("as a human requested, the operator takes the group of %s, which has a quorum, as the whole "+
			"group; %s",
			strings.Join(members, ", "), d.without()))
	d.Again = true
}

// force goes on with the survivors. A surviving primary has everything; so has one who
// is alone; else one must hold all that the others hold. Those who reach it go on with
// it; the others join again.
func (d *decision) force(r *recovery) {
	lead, survivors := r.leader, goOn(r.leader, r.survivors)
	v, _ := viewOf(lead)
	accepted := ""
	d.Plan.Gap = r.gap
	if r.gap != "" {
		accepted = "; a human accepted that " + r.gap
	}
	var members []string
	for _, in := range survivors {
		members = append(members, in.Name)
	}
	slices.Sort(members)
	d.Status.Epoch = d.nextEpoch()
	d.countOn(members, draft.Held([]*core.Instance{lead}), draft.Held(survivors))
	d.beginRecovery(core.StepForce, core.ReasonQuorumForced, lead.Name,
		core.ForceMembers{Instance: lead.Name, Members: strings.Join(members, ","), View: v.ViewID,
			Epoch: d.Status.Epoch})
	d.Announce(true, core.ReasonQuorumForced, lead.Name, fmt.Sprintf("as a human requested, %s forces the quorum "+
		"with %s as the whole group; %s%s",
		lead.Name, strings.Join(members, ", "), d.without(), accepted))
}

// fencedLast sorts instances so that of those who hold the same, one that is not fenced is chosen.
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

// recoveryLimit is how long a recovery may take. Forcing the members beside nodes that
// have fallen silent takes half a minute and more: the group's own protocol settles what
// was under way first, and mysqld answers no question about its group meanwhile.
const recoveryLimit = 3 * time.Minute

// beginRecovery gives the order to go on. It takes back the human's word, if there was one,
// and writes its execution into the status. The word is given once: what it rested on may not
// be so a moment later, but for a reboot; see orderAgain.
func (d *decision) beginRecovery(step core.Step, reason core.Reason, lead string, order core.Effect) {
	d.Status.Operation = &core.Operation{Kind: core.OperationQuorumRecovery, Step: step,
		From: d.Status.CurrentPrimary, To: lead,
		Reason: reason, StartedAt: d.Now, Deadline: d.Now.Add(recoveryLimit)}
	d.Do(order)
	if d.Cluster.Group.ForceQuorum {
		d.clearWord()
	}
}

// endRecovery ends the recovery when the group has its quorum.
func (d *decision) endRecovery(*recovery) { d.Status.Operation = nil }

// giveRecoveryUp ends a recovery of which nothing has come.
func (d *decision) giveRecoveryUp(r *recovery) {
	op := d.Status.Operation
	d.takeBackWord(r)
	d.Status.Operation = nil
	d.Announce(true, core.RefusalDeadline, op.To, fmt.Sprintf("%s was told to recover the group %s ago, but the "+
		"group has no quorum; check its log, and %s: %s",
		op.To, d.Now.Sub(op.StartedAt).Round(time.Second), nextTime(op), d.askForIt()))
}

func (d *decision) awaitRecovery(r *recovery) {
	op := d.Status.Operation
	d.takeBackWord(r)
	d.orderAgain(op)
	if fails := d.rebootFails(); fails != "" {
		d.Doing(fails)
	}
	d.Doing(fmt.Sprintf("%s, %s recovers the group (%s); this may take two minutes, and meanwhile mysqld does not "+
		"answer questions about its group", onWord(op), op.To, d.without()))
	d.RecheckAt(op.Deadline)
}

// takeBackWord takes back the human's word when what it asks for is under way, or was.
func (d *decision) takeBackWord(r *recovery) {
	if r.asked {
		d.clearWord()
	}
}

// isUnderWay reports whether a recovery of the quorum is under way.
func (d *decision) isUnderWay() bool {
	op := d.Status.Operation
	return op != nil && op.Kind == core.OperationQuorumRecovery
}

// hasLeft reports whether the survivor that was to go on is in no group any more.
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

// isAuthority reports whether the survivor is the primary, and each of the other survivors is in
// its view or holds nothing that it lacks. One that was cut off alone still calls itself primary
// after the others have elected another, who acknowledged writes.
func isAuthority(in *core.Instance, survivors []*core.Instance) bool {
	v, heard := viewOf(in)
	r, known := in.Report.Get()
	return known && heard && v.Role == core.MemberPrimary && r.Server != nil && !slices.ContainsFunc(survivors,
		func(other *core.Instance) bool {
			o, known := other.Report.Get()
			return !reaches(v, other.Name) && (!known || o.Server == nil ||
				!r.Server.Holds().Contains(o.Server.Holds()))
		})
}
