package instance

import (
	"time"

	"cnmsql.co/internal/core"
)

// applySettles is how long an applier has to run, after it was hindered, to be believed to.
const applySettles = 2 * time.Second

// applying is how it goes with an applier that a copy of this server's data hinders.
type applying struct {
	// tried is when applying was last begun by itself.
	tried time.Time
	// hindered is the error with which it had stopped before; "" for none, or another.
	hindered string
}

// note has an applier that was hindered, and was just started again, count as stopped until it
// has run for a while: it may meet the same statement again at once, and whoever looks at the
// wrong moment would tell over and over that it goes, and that it does not.
func (a *applying) note(s *core.Server, now time.Time) {
	if s == nil || s.Replication == nil {
		a.hindered = ""
		return
	}
	r := s.Replication
	switch {
	case !r.SQLRunning && r.CopyHinders:
		a.hindered = r.SQLError
	case a.hindered != "" && r.SQLError == "" && now.Sub(a.tried) < applySettles:
		r.SQLRunning, r.SQLError, r.CopyHinders = false, a.hindered, true
	default:
		a.hindered = ""
	}
}
