package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// cloneState is a copy that was ordered, and what came of it.
type cloneState struct {
	donor    string // "" when no copy is ordered
	progress *core.Clone
	// failures in a row, and when the next attempt may be ordered.
	failures int
	again    time.Time
	// copied is called when mysqld begins to end itself after a clone.
	copied context.CancelFunc
	// verified is the process whose clone was looked at.
	verified *process
}

// cloneFrom copies a donor's data over scratch data. When it succeeds, mysqld
// ends itself to be started on the new data; verifyClone then finds what came of it.
func (m *manager) cloneFrom(donor string) error {
	account, err := readAccount(m.opt.Dirs.Replication)
	if err != nil {
		return err
	}
	m.update(func(s *state) { s.clone.progress = &core.Clone{Donor: donor, Error: s.clone.lastError()} })
	return m.activities.begin(agent.Cloning, func(ctx context.Context) error {
		progress, stop := context.WithCancel(ctx)
		defer stop()
		go m.watchClone(progress)
		err := m.runClone(ctx, donor, account)
		m.update(func(s *state) {
			s.clone.donor = "" // the next attempt is the operator's to order
			if err != nil {
				s.clone.progress = &core.Clone{Donor: donor, Error: err.Error()}
				s.clone.failed(time.Now())
			}
		})
		if err != nil {
			m.log.Error("the clone failed", "donor", donor, "error", err)
		}
		return nil
	})
}

// lastError is why the last attempt failed; "" when none did.
func (s *cloneState) lastError() string {
	if s.progress == nil {
		return ""
	}
	return s.progress.Error
}

// clonePauseMost is the longest pause after clones that failed.
const clonePauseMost = time.Minute

// failed: the first attempt is repeated at once, and each further one after a pause
// twice as long. A donor that refuses does so at once.
func (s *cloneState) failed(now time.Time) {
	if s.failures > 0 {
		s.again = now.Add(min(time.Second<<min(s.failures, 10), clonePauseMost))
	}
	s.failures++
}

func (m *manager) runClone(ctx context.Context, donor string, a mysql.Account) error {
	host, port := donor, m.opt.MySQLPort
	if h, p, err := net.SplitHostPort(donor); err == nil {
		host = h
		if port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("cloning from %s: the port is no number", donor)
		}
	}
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	// Left open, the connection would hold up the server's end for two seconds.
	statement, copied := context.WithCancel(ctx)
	defer copied()
	m.update(func(s *state) { s.clone.copied = copied })
	err := m.roles.CloneFrom(statement, host, port, a)
	m.update(func(s *state) { s.clone.copied = nil })
	if err != nil && mysql.IsAnswer(err) {
		return err
	}
	// The connection ends with the server; whether the clone has succeeded is
	// found after the start.
	select {
	case <-proc.done:
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("cloning: mysqld did not restart"), err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *manager) watchClone(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		old := get(m, func(s *state) *core.Clone { return s.clone.progress })
		if old == nil {
			continue
		}
		c := *old
		if m.metrics.CloneProgress(ctx, &c) == nil && ctx.Err() == nil {
			m.update(func(s *state) { s.clone.progress = &c })
		}
	}
}

// verifyClone: scratch data that has become a donor's.
func (m *manager) verifyClone(ctx context.Context) {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	f := m.facts()
	done := get(m, func(s *state) bool { return s.clone.verified == proc })
	if f.Data != core.DataScratch || f.Server == nil || f.Activity != "" || done {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	result, err := m.roles.CloneState(ctx)
	if err != nil {
		m.log.Warn("what came of the clone is not known yet", "error", err)
		return
	}
	m.update(func(s *state) { s.clone.verified = proc })
	if !result.Completed {
		if result.State == "Failed" {
			m.update(func(s *state) {
				s.clone.progress = &core.Clone{Error: result.Error}
				s.clone.failed(time.Now())
			})
		}
		return
	}
	if err := m.maker.finishData(stagePopulated, core.DataPopulated); err != nil {
		m.log.Error("the clone is complete and could not be recorded", "error", err)
		m.update(func(s *state) { s.clone.verified = nil })
		return
	}
	m.update(func(s *state) {
		if s.clone.progress != nil {
			c := *s.clone.progress
			c.Percent, c.Stage, c.Error = 100, "", ""
			s.clone.progress = &c
		}
	})
	m.update(func(s *state) { s.clone.failures = 0 })
	m.log.Info("cloned")
}
