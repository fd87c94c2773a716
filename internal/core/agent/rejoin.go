package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// A member that was expelled is in ERROR, and read-only. mysqld makes one attempt at once to join again by itself,
// which takes 2 s to 4 s if it succeeds; to leave, and to join anew, takes 10 s.

const (
	// rejoinWait is how long mysqld has to join again by itself. Its next attempt is five minutes later.
	rejoinWait = 5 * time.Second
	// closesWithin is how long mysqld has to make itself read-only once it is in ERROR, which it does a moment
	// later. It refuses all commits meanwhile.
	closesWithin = time.Second
	// leaveLimit is how long an expelled member may take to leave the group. Nobody waits for it
	// and it takes no writes; STOP GROUP_REPLICATION was seen to hang for more than two minutes.
	leaveLimit = 30 * time.Second
)

// inError has a member in ERROR leave, to join anew, unless mysqld may be about to be a member again.
func inError(f *Facts) (Decision, bool) {
	const what = "was expelled from the group, or could not go on in it; "
	if f.rejoinsByItself() {
		return tell(core.Running, core.MemberIsInError, what+"mysqld tries to join again by itself")
	}
	return tell(core.Running, core.MemberIsInError, what+"leaves it, to join again",
		LeaveGroup{Why: "the member is in ERROR", Within: leaveLimit})
}

// rejoinsByItself reports whether mysqld, in ERROR, may be about to be a member again. Whoever the group went on
// without must not come back before it is known what it holds. One that somebody made writable is read-only when
// it has left.
func (f *Facts) rejoinsByItself() bool {
	since := f.Now.Sub(f.Member.ErrorSince)
	return f.Cluster.Group.Rejoins && !f.Cluster.Group.Excluded && !f.Member.RejoinHeld && since < rejoinWait &&
		(f.Server.SuperReadOnly || since < closesWithin)
}
