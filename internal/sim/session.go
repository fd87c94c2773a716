package sim

import "slices"

// session is a client's connection to a server.
type session struct {
	s      *mysqld
	client *client
	// busy: a statement is being executed. gone: the connection is closed; a
	// session that waits for acknowledgements is still there.
	busy, gone bool
}

// answers to a write.
type answer int

const (
	writeDone answer = iota
	writeRefused
	connectionLost
)

// answer tells the client. What was promised counts from the moment it reads it.
func (c *session) answer(a answer, t *txn) {
	if c.gone || c.client == nil {
		return
	}
	s := c.s
	var said *saying
	if a == writeDone {
		said = s.w.truth.saying(s, t)
	}
	s.w.send(s.machine, clientMachine, func() {
		if c.client.session == c {
			c.client.answered(a, said)
		}
	})
}

// breakOff resets the connection. What the client was told before stays told.
func (c *session) breakOff() {
	if c.gone {
		return
	}
	c.answer(connectionLost, nil)
	c.gone, c.busy = true, false
}

// waits reports whether the session's commit waits for acknowledgements, or for space.
func (c *session) waits() bool {
	return slices.Contains(c.s.lacking, c) ||
		slices.ContainsFunc(c.s.semi.waiting, func(w *commit) bool { return w.session == c })
}

func (s *mysqld) drop(c *session) {
	if i := slices.Index(s.sessions, c); i >= 0 {
		s.sessions = slices.Delete(s.sessions, i, i+1)
	}
}

// kill closes connections. A session that waits for acknowledgements stays, and
// with it its commit; nobody reads success from it any more. One that waits for space may fail then, and
// mysqld with it.
func (s *mysqld) kill(sessions []*session) {
	for _, c := range sessions {
		if c.busy {
			s.executing--
		}
		c.breakOff()
		if !c.waits() {
			s.drop(c)
		}
	}
	if len(s.lacking) > 0 && s.w.oneIn(2) {
		s.end(true)
		return
	}
	s.tryReadOnly()
}

// hangUp is the client's end of a connection.
func (s *mysqld) hangUp(c *session) {
	if c.busy {
		c.busy = false
		s.executing--
		s.tryReadOnly()
	}
	c.gone = true
	if !c.waits() {
		s.drop(c)
	}
}
