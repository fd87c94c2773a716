package agent

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// spacePatience is how long a commit may stand still on a full volume before it is told: longer than a
// slow volume needs for one.
const spacePatience = 10 * time.Second

// Commits is how far the commits of a server that takes writes have come.
type Commits struct {
	// LackSpace tells whether they wait for space on the volume. mysqld does not say so: it waits
	// within the commit, for ever, and answers all that needs none.
	LackSpace bool

	owned, executed gtid.Set
	since           time.Time
}

// Note takes over what the server said at a moment. Commits lack space when the same ones have been
// under way for a while, none has ended meanwhile, none waits for acknowledgements, and the volume is
// full. That lasts until one of them moves: mysqld tries once a minute whether there is space again.
func (c Commits) Note(s *core.Server, room *core.Room, at time.Time) Commits {
	switch {
	case s == nil || s.Owned.IsEmpty() || s.SemiSync.WaitSessions > 0:
		return Commits{}
	case !s.Owned.Equal(c.owned) || !s.Executed.Equal(c.executed):
		return Commits{owned: s.Owned, executed: s.Executed, since: at}
	}
	isFull := room != nil && room.Full
	c.LackSpace = c.LackSpace || isFull && at.Sub(c.since) >= spacePatience
	return c
}

// open is what is told of an instance that takes writes, or would.
func (f *Facts) open() (Decision, bool) {
	if f.Mysqld.LacksSpace {
		return tell(core.Running, core.InstanceDiskFull, "its volume is full, and commits wait for space: raise "+
			"spec.storage.size, or free space; they go on within a minute of that")
	}
	return tell(core.Running, "", "")
}
