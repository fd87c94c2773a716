package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// Timings of an activity that makes data.
const (
	// StuckTold is after how long without progress it is said to make none, and StuckLimit when it is
	// broken off. That is longer than whatever it may have to wait for: a copy for a lock of its donor's,
	// or until its files are written back, the first data for the statements of bootstrap.initdb.
	StuckTold  = time.Minute
	StuckLimit = 15 * time.Minute
	// StuckPause is how long after that the next attempt begins, where nobody else orders it.
	StuckPause = 30 * time.Second
)

// MakesData reports whether the activity fills the volume. What it has made is of no use to anybody
// until it ends; and it may go on for days, as long as it gets on.
func (a Activity) MakesData() bool { return a == Initializing || a == Restoring || a == Cloning }

// breakOffStuck ends an activity that makes data when it does not get on, and mysqld with it: it has
// no other end, and every other rule waits for that. What it leaves behind is scratch data or none,
// and it begins anew. The others end by themselves: mysqld is killed when it does not stop, and
// joining and leaving a group have their limits.
func breakOffStuck(f *Facts) (Decision, bool) {
	if !f.Activity.MakesData() {
		return pass()
	}
	state, _, doing := f.doing()
	switch {
	case f.isSilent() && f.Now.Sub(f.Mysqld.AnsweredAt) >= core.HungLimit:
		why := fmt.Sprintf("%s was aborted: mysqld had not answered for %s, and was killed", doing, core.HungLimit)
		return tell(state, core.InstanceNoAnswer, why, Abort{Reason: core.InstanceNoAnswer, Why: why})
	case f.standsStill(f.stuckLimit()):
		why := fmt.Sprintf("%s was aborted: it made no progress for %s", doing, f.stuckLimit())
		return tell(state, core.InstanceNoProgress, why, Abort{Reason: core.InstanceNoProgress, Why: why})
	}
	return pass()
}

// isSilent reports whether mysqld answers nobody while data are made. One that shuts down has as long as
// it gets on: it has all that was made to write.
func (f *Facts) isSilent() bool { return f.Mysqld.Up && f.hangs() && !f.Mysqld.Ending }

// standsStill reports whether the activity has not got on for so long; false where nobody looks.
func (f *Facts) standsStill(long time.Duration) bool {
	return !f.MovedAt.IsZero() && f.Now.Sub(f.MovedAt) >= long
}

// stuckLimit is StuckLimit, but where mysqld recovers what was restored: it has its time for that.
func (f *Facts) stuckLimit() time.Duration {
	if f.Activity == Restoring && f.Mysqld.Up && !f.Mysqld.Accepted && f.Cluster != nil {
		return max(StuckLimit, f.Cluster.MaxStart)
	}
	return StuckLimit
}

// letActivityGoOn waits until what goes on beside the decisions has ended.
func letActivityGoOn(f *Facts) (Decision, bool) {
	if f.Activity == NoActivity {
		return pass()
	}
	state, reason, doing := f.doing()
	if f.Activity.MakesData() && f.standsStill(StuckTold) {
		return tell(state, core.InstanceNoProgress, fmt.Sprintf("%s: no progress for more than %s; after %s without "+
			"progress, the manager aborts it and begins again", doing, StuckTold, f.stuckLimit()))
	}
	return tell(state, reason, doing)
}

// What an instance says while the first data come from elsewhere.
const (
	restoringBackup = "restoring the backup"
	copyingServer   = "copying the data of the external server"
)

// doing is what the activity is told as.
func (f *Facts) doing() (core.State, core.Reason, string) {
	switch f.Activity {
	case Initializing:
		return core.Initializing, "", "making a data directory"
	case Restoring:
		if f.Cluster != nil && f.Cluster.FirstData == core.OriginImported {
			return core.Restoring, "", copyingServer
		}
		return core.Restoring, "", restoringBackup
	case Cloning:
		return core.Cloning, "", "copying the data of " + f.Donor
	case Joining:
		return core.Running, core.MemberJoining, "joins the group"
	case Bootstrapping:
		reason, doing := f.makesGroup(f.isToReboot())
		return core.Running, reason, doing
	case Leaving:
		return core.Running, core.MemberLeaving, "leaves the group"
	}
	return core.Running, core.InstanceStopping, "mysqld is being stopped"
}
