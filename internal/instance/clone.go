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

// cloneFrom copies a donor's data over scratch data. When it succeeds, mysqld
// ends itself to be started on the new data; verifyClone then finds what came of it.
func (m *manager) cloneFrom(donor string) error {
	account, err := readAccount(m.opt.Dirs.Replication)
	if err != nil {
		return err
	}
	m.update(func(s *state) { s.clone = &core.Clone{Donor: donor} })
	return m.begin(agent.Cloning, func(ctx context.Context) error {
		progress, stop := context.WithCancel(ctx)
		defer stop()
		go m.watchClone(progress)
		err := m.runClone(ctx, donor, account)
		m.update(func(s *state) {
			s.donor = "" // the next attempt is the operator's to order
			if err != nil {
				s.clone = &core.Clone{Donor: donor, Error: err.Error()}
				s.cloneFailed(time.Now())
			}
		})
		if err != nil {
			m.log.Error("the clone failed", "donor", donor, "error", err)
		}
		return nil
	})
}

// clonePauseMost is the longest pause after clones that failed.
const clonePauseMost = time.Minute

// cloneFailed: the first attempt is repeated at once, and each further one after a pause
// twice as long. A donor that refuses does so at once.
func (s *state) cloneFailed(now time.Time) {
	if s.cloneFailures > 0 {
		s.cloneAgain = now.Add(min(time.Second<<min(s.cloneFailures, 10), clonePauseMost))
	}
	s.cloneFailures++
}

func (m *manager) runClone(ctx context.Context, donor string, a mysql.Account) error {
	host, port := donor, m.opt.MySQLPort
	if h, p, err := net.SplitHostPort(donor); err == nil {
		host = h
		if port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("cloning from %s: the port is no number", donor)
		}
	}
	proc := get(m, func(s *state) *process { return s.proc })
	// Left open, the connection would hold up the server's end for two seconds.
	statement, copied := context.WithCancel(ctx)
	defer copied()
	m.update(func(s *state) { s.copied = copied })
	err := m.roles.CloneFrom(statement, host, port, a)
	m.update(func(s *state) { s.copied = nil })
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
		old := get(m, func(s *state) *core.Clone { return s.clone })
		if old == nil {
			continue
		}
		c := *old
		if m.metrics.CloneProgress(ctx, &c) == nil && ctx.Err() == nil {
			m.update(func(s *state) { s.clone = &c })
		}
	}
}

// verifyClone: scratch data that has become a donor's.
func (m *manager) verifyClone(ctx context.Context) {
	proc := get(m, func(s *state) *process { return s.proc })
	f := m.facts()
	if f.Data != core.DataScratch || f.Server == nil || f.Activity != "" || get(m, func(s *state) bool { return s.verified == proc }) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	result, err := m.roles.CloneState(ctx)
	if err != nil {
		m.log.Warn("what came of the clone is not known yet", "error", err)
		return
	}
	m.update(func(s *state) { s.verified = proc })
	if !result.Completed {
		if result.State == "Failed" {
			m.update(func(s *state) {
				s.clone = &core.Clone{Error: result.Error}
				s.cloneFailed(time.Now())
			})
		}
		return
	}
	if err := m.finishData(stagePopulated, core.DataPopulated); err != nil {
		m.log.Error("the clone is complete and could not be recorded", "error", err)
		m.update(func(s *state) { s.verified = nil })
		return
	}
	m.update(func(s *state) {
		if s.clone != nil {
			c := *s.clone
			c.Percent, c.Stage = 100, ""
			s.clone = &c
		}
	})
	m.update(func(s *state) { s.cloneFailures = 0 })
	m.log.Info("cloned")
}
