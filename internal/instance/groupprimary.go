package instance

import (
	"context"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/declared"
)

// beginHandingOver reports whether the group may be asked for another primary, and whom it is
// being asked for: one call lasts until the group has answered it.
func (g *membership) beginHandingOver(uuid string) (to string, begins bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := &g.st
	if begins = s.HandingTo == ""; begins {
		s.HandingTo = uuid
	}
	return s.HandingTo, begins
}

// orderGroupPrimary asks the group for another primary. It goes on when the caller
// has gone: transactions in progress are waited for, so many seconds at most; 0 for as long as
// they take.
func (g *membership) orderGroupPrimary(uuid string, within int) error {
	if to, begins := g.beginHandingOver(uuid); !begins && to != uuid {
		return refusal(core.OrderGroupRefused, "the group is still being asked to make the server %s primary, "+
			"and waits for transactions in progress", to)
	} else if !begins {
		return nil
	}
	limit := declared.SwitchoverLimit(&g.by.object().Spec)
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err := g.metrics().SetGroupPrimary(ctx, uuid, within)
		if err != nil {
			g.log.Warn("the group did not make another member primary", "error", err)
		}
		g.change(func(s *memberState) { s.HandingTo = "" })
		g.by.poll(ctx)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			return refusal(core.OrderGroupRefused, "%v", err)
		}
	case <-time.After(time.Second):
	}
	return nil
}
