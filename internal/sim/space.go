package sim

import (
	"fmt"
	"time"

	"cnmsql.co/internal/gtid"
)

// spaceRetry is how often mysqld looks whether there is space again for what waits for it.
const spaceRetry = time.Minute

// lacksSpace reports whether what mysqld writes waits for space, for ever. Otherwise it ends where a
// volume is full.
func (v *volume) lacksSpace() bool { return v.full && v.waits && !v.detached }

// fill fills the volume, or gives it space again, which whoever measures it sees.
func (w *world) fill(v *volume, full, waits bool) {
	v.full, v.waits = full, waits
	if s := w.serverOf(v.instance); s != nil && s.volume == v {
		s.changed()
	}
}

// room is what the manager measures of it.
func (v *volume) room() (free, size uint64) {
	const all = 10 << 30
	if v.full {
		return 1 << 20, all
	}
	return all / 2, all
}

// waitForSpace has the commit of a session wait within it, and those that come behind it. It reports
// whether it waits.
func (s *mysqld) waitForSpace(c *session) bool {
	if len(s.lacking) == 0 && !s.volume.lacksSpace() {
		return false
	}
	s.lacking = append(s.lacking, c)
	if len(s.lacking) == 1 {
		s.w.cover.count("mysqld", "a commit waits for space")
		s.w.tell("a commit on %s waits for space", s.manager.me)
		s.at(spaceRetry, s.retrySpace)
		s.changed()
	}
	return true
}

// retrySpace lets the commits go on once there is space.
func (s *mysqld) retrySpace() {
	if s.volume.lacksSpace() {
		s.at(spaceRetry, s.retrySpace)
		return
	}
	all := s.lacking
	s.lacking = nil
	for _, c := range all {
		if s.dead {
			return
		}
		if s.commit(c); c.gone && !c.waits() {
			s.drop(c)
		}
	}
	s.changed()
	s.tryReadOnly()
}

// lackingGTIDs is the number that the first of them has already.
func (s *mysqld) lackingGTIDs() gtid.Set {
	if len(s.lacking) == 0 {
		return gtid.Set{}
	}
	return gtid.MustParse(fmt.Sprintf("%s:%d", s.db.uuid, s.db.next))
}

// waitForSpace has what arrived wait until it can be written to the relay log. It reports whether it waits.
func (st *stream) waitForSpace(batch []*txn, upTo int) bool {
	if !st.to.volume.lacksSpace() {
		return false
	}
	io := st.to.io
	io.noSpace, st.sending = true, true
	st.w.cover.count("mysqld", "a receiver waits for space")
	st.to.changed()
	st.to.at(spaceRetry, func() {
		st.sending = false
		io.noSpace = io.noSpace && (!io.on || st.to.volume.lacksSpace())
		st.to.changed()
		st.deliver(batch, upTo)
	})
	return true
}
