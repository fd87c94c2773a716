package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
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
	// counted: the last attempt has failed, and is among the failures. mysqld tells of it again.
	counted bool
}

// cloner copies another instance's data over scratch data, and finds what came of that. It keeps what was
// ordered and how far it is.
type cloner struct {
	opt        Options
	log        *slog.Logger
	activities *activities
	maker      *dataMaker
	by         cloning
	// roles is mysqld, and metrics tells how far it is.
	roles, metrics func() *mysql.Server

	mu sync.Mutex
	st cloneState
}

// cloning is what a cloner asks of its manager.
type cloning interface {
	facts() *agent.Facts
	// server is the mysqld that runs, or ran last; nil if none did.
	server() *process
	// retell has the report made again, and the worker look.
	retell()
}

func newCloner(m *manager, c concerns) *cloner {
	return &cloner{opt: m.opt, log: m.log, activities: c.activities, maker: c.maker, by: m,
		roles: func() *mysql.Server { return m.roles }, metrics: func() *mysql.Server { return m.metrics }}
}

// change changes what it keeps, and has that told.
func (k *cloner) change(f func(*cloneState)) {
	k.mu.Lock()
	f(&k.st)
	k.mu.Unlock()
	k.by.retell()
}

// said is what was ordered, and what came of it.
func (k *cloner) said() cloneState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.st
}

// order has a copy made of a donor's data; nobody is told before it begins.
func (k *cloner) order(donor string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.st.donor = donor
}

// report is how far it is; nil while nothing was copied.
func (k *cloner) report() *core.Clone {
	now := k.said()
	if now.progress == nil {
		return nil
	}
	c := *now.progress
	c.Pausing, c.Failures = time.Now().Before(now.again), now.failures
	return &c
}

// serverEnds notes that mysqld ends itself, which it does when all is copied.
func (k *cloner) serverEnds() {
	if copied := k.said().copied; copied != nil {
		copied()
	}
}

// cloneFrom copies a donor's data over scratch data. When it succeeds, mysqld
// ends itself to be started on the new data; verifyClone then finds what came of it.
func (k *cloner) cloneFrom(donor string) error {
	account, err := k.opt.Dirs.replicationAccount()
	if err != nil {
		return err
	}
	k.change(func(s *cloneState) {
		s.progress, s.counted = &core.Clone{Donor: donor, Error: s.lastError()}, false
	})
	return k.activities.begin(agent.Cloning, func(ctx context.Context) error {
		progress, stop := context.WithCancel(ctx)
		go k.watchClone(progress)
		err := k.runClone(ctx, donor, account)
		stop() // how far it was must not replace what came of it
		k.change(func(s *cloneState) {
			s.donor = "" // the next attempt is the operator's to order
			if err != nil {
				s.progress = &core.Clone{Donor: donor, Error: err.Error()}
				s.failed(time.Now())
			}
		})
		if err != nil {
			k.log.Error("cannot clone the data of the donor", "donor", donor, "error", err)
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

// failed counts an attempt that failed and sets when the next may be made: after the first at once,
// and after each further one when a pause twice as long is over, up to clonePauseMost. A donor that
// refuses does so at once.
func (s *cloneState) failed(now time.Time) {
	if s.failures > 0 {
		s.again = now.Add(min(time.Second<<min(s.failures, 10), clonePauseMost))
	}
	s.failures++
	s.counted = true
}

// foundFailed notes what mysqld says of a clone that failed, where it is not known yet.
func (s *cloneState) foundFailed(why string, now time.Time) {
	if !s.counted {
		failed := core.Clone{Error: why}
		if s.progress != nil {
			failed.Donor = s.progress.Donor
		}
		s.progress = &failed
		s.failed(now)
	}
}

func (k *cloner) runClone(ctx context.Context, donor string, a mysql.Account) error {
	host, port := donor, k.opt.MySQLPort
	if h, p, err := net.SplitHostPort(donor); err == nil {
		host = h
		if port, err = strconv.Atoi(p); err != nil {
			return fmt.Errorf("cloning from %s: the port is no number", donor)
		}
	}
	proc := k.by.server()
	// Left open, the connection would hold up the server's end for two seconds.
	statement, copied := context.WithCancel(ctx)
	defer copied()
	k.change(func(s *cloneState) { s.copied = copied })
	err := k.roles().CloneFrom(statement, host, port, a)
	k.change(func(s *cloneState) { s.copied = nil })
	if err != nil && mysql.IsAnswer(err) {
		return err
	}
	// The connection ends with the server; whether the clone has succeeded is
	// found after the start.
	select {
	case <-proc.done:
	case <-time.After(time.Minute):
		return errors.Join(errors.New("cloning: mysqld did not restart"), err)
	case <-ctx.Done():
	}
	return context.Cause(ctx) // nil unless it was broken off
}

// watchClone notes how far a clone is, until its context ends. A mysqld that hangs is asked once: the
// question ends with the clone.
func (k *cloner) watchClone(ctx context.Context) {
	before := ""
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		old := k.said().progress
		if old == nil {
			continue
		}
		c := *old
		far, err := k.metrics().CloneProgress(ctx, &c)
		if err != nil {
			continue
		}
		if far != before {
			before = far
			k.activities.moves()
		}
		k.change(func(s *cloneState) { s.notes(ctx, &c) })
	}
}

// notes notes how far a clone is that goes on until the context ends.
func (s *cloneState) notes(ctx context.Context, c *core.Clone) {
	if ctx.Err() == nil {
		s.progress = c
	}
}

// verifyClone asks mysqld, until it has an answer of this process, whether scratch data has become
// a donor's, and records then that it has, or how the clone failed.
func (k *cloner) verifyClone(ctx context.Context) {
	proc := k.by.server()
	f := k.by.facts()
	done := k.said().verified == proc
	if f.Data != core.DataScratch || f.Server == nil || f.Activity != "" || done {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	result, err := k.roles().CloneState(ctx)
	if err != nil {
		k.log.Warn("it is not known yet whether the clone succeeded; the manager asks again", "error", err)
		return
	}
	k.change(func(s *cloneState) { s.verified = proc })
	if !result.Completed {
		if result.State == "Failed" {
			k.change(func(s *cloneState) { s.foundFailed(result.Error, time.Now()) })
		}
		return
	}
	if f.Server.Replication != nil {
		// The donor's channel came without the relay logs that it tells of.
		if err := k.roles().ForgetSource(ctx); err != nil {
			k.log.Warn("cannot remove the donor's replication channel, which was cloned with the data", "error", err)
		}
	}
	if err := k.maker.finishData(stagePopulated, core.DataPopulated); err != nil {
		k.log.Error("the clone is complete, but the manager cannot record that on the volume", "error", err)
		k.change(func(s *cloneState) { s.verified = nil })
		return
	}
	k.change(func(s *cloneState) {
		if s.progress != nil {
			c := *s.progress
			c.Percent, c.Stage, c.Error = 100, "", ""
			s.progress = &c
		}
	})
	k.change(func(s *cloneState) { s.failures = 0 })
	k.log.Info("the clone is complete")
}
