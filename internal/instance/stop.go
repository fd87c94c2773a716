package instance

import (
	"context"
	"syscall"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
)

// stopMargin is kept of the grace period, to say goodbye.
const stopMargin = 5 * time.Second

// stopServer ends mysqld. Writes have stopped before it is asked to end, and the
// connections of sessions that wait for acknowledgements are closed: a server
// that shuts down tells them success for what no replica has.
func (m *manager) stopServer(a agent.StopServer) error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	m.update(func(s *state) { s.mysqld.stopRequested = proc })
	if a.Kill {
		m.update(func(s *state) { s.mysqld.failures++ })
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return proc.kill(ctx)
	}
	_, wrote := m.mayWrite()
	if err := m.stopWrites(); err != nil {
		return err
	}
	return m.activities.begin(agent.Stopping, func(ctx context.Context) error {
		ctx, cancel := context.WithDeadline(ctx, m.stopDeadline())
		defer cancel()
		if !wrote {
			m.letSessionsFinish(ctx)
		}
		m.shutDown(ctx, proc)
		return nil
	})
}

// stopDeadline is when mysqld is killed, a little before the kubelet would.
func (m *manager) stopDeadline() time.Time {
	return get(m, func(s *state) time.Time {
		limit := 30 * time.Second
		if s.cluster.view != nil {
			limit = s.cluster.view.MaxStop
		}
		began := s.terminating
		if began.IsZero() {
			began = time.Now()
		}
		return began.Add(max(limit-stopMargin, limit/2))
	})
}

// letSessionsFinish waits for the clients of a replica, as long as the user wishes.
func (m *manager) letSessionsFinish(ctx context.Context) {
	wish := get(m, func(s *state) time.Duration { return smartShutdown(s.cluster.object) })
	ctx, cancel := context.WithTimeout(ctx, wish)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		open, err := m.sessions.open(ctx)
		if err != nil || len(open) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func smartShutdown(c *v1alpha1.Cluster) time.Duration {
	if c == nil || c.Spec.SmartShutdownTimeout == nil {
		return 0
	}
	return time.Duration(*c.Spec.SmartShutdownTimeout) * time.Second
}

// shutDown asks mysqld to end and kills it at the deadline.
func (m *manager) shutDown(ctx context.Context, proc *process) {
	began := time.Now()
	if m.mayBeAsked(ctx) {
		m.resetConnections() // mysqld waits two seconds for sessions to end
		proc.signal(syscall.SIGTERM)
	} else {
		m.log.Warn("mysqld is killed: asked to end it would tell waiting sessions success")
		proc.signal(syscall.SIGKILL)
	}
	select {
	case <-proc.done:
	case <-ctx.Done():
		m.log.Warn("mysqld did not end in time and is killed", "after", time.Since(began).String())
		wait, cancel := context.WithTimeout(context.Background(), stopMargin)
		defer cancel()
		if err := proc.kill(wait); err != nil {
			m.log.Error("stopping mysqld", "error", err)
		}
	}
	m.log.Info("mysqld has stopped", "after", time.Since(began).String())
}

// mayBeAsked closes what must be closed, and tells whether a polite end would
// acknowledge anything that nobody has.
func (m *manager) mayBeAsked(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := m.sessions.closeAll(ctx); err != nil {
		m.log.Warn("closing client sessions before the end", "error", err)
	}
	if err := m.roles.StopReplication(ctx); err != nil {
		m.log.Warn("stopping replication before the end", "error", err)
	}
	s, err := m.roles.SemiSync(ctx)
	return err == nil && s.WaitSessions == 0
}
