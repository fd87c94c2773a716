package group

import (
	"slices"

	"cnmsql.co/internal/core"
)

// recoveryState is where a group stands between the loss of its quorum and its return.
type recoveryState string

const (
	groupNotMade       recoveryState = "NotMade"
	groupQuorate       recoveryState = "Quorate"
	groupWithoutQuorum recoveryState = "WithoutQuorum"
	groupOutage        recoveryState = "Outage"
	groupUnderWay      recoveryState = "UnderWay"
)

// recoveryMeans says of each state what it is, for docs/group-replication.md.
var recoveryMeans = []struct {
	state recoveryState
	means string
}{
	{groupNotMade, "the group was never made"},
	{groupQuorate, "a majority agrees on a group"},
	{groupWithoutQuorum, "the operator sees no majority, and an instance is in what is left of the group, or in " +
		"another group"},
	{groupOutage, "the operator sees no majority, and no instance that answers is in a group"},
	{groupUnderWay, "an instance was told to recover the group (`operation: QuorumRecovery`), and the operator has " +
		"seen no majority since"},
}

// transition is a row of recoveryTable. The rows are tried from the top; the first of which
// one of the states is the present one, and of which the condition holds, is taken.
type transition struct {
	from []recoveryState
	// when is a question and changes nothing; nil always holds. where and does are the words of
	// both for people, in docs/group-replication.md.
	when     func(*recovery) bool
	where    string
	does     string
	do       func(*decision, *recovery)
	then     []recoveryState // one of them is the state afterwards; nil is the one of before
	proceeds bool            // the next row is looked for at once, from the new state
}

