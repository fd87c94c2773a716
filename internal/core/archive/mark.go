package archive

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// Mark is the word of a primary that the archive was complete: all that it had acknowledged
// until a moment is archived. It stands for the time in which nothing is written, of which no
// part tells.
type Mark struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	Epoch   int64  `json:"epoch"`
	// ServerUUID is of the primary of the epoch.
	ServerUUID string `json:"serverUUID"`
	// Until is a moment by the clock of the primary; what it had executed a moment later is
	// Executed.
	Until    time.Time `json:"until"`
	Executed gtid.Set  `json:"executed"`
}

// markPause is the least time between two marks: each is a write to the store.
const markPause = time.Minute

// MarkIsDue tells whether to say anew that the archive is complete, last said at a moment or
// never.
func (p Pace) MarkIsDue(last, now time.Time) bool {
	return last.IsZero() || now.Sub(last) >= max(p.RPO, markPause)
}

// Completes tells whether a primary may say that the archive is complete: it has all that the
// server has executed.
func Completes(archived, executed gtid.Set) bool { return archived.Contains(executed) }

// vouches tells whether the mark counts for a line: it is of the primary with which the line
// ends, and a replay of it holds all that the mark tells of.
func (m *Mark) vouches(l line, replayed gtid.Set) bool {
	if m == nil || len(l.branches) == 0 {
		return false
	}
	b := l.branches[len(l.branches)-1]
	return m.Epoch == b.Epoch && m.Cluster == b.Cluster && m.ServerUUID == b.ServerUUID && replayed.Contains(m.Executed)
}
