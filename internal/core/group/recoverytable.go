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
	{groupWithoutQuorum, "no majority is seen, and somebody is in what is left of the group, or in another"},
	{groupOutage, "no majority is seen, and nobody who is heard is in a group"},
	{groupUnderWay, "an instance was told to go on (`operation: QuorumRecovery`), and no majority was seen since"},
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
		where: "there is one member, there were never more, and its mysqld was restarted",
		does: "it reboots the group: nobody else can hold anything; where others were online once, a recovery is " +
			"noted, for a backup may hold what only they had received", do: (*decision).rebootAlone},

	{from: []recoveryState{groupUnderWay}, when: func(r *recovery) bool { return r.isBack },
		where: "a majority agrees on a group", does: "the operation ends",
		do: (*decision).endRecovery, then: []recoveryState{groupQuorate}, proceeds: true},
	{from: []recoveryState{groupUnderWay}, when: func(r *recovery) bool { return r.isOver },
		where: "three minutes are over, or the survivor that was to go on is in no group any more",
		does:  "`DeadlineExceeded`; the operation ends",
		do:    (*decision).giveRecoveryUp, then: []recoveryState{groupWithoutQuorum, groupOutage}},
	{from: []recoveryState{groupUnderWay}, where: "otherwise",
		does: "it is waited for; a request is taken back; an order to reboot the group that was lost is given again",
		do:   (*decision).awaitRecovery},

	{from: []recoveryState{groupNotMade, groupQuorate}, when: func(r *recovery) bool { return r.asked },
		where: "a human asks", does: "refused: `QuorumPresent`", do: (*decision).refuseNeedless},
	{from: []recoveryState{groupNotMade, groupQuorate}, where: "nobody asks", does: "nothing"},

	{from: []recoveryState{groupOutage}, when: func(r *recovery) bool { return r.awaits },
		where: "`Automatic`, nobody asks, and an instance is not heard, or nothing new of it (1)",
		does:  "it is waited for, by name", do: (*decision).lookAgain},
	{from: []recoveryState{groupOutage}, when: func(r *recovery) bool { return r.mayReboot },
		where: "`Automatic`, nobody asks, and all of 1 to 6 is true",
		does:  "the instance that holds all reboots the group (`TotalOutageRecovery`)",
		do:    (*decision).recoverOutage, then: []recoveryState{groupUnderWay}},
	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: func(r *recovery) bool { return !r.asked },
		where: "nobody asks", does: "nothing: the phase is `Blocked`, and its reason tells what to do"},

	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: func(r *recovery) bool { return r.isOutdated },
		where: "a human asks, in a view that has passed",
		does:  "refused: `ViewChanged`", do: (*decision).refuseOutdated},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.apart != nil },
		where: "recovery sources are online in two groups, and both have a quorum",
		does:  "refused: `SplitBrain`", do: (*decision).refuseApart},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.online) > 0 && !r.isWhole },
		where: "recovery sources are online in a group with a quorum, of which too few are heard",
		does:  "refused: `QuorumPresent`", do: (*decision).refuseUnheard},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.online) > 0 },
		where: "recovery sources are online in a group with a quorum, and most of it is heard",
		does:  "that group is taken as the whole group; all others are excluded (`QuorumRecoveryForced`)",
		do:    (*decision).takeAsItIs, then: []recoveryState{groupQuorate}},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.foreign != "" },
		where: "only excluded instances are online in a group with a quorum",
		does:  "refused: `SplitBrain`", do: (*decision).refuseForeign},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.unheard != "" },
		where: "an instance recovers in a group with a quorum, in whose view one is online who is not heard",
		does:  "refused: `QuorumPresent`", do: (*decision).refuseLiving},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return r.unproven != "" },
		where: "a recovery was begun and never seen, and both sides may hold more since",
		does:  "refused: `NoSafeSurvivor`", do: (*decision).refuseUnproven},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return len(r.starting) > 0 },
		where: "mysqld of a recovery source starts", does: "it is waited for", do: (*decision).awaitStart},

	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return r.mustReboot() && r.lead == nil },
		where: "no survivor, or an instance holds what the survivors lack; nobody is known to hold all",
		does:  "refused: `MembersUnknown`, `NoSafeSurvivor`", do: (*decision).refuseReboot},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when:  func(r *recovery) bool { return r.mustReboot() && r.isFenced(r.lead) },
		where: "the same, and the one that holds all is fenced",
		does:  "refused: `SurvivorFenced`", do: func(d *decision, r *recovery) { d.refuseFenced(r.lead) }},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.mustReboot() && r.isLossOpen() },
		where: "the same, and it lacks what an excluded instance holds, and it was not accepted that this is lost: " +
			"the group may have taken that one back while nobody was heard",
		does: "refused: `NoSafeSurvivor`", do: (*decision).refuseRebootGap},
	{from: []recoveryState{groupOutage, groupWithoutQuorum},
		when: func(r *recovery) bool { return r.mustReboot() && len(r.inTheWay()) > 0 },
		where: "the same, and one holds all; instances are `ONLINE` or `RECOVERING` in what is left of a group, " +
			"excluded or not, or others than that one are about to join",
		does: "these leave it first, and stay out, so that no group is made beside one that may go on",
		do:   (*decision).dissolve},
	{from: []recoveryState{groupOutage, groupWithoutQuorum}, when: (*recovery).mustReboot,
		where: "the same, and nobody is in a group",
		does:  "the one that holds all reboots it (`QuorumRecoveryForced`); all others are excluded",
		do:    (*decision).reboot, then: []recoveryState{groupUnderWay}},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.leader == nil },
		where: "no survivor is known to hold all that the survivors hold",
		does:  "refused: `NoSafeSurvivor`", do: (*decision).refuseLeaderless},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.isFenced(r.leader) },
		where: "the survivor that holds all is fenced",
		does:  "refused: `SurvivorFenced`", do: func(d *decision, r *recovery) { d.refuseFenced(r.leader) }},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return r.isLossOpen() },
		where: "the survivor that holds all lacks what was seen in the group, or its view is an earlier one than was " +
			"seen, and it was not accepted that this is lost",
		does: "refused: `NoSafeSurvivor`", do: (*decision).refuseGap},
	{from: []recoveryState{groupWithoutQuorum}, when: func(r *recovery) bool { return len(r.recovering) > 0 },
		where: "one survivor holds all that the survivors hold; others recover in a group with a quorum",
		does:  "those leave it first, so that no quorum is forced beside it", do: (*decision).dissolveRecovering},
	{from: []recoveryState{groupWithoutQuorum}, where: "one survivor holds all that the survivors hold",
		does: "it forces the quorum with those it reaches (`QuorumRecoveryForced`); all others are excluded",
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