// recoveryTable is all that is done about a group that has lost its quorum.
var recoveryTable = []transition{
	{from: []recoveryState{groupOutage, groupUnderWay}, when: func(r *recovery) bool { return r.only != "" },
		where: "the group has one member, it never had more, and the member's mysqld was restarted",
		does: "it reboots the group, because no other instance can hold anything; if other members were online " +
			"once, a recovery is noted, because a backup may hold what only they had received",
		do: (*decision).rebootAlone},

	{from: []recoveryState{groupUnderWay}, when: func(r *recovery) bool { return r.isBack },
		where: "a majority agrees on a group", does: "the operation ends",
		do: (*decision).endRecovery, then: []recoveryState{groupQuorate}, proceeds: true},
	{from: []recoveryState{groupUnderWay}, when: func(r *recovery) bool { return r.isOver },
		where: "three minutes have passed, or the survivor that was told to force the quorum is not online any more",
		does:  "`DeadlineExceeded`; the operation ends",
		do:    (*decision).giveRecoveryUp, then: []recoveryState{groupWithoutQuorum, groupOutage}},
	{from: []recoveryState{groupUnderWay}, where: "otherwise",
		does: "the operator waits; it drops a request; if an order to reboot the group was lost, it gives the order " +
			"again",
		do: (*decision).awaitRecovery},

	{from: []recoveryState{groupNotMade, groupQuorate}, when: func(r *recovery) bool { return r.asked },
		where: "a human asks", does: "refused: `QuorumPresent`", do: (*decision).refuseNeedless},
	{from: []recoveryState{groupNotMade, groupQuorate}, where: "nobody asks", does: "nothing"},

	{from: []recoveryState{groupOutage}, when: func(r *recovery) bool { return r.awaits },
		where: "`Automatic`, nobody asks, and an instance has not answered, or has not reported anew (1)",
		does:  "the operator waits for it, and names it", do: (*decision).lookAgain},
	{from: []recoveryState{groupOutage}, when: func(r *recovery) bool { return r.mayReboot },
		where: "`Automatic`, nobody asks, and 1 to 6 are all true",
		does:  "the instance that holds everything reboots the group (`TotalOutageRecovery`)",
		do:    (*decision).recoverOutage, then: []recoveryState{groupUnderWay}},
	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: func(r *recovery) bool { return !r.asked },
		where: "nobody asks", does: "nothing: the phase is `Blocked`, and its reason tells what to do"},

	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: func(r *recovery) bool { return r.isOutdated },
		where: "a human asks, but the request names an earlier view of the group",
		does:  "refused: `ViewChanged`", do: (*decision).refuseOutdated},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.apart != nil },
		where: "recovery sources are online in two groups, and both have a quorum",
		does:  "refused: `SplitBrain`", do: (*decision).refuseApart},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.online) > 0 && !r.isWhole },
		where: "recovery sources are online in a group with a quorum, but too few of its members answer",
		does:  "refused: `QuorumPresent`", do: (*decision).refuseUnheard},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.online) > 0 },
		where: "recovery sources are online in a group with a quorum, and most of its members answer",
		does:  "that group is the whole group from now on; all other instances are excluded (`QuorumRecoveryForced`)",
		do:    (*decision).takeAsItIs, then: []recoveryState{groupQuorate}},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.foreign != "" },
		where: "only excluded instances are online in a group with a quorum",
		does:  "refused: `SplitBrain`", do: (*decision).refuseForeign},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.unheard != "" },
		where: "an instance recovers in a group with a quorum, and a member that it sees online there does not answer",
		does:  "refused: `QuorumPresent`", do: (*decision).refuseLiving},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.unproven != "" },
		where: "a recovery was begun, but the operator never saw the recovered group, and both sides may hold more " +
			"since",
		does: "refused: `NoSafeSurvivor`", do: (*decision).refuseUnproven},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return len(r.starting) > 0 },
		where: "mysqld of a recovery source is starting", does: "the operator waits for it",
		do: (*decision).awaitStart},

	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.mustReboot() && r.lead == nil },
		where: "there is no survivor, or an instance holds what the survivors lack; and no instance is known to hold " +
			"everything",
		does: "refused: `MembersUnknown`, `NoSafeSurvivor`", do: (*decision).refuseReboot},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return r.mustReboot() && r.isFenced(r.lead) },
		where: "the same, but an instance holds everything, and it is fenced",
		does:  "refused: `SurvivorFenced`", do: func(d *decision, r *recovery) { d.refuseFenced(r.lead) }},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.mustReboot() && r.isLossOpen() },
		where: "the same, but the instance that holds everything lacks what an excluded instance holds, and no human " +
			"accepted that loss: the group may have taken that instance back while no instance answered",
		does: "refused: `NoSafeSurvivor`", do: (*decision).refuseRebootGap},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.mustReboot() && len(r.inTheWay()) > 0 },
		where: "the same, but an instance holds everything; instances, excluded or not, are `ONLINE` or " +
			"`RECOVERING` in what is left of a group, or instances other than that one are about to join one",
		does: "these leave it first, and stay out, so that no second group is made beside one that may go on",
		do:   (*decision).dissolve},
	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: (*recovery).mustReboot,
		where: "the same, but an instance holds everything, and no instance is in a group",
		does:  "the instance that holds everything reboots the group (`QuorumRecoveryForced`); all others are excluded",
		do:    (*decision).reboot, then: []recoveryState{groupUnderWay}},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.leader == nil },
		where: "no survivor is known to hold everything that the survivors hold",
		does:  "refused: `NoSafeSurvivor`", do: (*decision).refuseLeaderless},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.isFenced(r.leader) },
		where: "the survivor that holds everything is fenced",
		does:  "refused: `SurvivorFenced`", do: func(d *decision, r *recovery) { d.refuseFenced(r.leader) }},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.isLossOpen() },
		where: "the survivor that holds everything lacks what was seen in the group, or its view is older than one " +
			"that was seen, and no human accepted that loss",
		does: "refused: `NoSafeSurvivor`", do: (*decision).refuseGap},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.recovering) > 0 },
		where: "one survivor holds everything that the survivors hold; other instances recover in a group with a " +
			"quorum",
		does: "those leave it first, so that no quorum is forced beside it", do: (*decision).dissolveRecovering},
	{from: []recoveryState{groupWithoutQuorum}, where: "one survivor holds everything that the survivors hold",
		does: "it forces the quorum with the members that it reaches (`QuorumRecoveryForced`); all others are excluded",
		do:   (*decision).force, then: []recoveryState{groupUnderWay}},
}

// recovery is what the rows look at. It is made before any of them is tried.
type recovery struct {
	state recoveryState
	// asked tells whether a human's word is there.
	asked bool
	// only is the only member there is.
	only string
	// isBack tells whether the group has its quorum again; isOver, whether time is up, or
	// the survivor has left.
	isBack, isOver bool
	// awaits and mayReboot are of a groupOutage that the operator may end.
	awaits, mayReboot bool
	// isOutdated tells whether the word was given in another view.
	isOutdated bool
	// online are the recovery sources in a group with a quorum, and their co-members; apart
	// is one of them in another group than the first. isWhole: most of the group is heard.
	online  []*core.Instance
	apart   *core.Instance
	isWhole bool
	beside
	// unproven is why it is not known from whom to go on.
	unproven string
	starting []string
	// survivors are online without a quorum, and leader holds all that they hold. more names
	// an instance that holds what they lack.
	survivors []*core.Instance
	leader    *core.Instance
	more      string
	loss
	rebooter
	isFenced func(*core.Instance) bool
}

