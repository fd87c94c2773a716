package instance

import (
	"context"
	"fmt"
	"time"
)

// closeForWrites has a secondary that somebody made writable refuse writes again. mysqld is not
// killed where it takes long, for its group needs it.
func (g *membership) closeForWrites(ctx context.Context) error {
	g.log.Warn("somebody made a secondary of the group writable; " +
		"what was written to it may have diverged from the primary's data")
	return g.sessions.refuseWrites(ctx)
}

// openForWrites has the primary take writes again, if it still is that. What the decision rests on may be old:
// mysqld answers, and its status is not known anew while the question for it gets no answer.
func (g *membership) openForWrites(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	server, err := g.roles().MemberStatus(limited)
	if err != nil {
		return fmt.Errorf("looking whether this member still is the primary that somebody made read-only: %w", err)
	}
	if now := g.known(); !now.MayOpen(server) {
		g.log.Info("this member is left as it is: it takes writes by now, or must not take them any more")
		return nil
	}
	g.log.Warn("somebody made the primary of the group read-only; the manager makes it writable again")
	return g.roles().AcceptWrites(ctx)
}
