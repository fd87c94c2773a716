package instance

import (
	"time"

	"cnmsql.co/internal/core"
)

// receiving is how far the receiving of a transaction has come, and since when it has not
// come on.
type receiving struct {
	upTo  string
	since time.Time
}

// note judges a replica that was cut off in the middle of a transaction. No heartbeats are
// sent then, so that mysqld cannot tell its silence from a long transaction; but of a long
// one there is always more, and of this one nothing comes any more.
func (r *receiving) note(s *core.Server, now time.Time) {
	if s == nil || s.Replication == nil || s.Replication.Queueing == "" || !s.Replication.IORunning {
		*r = receiving{}
		return
	}
	if r.upTo != s.Replication.Queueing {
		*r = receiving{upTo: s.Replication.Queueing, since: now}
	}
	s.Replication.Silent = s.Replication.Silent || now.Sub(r.since) >= core.SilentAfter
}
