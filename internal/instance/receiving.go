package instance

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// receiving is how far a replica's receiving has come, and since when it has not come on.
type receiving struct {
	upTo  string
	since time.Time
}

// note tells a replica's silence where mysqld does not: in the middle of a transaction, and on
// a connection that never had a heartbeat, for the source always had something to send. A
// source that lives sends either; of one that was cut off, nothing comes any more. Who waits for
// space does not listen.
func (r *receiving) note(s *core.Server, now time.Time) {
	if s == nil || s.Replication == nil || !s.Replication.IORunning || s.Replication.NoSpace {
		*r = receiving{}
		return
	}
	if r.upTo != s.Replication.Received || r.since.IsZero() {
		*r = receiving{upTo: s.Replication.Received, since: now}
	}
	s.Replication.Silent = s.Replication.Silent || now.Sub(r.since) >= core.SilentAfter
}

// untilLook is how long to wait for the next look: not beyond the moment in which the silence
// has lasted long enough to be told.
func (r *receiving) untilLook(now time.Time) time.Duration {
	if r.since.IsZero() {
		return agent.PollEvery
	}
	if left := r.since.Add(core.SilentAfter).Sub(now); left > 0 {
		return min(left, agent.PollEvery)
	}
	return agent.PollEvery
}
