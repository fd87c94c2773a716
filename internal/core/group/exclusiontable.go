package group

import (
	"slices"

	"cnmsql.co/internal/core"
)

// exclusionState is where an instance stands that the group went on without.
type exclusionState string

const (
	instanceExcluded exclusionState = "Excluded"
	instanceAdmitted exclusionState = "Admitted"
	instanceCounted  exclusionState = "Counted"
)

// exclusionMeans says of each state what it is, for docs/group-replication.md.
var exclusionMeans = []struct {
	state exclusionState
	means string
}{
	{instanceExcluded, "it is not counted, and no member admits its address"},
	{instanceAdmitted, "it may join (`admitted`). It is not counted yet, except for whether a majority of all " +
		"instances sees the group"},
	{instanceCounted, "it is an instance like any other, and is no longer listed in `leftOut`"},
}

// exclusionStep is a row of exclusionTable, as transition is one of recoveryTable.
type exclusionStep struct {
	from  []exclusionState
	when  func(*exclusion) bool
	where string
	does  string
	do    func(*decision, *exclusion)
	then  exclusionState // "" is the one of before
}

var excludedOrAdmitted = []exclusionState{instanceExcluded, instanceAdmitted}

// exclusionTable is all that becomes of an instance that the group went on without. A row is
// taken for each of them in every decision in which a majority agrees on a group.
var exclusionTable = []exclusionStep{
	{from: excludedOrAdmitted, when: func(e *exclusion) bool { return e.isRemoved },
		where: "the Cluster no longer has this instance", does: "its entry is removed", then: instanceCounted},
	{from: excludedOrAdmitted, when: func(e *exclusion) bool { return e.isVoid },
		where: "a recovery was ordered, but all instances that were to go on are in the group that the operator " +
			"sees, together with one that was to be excluded",
		does: "the recovery did not happen, and its entry is removed (`QuorumRecoveryVoid`); the instance is " +
			"counted again",
		then: instanceCounted},
	{from: excludedOrAdmitted, when: func(e *exclusion) bool { return e.isMember },
		where: "the group has it in its view, not as `UNREACHABLE`", does: "it is counted again",
		then: instanceCounted},
	{from: excludedOrAdmitted, when: func(e *exclusion) bool { return e.view == nil },
		where: "it does not answer", does: "nothing"},
	{from: []exclusionState{instanceAdmitted}, when: func(e *exclusion) bool { return e.joins },
		where: "it has the group's primary in its view", does: "nothing: it joins"},
	{from: excludedOrAdmitted, when: func(e *exclusion) bool { return e.view.IsQuorate() },
		where: "it is online in another group with a quorum", does: "`SplitBrain`; it is told to leave that group",
		do: (*decision).leaveForeign, then: instanceExcluded},
	{from: []exclusionState{instanceAdmitted},
		when:  func(e *exclusion) bool { return e.isInGroup() && len(e.view.Members) == 0 },
		where: "it is in `ERROR`, and sees no member from which it could receive more", does: "it is told to leave",
		do: (*decision).leaveFirst},
	{from: excludedOrAdmitted, when: (*exclusion).isInGroup,
		where: "it is in what is left of a group", does: "it is told to leave: it could still receive more there",
		do: (*decision).leaveFirst, then: instanceExcluded},
	{from: []exclusionState{instanceAdmitted}, where: "otherwise", does: "nothing: it may join"},
	{from: []exclusionState{instanceExcluded}, when: func(e *exclusion) bool { return !e.isFresh },
		where: "its latest report is older than 5 s", does: "nothing"},
	{from: []exclusionState{instanceExcluded}, when: func(e *exclusion) bool { return e.holdsNoMore },
		where: "it is in no group, and has no data, or holds nothing beyond `held`", does: "it is admitted",
		do: (*decision).admit, then: instanceAdmitted},
	{from: []exclusionState{instanceExcluded},
		where: "it is in no group, and holds more, or it is not known what it holds",
		does:  "nothing; an instance that holds more is listed in `divergedInstances`"},
}

// exclusion is what the rows look at.
type exclusion struct {
	name  string
	state exclusionState
	// isRemoved tells whether the Cluster has it no more; isMember, whether the group has it.
	isRemoved, isMember bool
	// isVoid tells whether it came to nothing that the group was to go on without it.
	isVoid bool
	// view is its own word about a group; nil where it is not heard.
	view *core.GroupView
	// joins tells whether it has the primary in its view.
	joins bool
	// isFresh tells whether what it says is of now; holdsNoMore, whether it holds nothing that
	// those lacked who went on without it.
	isFresh, holdsNoMore bool
}

func (e *exclusion) isInGroup() bool { return e.view.State != core.MemberOffline }

// newExclusion looks at all that the rows ask for.
func (d *decision) newExclusion(l *core.LeftOut) *exclusion {
	e := &exclusion{name: l.Instance, state: instanceExcluded}
	if l.Admitted {
		e.state = instanceAdmitted
	}
	in := d.Instance(l.Instance)
	if in == nil {
		e.isRemoved = true
		return e
	}
	// One that is still recovering counts in the size of the view already.
	m, listed := d.seen.members[l.Instance]
	e.isMember = listed && m.State != core.MemberUnreachable
	if view, known := viewOf(in); known {
		e.view, e.joins = view, d.seen.primary != "" && reaches(view, d.seen.primary)
	}
	e.isFresh = d.isFresh(in)
	if r, known := in.Report.Get(); known {
		e.holdsNoMore = r.Data == core.DataEmpty || r.State == core.AwaitingClone ||
			r.Server != nil && r.Data == core.DataPopulated && l.Excess(r.Server).IsEmpty()
	}
	return e
}

// row is the first that applies. Of each state the last row always does.
func (e *exclusion) row() *exclusionStep {
	return &exclusionTable[slices.IndexFunc(exclusionTable, func(s exclusionStep) bool {
		return slices.Contains(s.from, e.state) && (s.when == nil || s.when(e))
	})]
}
