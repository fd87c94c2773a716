package instance

import (
	"cmp"
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
func (m *manager) poll(ctx context.Context) { m.pollSince(ctx, time.Now()) }

// pollSince asks mysqld unless somebody else has, and had an answer, since a moment: of
// many who ask for a status at once, the first two have mysqld asked.
func (m *manager) pollSince(ctx context.Context, since time.Time) {
	m.polling.Lock()
	defer m.polling.Unlock()
	if get(m, func(s *state) bool { return s.proc.running() && s.server != nil && s.serverAt.After(since) }) {
		return
	}
	proc := get(m, func(s *state) *process { return s.proc })
	if !proc.running() {
		return
	}
	n := get(m, func(s *state) int { return s.writableN })
	at := time.Now()
	if err := m.ping(ctx); err != nil {
		m.noteSilence(proc, err)
		return
	}
	promised := m.promised()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	server, err := m.askStatus(ctx)
	if server != nil {
		server.SemiSync.Order, server.SemiSync.OrderEpoch = promised.Order, promised.Epoch
	}
	m.noteAnswer(proc, at, server, err, n)
}

func (m *manager) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agent.AnswerLimit)
	defer cancel()
	return m.pulse.Ping(ctx)
}

// askStatus: while a session of the primary's that changes an account waits for replicas,
// only what needs no lock of accounts can be asked. It is not tried whether more can be:
// each question would leave a session behind.
func (m *manager) askStatus(ctx context.Context) (*core.Server, error) {
	var asked error
	if !get(m, func(s *state) bool { return s.locksAccounts }) {
		server, err := m.topology().status(ctx, m.health)
		if err == nil || mysql.IsAnswer(err) || get(m, func(s *state) int64 { return s.writable }) == 0 {
			return server, err
		}
		asked = err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	server, err := m.pulse.WaitingStatus(ctx)
	if err != nil {
		return nil, errors.Join(asked, err)
	}
	waits := server.SemiSync.WaitSessions > 0
	m.update(func(s *state) {
		if waits && !s.locksAccounts {
			m.log.Warn("a statement that changes an account waits for acknowledgements: nobody can log in until replicas acknowledge it")
		}
		s.locksAccounts = waits
	})
	server.SemiSync.LocksAccounts = waits
	if !waits {
		return nil, cmp.Or(asked, errors.New("the sessions that waited for acknowledgements are gone; the status is asked for again"))
	}
	return server, nil
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
	s.noteRefused(mysql.IsAccessDenied(err))
	if s.refusedSince != (time.Time{}) {
		poke(m.accountsWake)
	}
	s.ending = s.accepted && (s.ending || mysql.IsShutdown(err) || errors.Is(err, fs.ErrNotExist))
	if mysql.IsShutdown(err) && s.copied != nil {
		s.copied()
	}
	if mysql.IsAnswer(err) {
		s.answered, s.misses = time.Now(), 0
	} else if s.misses++; s.misses == agent.UnansweredLimit && s.accepted {
		m.log.Warn("mysqld does not answer", "error", err)
	}
	m.announce()
}

// refusedPatience is how long the primary's manager may take to restore its own account.
const refusedPatience = 5 * time.Second

func (s *state) noteRefused(refused bool) {
	switch {
	case !refused:
		s.loginRefused, s.refusedSince = false, time.Time{}
	case s.refusedSince.IsZero():
		s.refusedSince = time.Now()
	}
	s.loginRefused = refused && (s.writable == 0 || time.Since(s.refusedSince) >= refusedPatience)
}

func (m *manager) noteAnswer(proc *process, at time.Time, server *core.Server, err error, writableN int) {
	topology := m.topology()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	if s.proc != proc || !proc.running() {
		return
	}
	s.misses, s.answered, s.ending = 0, at, false
	s.noteRefused(false)
	if err != nil {
		m.log.Warn("mysqld answers, but not the question for its status", "error", err)
		return
	}
	if !s.accepted {
		s.accepted = true
		m.dropInitFile()
		m.log.Info("mysqld accepts connections", "after", time.Since(proc.started).String())
	}
	if time.Since(proc.started) > agent.SteadyAfter {
		s.failures = 0
	}
	if s.writableN != writableN {
		return // of before a change of role: how commits wait is another by now
	}
	s.receiving.note(server, at)
	s.server, s.serverAt = server, at
	s.lagging = agent.Lags(s.lagging, server, readLag(s.cluster))
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
