package sim

import (
	"slices"
	"time"
)

// semiSync is both sides of semi-synchronous replication, with AFTER_SYNC.
type semiSync struct {
	enabled, active bool
	acks            int
	timeout         time.Duration
	waiting         []*commit
	// acked is how far each replica has acknowledged, by its database.
	acked map[*database]int
	// give: as a replica, acknowledge; it counts from the next connection on.
	give bool
}

// commit is a session that waits for acknowledgements.
type commit struct {
	t       *txn
	pos     int
	session *session
}

// execute runs one write of a session.
func (s *mysqld) execute(c *session, took time.Duration) {
	switch {
	case c.gone:
	case s.superReadOnly:
		c.answer(writeRefused, nil)
	case len(s.readOnlyAsked) > 0:
		s.blocked = append(s.blocked, func() { s.execute(c, took) })
	default:
		s.executing++
		c.busy = true
		s.at(took, func() {
			if !c.busy {
				return // it was killed and rolled back
			}
			c.busy = false
			s.executing--
			s.commit(c)
		})
	}
}

// commit writes the binary log, and goes on when enough replicas have it.
func (s *mysqld) commit(c *session) {
	if s.waitForSpace(c) {
		return
	}
	if s.volume.full || s.volume.detached {
		s.end(true)
		return
	}
	t := s.db.append()
	s.w.truth.written(s, t)
	if !s.semi.enabled || !s.semi.active || s.semi.timeout == 0 {
		s.finish(&commit{t: t, session: c})
		s.changed()
		s.pump()
		s.tryReadOnly()
		return
	}
	wait := &commit{t: t, pos: s.db.end(), session: c}
	s.semi.waiting = append(s.semi.waiting, wait)
	s.changed()
	if s.semi.timeout < time.Hour {
		s.at(s.semi.timeout, func() {
			if slices.Contains(s.semi.waiting, wait) {
				s.w.cover.count("mysqld", "fell back to asynchronous")
				s.semi.active = false
				s.releaseAll()
			}
		})
	}
	s.pump()
}

// finish commits in the engine and tells the client.
func (s *mysqld) finish(c *commit) {
	s.db.commit(c.t)
	if c.session != nil {
		c.session.answer(writeDone, c.t)
	}
}

// releaseAll lets every waiting commit go on as if it had been acknowledged.
func (s *mysqld) releaseAll() { s.release(func(*commit) bool { return true }) }

func (s *mysqld) release(may func(*commit) bool) {
	all := s.semi.waiting
	s.semi.waiting = nil
	for _, c := range all {
		if !may(c) {
			s.semi.waiting = append(s.semi.waiting, c)
			continue
		}
		s.finish(c)
		if c.session != nil && c.session.gone {
			s.drop(c.session)
		}
	}
	if len(s.semi.waiting) != len(all) {
		s.changed()
		s.tryReadOnly()
	}
}

// acknowledged notes that a replica has all up to pos in its relay log.
func (s *mysqld) acknowledged(replica *database, pos int) {
	if s.semi.acked == nil {
		s.semi.acked = map[*database]int{}
	}
	s.w.truth.ackGiven(s, replica)
	s.semi.acked[replica] = max(s.semi.acked[replica], pos)
	s.judgeAcks()
}

func (s *mysqld) judgeAcks() {
	if !s.semi.enabled {
		return
	}
	if !s.semi.active && s.count(s.db.end()) >= s.semi.acks {
		s.semi.active = true
		s.changed()
	}
	s.release(func(c *commit) bool { return s.count(c.pos) >= s.semi.acks })
}

func (s *mysqld) count(pos int) int {
	n := 0
	for _, p := range s.semi.acked {
		if p >= pos {
			n++
		}
	}
	return n
}

// requireAcks sets the number; 0 turns the feature off, which tells every waiting
// session success.
func (s *mysqld) requireAcks(acks int, timeout time.Duration) {
	if acks <= 0 {
		s.semi.enabled, s.semi.active = false, false
		s.releaseAll()
		s.changed()
		return
	}
	s.semi.timeout, s.semi.acks = timeout, acks
	if !s.semi.enabled {
		s.semi.enabled, s.semi.active = true, true
	}
	s.judgeAcks()
	s.changed()
}

func (s *mysqld) semiClients() int {
	if !s.semi.enabled {
		return 0
	}
	n := 0
	for _, st := range s.sources {
		if st.semi {
			n++
		}
	}
	return n
}
