package instance

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

const (
	pollInterval = 500 * time.Millisecond
	// newsInterval is between two looks while a group changes, for newsFor after
	// it said something in the error log: its tables follow a little later.
	newsInterval = 20 * time.Millisecond
	newsFor      = time.Second
	// steadyAfter is how long mysqld must have run for its end to be no failure to
	// start: one that served meanwhile is started again without a pause.
	steadyAfter = 10 * time.Second
)

// keepPolling asks mysqld how it is.
func (m *manager) keepPolling(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	var until time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.news:
			until = time.Now().Add(newsFor)
			tick.Reset(newsInterval)
		case <-tick.C:
			if !until.IsZero() && time.Now().After(until) {
				until = time.Time{}
				tick.Reset(pollInterval)
			}
		}
		m.poll(ctx)
		poke(m.wake)
	}
}

// poll asks mysqld once, on connections of its own.
func (m *manager) poll(ctx context.Context) {
	m.polling.Lock()
	defer m.polling.Unlock()
	proc := get(m, func(s *state) *process { return s.proc })
	if !proc.running() {
		return
	}
	n := get(m, func(s *state) int { return s.writableN })
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	at := time.Now()
	if err := m.health.Ping(ctx); err != nil {
		m.noteSilence(proc, err)
		return
	}
	server, err := m.topology().status(ctx, m.health)
	m.noteAnswer(proc, at, server, err, n)
}

// noteSilence: whether mysqld hangs is asked with the simplest of questions; a
// status may be slow for a reason.
func (m *manager) noteSilence(proc *process, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	if s.proc != proc || !proc.running() {
		return
	}
	s.loginRefused = mysql.IsAccessDenied(err)
	s.ending = s.accepted && (s.ending || mysql.IsShutdown(err) || errors.Is(err, fs.ErrNotExist))
	if mysql.IsShutdown(err) && s.copied != nil {
		s.copied()
	}
	if mysql.IsAnswer(err) {
		s.answered, s.misses = time.Now(), 0
	} else if s.misses++; s.misses == 3 && s.accepted {
		m.log.Warn("mysqld does not answer", "error", err)
	}
	m.announce()
}

func (m *manager) noteAnswer(proc *process, at time.Time, server *core.Server, err error, writableN int) {
	topology := m.topology()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	if s.proc != proc || !proc.running() {
		return
	}
	s.misses, s.answered, s.loginRefused, s.ending = 0, at, false, false
	if err != nil {
		m.log.Warn("mysqld answers, but not the question for its status", "error", err)
		return
	}
	if !s.accepted {
		s.accepted = true
		m.log.Info("mysqld accepts connections", "after", time.Since(proc.started).String())
	}
	if time.Since(proc.started) > steadyAfter {
		s.failures = 0
	}
	if s.writableN != writableN {
		return // of before a change of role: how commits wait is another by now
	}
	s.server, s.serverAt = server, at
	s.lagging = agent.Lags(s.lagging, server.Replication, readLag(s.cluster))
	topology.noteRole(server)
	m.announce()
}

// readLag is the user's bound; 0 without one.
func readLag(c *v1alpha1.Cluster) time.Duration {
	if c == nil || c.Spec.ReadRouting == nil || c.Spec.ReadRouting.MaxReplicationLag == nil {
		return 0
	}
	return c.Spec.ReadRouting.MaxReplicationLag.Duration
}

// noteWritable holds what the server says against what we made of it.
func (m *manager) noteWritable(server *core.Server) {
	s := &m.st
	switch {
	case s.activity != "":
	case server.SuperReadOnly && s.writable != 0:
		m.log.Warn("somebody made the primary read-only; it is promoted again", "epoch", s.writable)
		s.writable = 0
		s.mayWrite = false
	case !server.SuperReadOnly && s.writable == 0:
		s.mayWrite = true
	}
}
