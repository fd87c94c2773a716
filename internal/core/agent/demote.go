package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

const (
	// DemotePatience is how long running transactions may hold up the lock of a demotion
	// before their sessions are closed.
	DemotePatience = 100 * time.Millisecond
	// DemoteLook is how often it is looked whether they are gone.
	DemoteLook = 10 * time.Millisecond
	// demoteLimit is for a mysqld that answers, hungDemoteLimit for one that has not answered
	// the simplest question for seconds: it is asked once more, and no longer.
	demoteLimit     = 2 * time.Second
	hungDemoteLimit = 200 * time.Millisecond
)

// DemoteLimit is how long mysqld may take to refuse writes before it is killed.
func DemoteLimit(answers bool) time.Duration {
	if answers {
		return demoteLimit
	}
	return hungDemoteLimit
}

// AcksCannotCome reports whether sessions wait for acknowledgements which too few replicas are
// attached to give. They can neither be ended nor released honestly: mysqld is killed.
func AcksCannotCome(s core.SemiSync) bool { return s.WaitSessions > 0 && s.Clients < s.Acks }

// Writes is what a manager made of its mysqld.
type Writes struct {
	// May tells whether it may take writes. That is taken back only by a demotion that
	// was carried through.
	May bool
	// Epoch in which it is the primary; 0 if it was not promoted, or has to be again.
	Epoch int64
	// Follows names the external server that it follows as a primary, read-only; "" for one that takes writes.
	Follows string
}

// Found returns what holds, and whether the epoch has ended, once mysqld was found to be
// read-only, or not to be, while its manager was not changing that. That somebody else made it
// read-only does not close it for writes: sessions are open still, and what was prepared by XA
// can be committed by them. One that is read-only for all but administrators is no primary to
// clients, and no replica either: it may write.
func (w Writes) Found(superReadOnly, readOnly bool) (now Writes, ended bool) {
	if w.Follows != "" && w.Epoch != 0 {
		if superReadOnly {
			return w, false
		}
		return Writes{May: true}, true // somebody opened it: it is closed, and promoted again
	}
	if superReadOnly || readOnly && w.Epoch != 0 {
		return Writes{May: w.May}, w.Epoch != 0
	}
	return Writes{May: w.May || w.Epoch == 0, Epoch: w.Epoch}, false
}
