package agent

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Position is what the primary holds, asked for after what this instance holds
// was read.
type Position struct {
	Instance string
	Epoch    int64
	At       time.Time
	// Mine was executed here before the primary was asked.
	Mine gtid.Set
	// Executed and Purged are the primary's, UUID its server's. Waiting: commits
	// of its own waited for acknowledgements, which are in no position of it yet.
	Executed, Purged gtid.Set
	UUID             string
	Waiting          bool
	// Logged is what is in its binary log; WritableEpoch is the epoch in which it took writes.
	Logged        gtid.Set
	WritableEpoch int64
	// SeenEpoch is the highest epoch that the primary has seen.
	SeenEpoch int64
	// InGroup tells whether it is an online member of a group that has its quorum. Then what others
	// hold is no measure, nor is there anything to join.
	InGroup bool
	// View are the UUIDs of the servers that it sees in its group, in whatever state.
	View []string
	// LackingSince is since when each answer has lacked something of Mine; zero when this
	// one lacks nothing. See After.
	LackingSince time.Time
}

// AskRetry is the pause before an instance that did not answer is asked again.
const AskRetry = 400 * time.Millisecond

// Answered is what an instance has learned of a primary that reports r. What it holds itself,
// mine, was read before it asked, at a moment: read the other way around, what is replicated
// in between would look errant.
func (a AskPrimary) Answered(r core.Report, mine gtid.Set, asked time.Time) *Position {
	p := &Position{Instance: a.Instance, Epoch: a.Epoch, At: asked, Mine: mine, Executed: r.Server.Holds(),
		Purged: r.Server.Purged,
		UUID:   r.Server.UUID, Waiting: r.Server.SemiSync.WaitSessions > 0, SeenEpoch: r.SeenEpoch,
		Logged: r.Server.Logged(), WritableEpoch: r.WritableEpoch,
		InGroup: r.Server.HasView() && r.Server.Group.IsQuorate()}
	for _, m := range r.Server.View().Members {
		p.View = append(p.View, m.UUID)
	}
	return p
}

// After notes what was known before. A transaction of a group may be executed here before
// it is on the primary, for a moment. What was answered long ago, or while the primary had
// no quorum, does not count.
func (p *Position) After(before *Position) {
	lacks := func(p *Position) bool { return p.InGroup && !p.Executed.Contains(p.Mine) }
	switch {
	case !lacks(p):
		p.LackingSince = time.Time{}
	case before != nil && before.Instance == p.Instance && before.Epoch == p.Epoch && lacks(before) &&
		p.At.Sub(before.At) < positionLife:
		p.LackingSince = before.LackingSince
	default:
		p.LackingSince = p.At
	}
}
