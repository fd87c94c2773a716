package instance

import (
	"context"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// stopWrites returns when mysqld accepts no write any more and nobody can read
// success for a commit from it: it refuses writes and the sessions that were
// open are gone, or it was killed. Sessions that wait for acknowledgements can
// neither be ended nor released honestly; then it is killed.
func (m *manager) stopWrites() error {
	proc, may := m.mayWrite()
	if !may {
		return m.stopFollowing(proc)
	}
	began := time.Now()
	m.update(func(s *state) { s.mysqld.stopsWrites = true })
	answers := get(m, func(s *state) bool { return s.answers(m.disk.stalls()) })
	ctx, cancel := context.WithTimeout(context.Background(), agent.DemoteLimit(answers))
	defer cancel()
	err := m.sessions.refuseWrites(ctx)
	if err == nil { // whose appliers would go on behind the final position
		err = m.stopOtherChannels(ctx)
	}
	if err != nil {
		m.log.Warn("mysqld did not become read-only; the manager kills it", "error", err)
		wait, stop := context.WithTimeout(context.Background(), 10*time.Second)
		defer stop()
		m.update(func(s *state) { s.mysqld.stopRequested = proc })
		if err := proc.kill(wait); err != nil {
			return err
		}
	}
	var final *core.Server
	var at time.Time
	if err == nil {
		final, at = m.readFinal()
	}
	// The promise is told from here on. What was known of the server before must not be
	// told with it.
	m.update(func(s *state) {
		s.mysqld.takesNoWrites()
		s.status.server, s.status.at = final, at
	})
	m.log.Info("mysqld accepts no more writes", "after", time.Since(began).String(), "killed", err != nil)
	if err == nil {
		m.acks.awaitAcksNoLonger()
	}
	poke(m.leases.wake)
	return nil
}

// stopFollowing ends the role of a primary that takes no writes, as one does that follows an external server.
func (m *manager) stopFollowing(proc *process) error {
	if server := m.followed().as; server != "" && proc.running() {
		if err := m.follower.leave(server, proc); err != nil {
			return err
		}
	}
	m.update(func(s *state) { s.mysqld.writable, s.mysqld.follows, s.mysqld.sessions = 0, "", 0 })
	poke(m.leases.wake)
	return nil
}

// stopOtherChannels stops what somebody has this server replicate from elsewhere: read-only as it is,
// it would write what it receives, and diverge from the primary.
func (m *manager) stopOtherChannels(ctx context.Context) error {
	stopped, err := m.roles.StopOtherChannels(ctx)
	if len(stopped) > 0 {
		m.log.Warn("replication channels that were made by hand are stopped, because only a primary may receive from "+
			"other servers; their settings are kept: make them on the next primary, and remove them here with RESET "+
			"REPLICA ALL FOR CHANNEL", "channels", stopped)
	}
	return err
}

func (m *manager) mayWrite() (*process, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.st.mysqld.proc, m.st.mysqld.proc.running() && m.st.mysqld.mayWrite
}

// readFinal asks the server, which accepts no writes by now, for what it holds in the
// end, and when that was asked: a successor must have all of it. It is nil when there is
// no answer.
func (m *manager) readFinal() (*core.Server, time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	at := time.Now()
	server, err := m.topology().status(ctx, m.roles)
	if err != nil {
		m.log.Warn("cannot read the final position yet", "error", err)
	}
	return server, at
}
