package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// askedFor is how long another instance must have been there to be asked before a primary takes
// writes again in its epoch.
const askedFor = 7 * time.Second

// checkNumbers fails the run when a primary takes writes again in its epoch, with another mysqld, and
// its disk has lost what another instance holds, which it could have asked: it gives the numbers again.
func (tr *truth) checkNumbers(s *mysqld) {
	before, epoch := tr.lastOpened, tr.lastEpoch
	tr.lastOpened, tr.lastEpoch = s, s.epoch
	if !tr.lied || before == nil || before == s || before.db != s.db || epoch != s.epoch {
		return
	}
	for _, other := range tr.w.servers() {
		lost := other.db.holds().Of(s.db.uuid).Subtract(s.db.executed)
		switch {
		case other == s || lost.IsEmpty():
		case tr.couldBeAsked(s, other):
			tr.w.fail("numbers", "%s takes writes again in epoch %d, and has lost %s, which %s holds",
				s.manager.me, s.epoch, lost, other.manager.me)
		default:
			tr.w.cover.count("finding", "a primary that has lost writes opens again, and could not ask")
		}
	}
}

// couldBeAsked reports whether another server's manager has been there for long enough, and reached, and did
// not fail to answer when it was asked.
func (tr *truth) couldBeAsked(s, other *mysqld) bool {
	w, m := tr.w, other.manager
	c := w.api.cluster().status
	isOld := func(t time.Duration) bool { return t+askedFor < w.now }
	steady := func(i int) bool { return isOld(w.machines[i].changed) && isOld(w.machines[i].pausedUntil) }
	slow := w.link(s.machine, other.machine).slow + w.link(other.machine, s.machine).slow
	return !s.manager.unheard[m.me] && other.answers() && !m.dead && !other.volume.stalled && m.accepted &&
		isOld(m.started) && m.data == core.DataPopulated && isOld(other.resumed) && w.managerOf(m.me) == m &&
		slow < 100*time.Millisecond && w.connected(s.machine, other.machine) && steady(s.machine) &&
		steady(other.machine) && slices.Contains(c.InstanceNames, m.me) && !slices.Contains(c.Diverged, m.me)
}
