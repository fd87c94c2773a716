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
