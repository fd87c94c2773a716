package instance

import (
	"context"
	"errors"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// namedError is an error with a name and what to do about it.
type namedError struct {
	core.Problem
	again time.Duration
}

func (h *namedError) Error() string { return h.String() }

// setProblem remembers why mysqld could not be started, and when to try again;
// a changed Cluster is tried at once.
func (m *manager) setProblem(err error) {
	p := &agent.Problem{Problem: core.Problem{Reason: core.InstanceStartFailed, Message: err.Error()}}
	again := agent.StartRetry
	var h *namedError
	var user *mysql.UserStatementError
	switch {
	case errors.As(err, &h):
		p.Problem, again = h.Problem, h.again
	case errors.As(err, &user):
		p.Reason, again = core.InstancePostInitSQLFailed, time.Minute
	}
	m.update(func(s *state) {
		p.RetryAt = time.Now().Add(again)
		if s.cluster.view != nil {
			p.Generation = s.cluster.view.Generation
		}
		s.mysqld.problem = p
	})
}

// startServer starts mysqld read-only. What hinders it is a problem that is
// reported, not a failed action that is repeated.
func (m *manager) startServer(ctx context.Context) error {
	cluster := m.object()
	if cluster == nil {
		return errors.New("starting mysqld: the Cluster is not known yet")
	}
	err := m.provenance.noteStart(ctx, !countedBy(cluster).KeepsRelayLogs())
	if err == nil {
		err = m.configurer.prepareConfig(ctx, cluster)
	}
	if ctx.Err() != nil {
		return ctx.Err() // an order came in between: that says nothing about mysqld
	}
	var f *agent.Facts
	if err == nil {
		args := m.keeper.restoring(cluster)
		if f = m.facts(); !f.StartsStill() {
			return nil // something else is decided next
		}
		err = m.launch(args...)
	}
	if err != nil {
		m.log.Error("mysqld cannot be started", "error", err)
		m.setProblem(err)
		return nil
	}
	m.update(func(s *state) { s.mysqld.problem = nil })
	if f.LaunchEndsTail() { // by what was known before it: who loses the permission since breaks its recovery off
		return m.forgetTail()
	}
	return nil
}

func diskFull(detail string) error {
	return &namedError{core.Problem{Reason: core.InstanceDiskFull,
		Message: "the volume is full (" + detail + "): raise spec.storage.size, or free space on it; mysqld is " +
			"started when there is space"}, agent.StartRetry}
}
