package agent

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// A member that was expelled is in ERROR, and read-only. Its manager has it leave, which takes 0.1 s and on a busy
// node 2 s, and join anew. It is back as soon as by an attempt of mysqld itself, which asks nobody what this member
// holds, and which nobody can end: whoever has it leave in the middle of one waits for the attempt, and that waits
// for as long as a minute for a view without it, and again for one with it.

const (
	// rejoinWait is how long mysqld has to join again by itself, where the Cluster wants that: its attempt took 1 s to
	// 3 s, and 8 s on a busy node. Its next one is five minutes later.
	rejoinWait = 15 * time.Second
	// closesWithin is how long mysqld has to make itself read-only once it is in ERROR, which it does a moment
	// later. It refuses all commits meanwhile.
	closesWithin = time.Second
	// leaveLimit is how long an expelled member may take to leave the group. Nobody waits for it
	// and it takes no writes; STOP GROUP_REPLICATION was seen to hang for more than two minutes. On a busy node
	// the start of another mysqld takes as long.
	leaveLimit = 30 * time.Second
)

// inError has a member in ERROR leave, to join anew, unless mysqld may be about to be a member again.
func inError(f *Facts) (Decision, bool) {
	const what = "was expelled from the group, or could not go on in it; "
	if f.rejoinsByItself() {
		return tell(core.Running, core.MemberIsInError, what+"mysqld tries to join again by itself")
	}
	return tell(core.Running, core.MemberIsInError, what+"leaves it, to join again",
		LeaveGroup{Why: "the member is in ERROR", Within: leaveLimit, Returns: true})
}

// rejoinsByItself reports whether mysqld, in ERROR, may be about to be a member again. Whoever the group went on
// without must not come back before it is known what it holds. One that somebody made writable is read-only when
// it has left.
func (f *Facts) rejoinsByItself() bool {
	since := f.Now.Sub(f.Member.ErrorSince)
	return f.Cluster.Group.Rejoins && !f.Cluster.Group.Excluded && !f.Member.RejoinHeld && since < rejoinWait &&
		(f.Server.SuperReadOnly || since < closesWithin)
}

// holdsRejoin reports whether mysqld is to be kept from joining again by itself: where the Cluster does not want it,
// whatever mysqld was started with, and without a quorum. A human may have the group go on without this member;
// then it comes back only when it is known what it holds.
func (f *Facts) holdsRejoin(v core.GroupView) bool {
	return !f.Cluster.Group.Rejoins || !v.HasQuorum()
}

// hasNoPlace returns why there is no group that mysqld could join at this moment, "" when there is one. mysqld would
// try for a minute, and nobody can end that: where nobody is there, and where the group still sees the server that it
// was before it ended. What an instance holds is no measure where there is no group.
func (f *Facts) hasNoPlace(pos *Position) string {
	switch {
	case !pos.InGroup:
		return "waits for a group that it can join: " + pos.Instance +
			" was the primary, but is in no group with a quorum"
	case slices.Contains(pos.View, f.Server.UUID):
		return "waits until the group has expelled its membership from before mysqld ended: " + pos.Instance +
			" still sees it as a member"
	}
	return ""
}
