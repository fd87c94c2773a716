package instance

import (
	"context"
	"time"
)

// noteClosed notes since when this member could take writes, and is closed.
func (s *memberState) noteClosed(closed bool) {
	switch {
	case !closed:
		s.ClosedSince = time.Time{}
	case s.ClosedSince.IsZero():
		s.ClosedSince = time.Now()
	}
}

// closeForWrites has a secondary that somebody made writable refuse writes again. mysqld is not
// killed where it takes long, for its group needs it.
func (g *membership) closeForWrites(ctx context.Context) error {
	g.log.Warn("somebody made a secondary of the group writable; " +
		"what was written to it may have diverged from the primary's data")
	return g.sessions.refuseWrites(ctx)
}

func (g *membership) openForWrites(ctx context.Context) error {
	g.log.Warn("somebody made the primary of the group read-only; it takes writes again")
	return g.roles().AcceptWrites(ctx)
}
