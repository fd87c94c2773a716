package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// FollowGrace is how long a replica stays ready without a source: while a primary is
// replaced, its followers still answer reads.
const FollowGrace = 10 * time.Second

// Readiness remembers when replication was last seen healthy.
type Readiness struct{ healthy time.Time }

// NotReady says why clients should not be sent to an instance; "" if they may be. What a
// topology asks beside that is asked after it.
func (f *Facts) NotReady(d Decision) string {
	switch {
	case f.Server == nil:
		return "mysqld does not answer"
	case f.Data != core.DataPopulated:
		return "there is no data yet"
	case !d.Errant.IsEmpty():
		return "diverged"
	}
	return ""
}

// Judge notes whether a replica replicates, and says why it should not be asked; "" if it may be, and for
// a primary.
func (r *Readiness) Judge(f *Facts, d Decision) string {
	if f.WritableEpoch != 0 {
		return ""
	}
	c := f.Server.Replication
	isPromoting := f.Permitted() && d.Reason == core.InstancePromoting
	if c != nil && c.SQLRunning && c.IORunning || c == nil && (f.GivesData() || isPromoting) {
		r.healthy = f.Now
	}
	if c != nil && c.SQLError != "" && !c.SQLRunning {
		return "the applier has stopped: " + c.SQLError
	}
	if f.Now.Sub(r.healthy) > FollowGrace {
		return "it is not the primary and does not replicate"
	}
	return ""
}
