package instance

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

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
			m.ender.letSessionsFinish(ctx, smartShutdown(m.object()))
		}
		m.ender.shutDown(ctx, proc)
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
		return began.Add(agent.StopLimit(limit))
	})
}

func smartShutdown(c *v1alpha1.Cluster) time.Duration {
	if c == nil || c.Spec.SmartShutdownTimeout == nil {
		return 0
	}
	return time.Duration(*c.Spec.SmartShutdownTimeout) * time.Second
}

// ender ends a mysqld that accepts no writes any more. It keeps nothing.
type ender struct {
	log      *slog.Logger
	sessions *sessions
	by       ending
	roles    func() *mysql.Server
}

// ending is what an ender asks of its manager.
type ending interface {
	// resetConnections closes those of the manager.
	resetConnections()
}

func newEnder(m *manager, s *sessions) *ender {
	return &ender{log: m.log, sessions: s, by: m, roles: func() *mysql.Server { return m.roles }}
}

// letSessionsFinish waits for the clients of a replica, as long as the user wishes.
func (e *ender) letSessionsFinish(ctx context.Context, wish time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wish)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		open, err := e.sessions.open(ctx)
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

// shutDown asks mysqld to end and kills it at the deadline.
func (e *ender) shutDown(ctx context.Context, proc *process) {
	began := time.Now()
	if e.mayBeAsked(ctx) {
		e.by.resetConnections() // mysqld waits two seconds for sessions to end
		proc.signal(syscall.SIGTERM)
	} else {
		e.log.Warn("the manager kills mysqld: if mysqld stopped by itself, it would report success to sessions whose " +
			"commits wait for acknowledgements")
		proc.signal(syscall.SIGKILL)
	}
	if why := awaitEnd(ctx, proc); why != "" {
		e.log.Warn("the manager kills mysqld: "+why, "after", time.Since(began).String())
		wait, cancel := context.WithTimeout(context.Background(), agent.StopMargin)
		defer cancel()
		if err := proc.kill(wait); err != nil {
			e.log.Error("cannot stop mysqld", "error", err)
		}
	}
	e.log.Info("mysqld has stopped", "after", time.Since(began).String())
}

// awaitEnd waits for a mysqld that was asked to end, and tells why it has to be killed; "" when
// it has ended.
func awaitEnd(ctx context.Context, proc *process) (why string) {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-proc.done:
			return ""
		case <-ctx.Done():
			return "it did not end in time"
		case <-look.C:
			if proc.dataRemoved() {
				return "its data directory was removed, and without its files it does not end by itself"
			}
		}
	}
}

// mayBeAsked closes what must be closed, and tells whether a polite end would
// acknowledge anything that nobody has.
func (e *ender) mayBeAsked(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := e.sessions.closeAll(ctx); err != nil {
		e.log.Warn("cannot close client sessions before mysqld stops", "error", err)
	}
	_, others := e.roles().StopOtherChannels(ctx)
	if err := errors.Join(e.roles().StopReplication(ctx), others); err != nil {
		e.log.Warn("cannot stop replication before mysqld stops", "error", err)
	}
	s, err := e.roles().SemiSync(ctx)
	return err == nil && s.WaitSessions == 0
}