// beside is who is in a group beside which another might be made.
type beside struct {
	// foreign names one that is excluded, and online in a group with a quorum.
	foreign string
	// members are online or recover in what is left of any group. Of these, those of recovering are in one that
	// has its quorum by their own word: one of them may become online, and take writes.
	members, recovering []*core.Instance
	// joining are in none, and their mysqld looks for one, which it cannot be told to stop.
	joining []*core.Instance
	// unheard tells of one of recovering in whose view somebody is online who is not heard.
	unheard string
}

// isLossOpen reports whether something is known to be missing, and nobody has said that it may be lost.
func (l loss) isLossOpen() bool { return l.gap != "" && !l.accepted }

// loss is what is known to have been in the group and is missing where the leader goes on, and
// whether a human has said that it may be lost.
type loss struct {
	gap      string
	accepted bool
}

// rebooter is who can reboot the group; nil with the reason why nobody can.
type rebooter struct {
	lead   *core.Instance
	reason core.Reason
	why    string
}

// mustReboot reports whether nobody who is online can go on, so that the group has to be rebooted.
func (r *recovery) mustReboot() bool { return len(r.survivors) == 0 || r.more != "" }

// inTheWay are those who have to be out of any group before lead makes one. That it makes one ends its own search.
func (r *recovery) inTheWay() []*core.Instance {
	return slices.Concat(r.members, slices.DeleteFunc(slices.Clone(r.joining), func(in *core.Instance) bool {
		return in == r.lead
	}))
}

// recoveryState is derived from what is observed and decided so far.
func (d *decision) recoveryState() recoveryState {
	switch {
	case d.isUnderWay():
		return groupUnderWay
	case !d.g.Bootstrapped:
		return groupNotMade
	case d.seen.agreed:
		return groupQuorate
	case d.isAnybodyIn():
		return groupWithoutQuorum
	}
	return groupOutage
}

// newRecovery looks at all that the rows of the present state ask for.
func (d *decision) newRecovery() *recovery {
	r := &recovery{state: d.recoveryState(), asked: d.Cluster.Group.ForceQuorum, only: d.onlyMember(),
		isFenced: func(in *core.Instance) bool { return d.IsFenced(in.Name) }}
	switch {
	case r.state == groupUnderWay:
		op := d.Status.Operation
		r.isBack, r.isOver = d.seen.agreed, !d.Now.Before(op.Deadline) || d.hasLeft(op)
	case r.state == groupNotMade, r.state == groupQuorate:
	case r.asked:
		d.weigh(r)
	case r.state == groupOutage && d.Cluster.Group.RecoverOutage:
		r.awaits = len(d.awaited()) > 0
		r.mayReboot = !r.awaits && d.handedOver() == ""
	}
	return r
}

// weigh looks from whom a group may go on for which a human asks.
func (d *decision) weigh(r *recovery) {
	d.Plan.Carried.Dissolved = d.Observation.Carried.Dissolved // as long as the word stands
	sources := d.recoverySources()
	r.survivors = d.survivors()
	r.isOutdated = d.isOutdated(r.survivors)
	r.online, r.beside = d.withCompanions(inQuorum(sources)), d.lookBeside()
	r.apart, r.isWhole = d.lookAtGroup(r.online)
	r.unproven, r.starting = d.unproven(), d.starting()
	r.more = d.holdsMore(r.survivors)
	r.lead, r.reason, r.why = d.rebootLead()
	d.fencedLast(r.survivors)
	r.leader = leader(r.survivors)
	switch {
	case r.mustReboot() && r.lead != nil:
		r.gap, r.accepted = d.gap(r.lead, nil), d.accepts(r.lead)
	case r.leader != nil:
		r.gap, r.accepted = d.knownGap(r.leader, r.survivors), d.accepts(r.leader)
	}
}

// recoverQuorum takes the rows of the table that apply now.
func (d *decision) recoverQuorum() {
	d.dropOverride()
	for {
		r := d.newRecovery()
		row := r.row()
		d.took = append(d.took, row)
		if row.do != nil {
			row.do(d, r)
		}
		if !row.proceeds {
			return
		}
	}
}

// row is the first that applies. Of each state the last row always does.
func (r *recovery) row() *transition {
	return &recoveryTable[slices.IndexFunc(recoveryTable, func(t transition) bool {
		return slices.Contains(t.from, r.state) && (t.when == nil || t.when(r))
	})]
}
