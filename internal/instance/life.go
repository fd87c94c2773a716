package instance

import (
	"context"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// mysqldState is the life of mysqld, and what was asked of it.
type mysqldState struct {
	proc *process // the last one that was started; nil before the first
	// accepted: the present process has accepted a connection.
	accepted bool
	// kept: what it serves with is kept, for a spec that a later one refuses.
	kept bool
	// mayWrite: it may accept writes. writable is the epoch in which it is the primary's, 0 if it is not: it accepts
	// writes then, or follows the external server of that name, read-only.
	mayWrite bool
	writable int64
	follows  string
	// writableN counts becoming writable, to tell what was read before.
	writableN int
	// stopsWrites: it is being made read-only by this manager.
	stopsWrites bool
	// sessions of clients that are left to be closed before it accepts no writes any more.
	sessions int
	// downSince is when it ended; ended says that nobody had asked for it, endReason how.
	downSince time.Time
	ended     bool
	endReason string
	// dataRemoved: it ended before it had answered, on data that a copy had begun to replace.
	dataRemoved bool
	// failures in a row to stay up, and starts after the first on the data that it has; unused says
	// that the next start is that first one.
	failures int
	restarts int
	unused   bool
	// problem is why it could not be started.
	problem *agent.Problem
	// restart is the epoch in which it was ordered to be started in place.
	restart int64
	// stopRequested is the process whose end is no crash.
	stopRequested *process
}

// starts notes that a process was started.
func (s *mysqldState) starts(p *process) {
	if s.proc != nil && !s.unused {
		s.restarts++
	}
	s.unused = false
	s.proc, s.accepted, s.kept, s.endReason, s.dataRemoved = p, false, false, "", false
	s.takesNoWrites()
}

// getsNewData notes that its data directory was made from nothing: that mysqld did not start on the one
// before says nothing of this one.
func (s *mysqldState) getsNewData() { s.failures, s.ended, s.endReason = 0, false, "" }

// populates notes that its data are complete now. Those starts that made or copied them are no
// restarts, which somebody would look for the reason of.
func (s *mysqldState) populates() { s.restarts, s.unused = 0, !s.proc.running() }

// takesWrites notes that it accepts writes in an epoch.
func (s *mysqldState) takesWrites(epoch int64) { s.serves(epoch, "") }

// serves notes that it is the primary's in an epoch: it accepts writes, or follows the external server of that name.
func (s *mysqldState) serves(epoch int64, follows string) {
	s.writable, s.follows = epoch, follows
	s.writableN++
}

// isWritable reports whether it accepts writes of clients.
func (s *mysqldState) isWritable() bool { return s.writable != 0 && s.follows == "" }

// takesNoWrites notes that it accepts no writes, and that no client is left that could make one.
func (s *mysqldState) takesNoWrites() {
	s.writable, s.follows, s.mayWrite, s.stopsWrites, s.sessions = 0, "", false, false, 0
	s.writableN++
}

// exits notes that the process has ended, after these last words. wanted says that mysqld, or
// somebody else, had asked for that.
func (s *mysqldState) exits(wanted bool, last string) {
	s.takesNoWrites()
	s.ended, s.downSince = !wanted, time.Now()
	s.restart = 0 // what was ordered, was for the end before
	if wanted {
		s.endReason = ""
		return
	}
	s.endReason = s.proc.ending()
	if last != "" {
		s.endReason += ": " + last
	}
	if agent.IsFailedStart(s.accepted, time.Since(s.proc.started)) {
		s.failures++
	}
}

// left is what a replacement binary is told, besides of the process that runs on and of what the
// configurer has checked.
func (s *mysqldState) left() handoverLife {
	return handoverLife{DownSince: ticksOf(s.downSince), Ended: s.ended, EndReason: s.endReason,
		Failures: s.failures, Restarts: s.restarts, Restart: s.restart}
}

// inherit is the reverse of left.
func (s *mysqldState) inherit(l handoverLife) {
	s.downSince, s.ended, s.endReason = l.DownSince.time(), l.Ended, l.EndReason
	s.failures, s.restarts, s.restart = l.Failures, l.Restarts, l.Restart
}

// launch starts the process and watches it.
func (m *manager) launch(args ...string) error {
	p, err := m.launcher.spawn(args...)
	if err != nil {
		return err
	}
	m.update(func(s *state) {
		s.mysqld.starts(p)
		s.status.startsAnew()
		s.access.startsAnew()
	})
	m.attend(p)
	return nil
}

// attend sees a process through its life.
func (m *manager) attend(p *process) {
	go m.awaitStart(p)
	go p.wait(func() { m.exited(p) })
}

// awaitStart asks more often than the poll while a server is starting; one that
// takes long takes no harm from half a second more.
func (m *manager) awaitStart(p *process) {
	tick := time.NewTicker(agent.StartPollEvery)
	defer tick.Stop()
	for time.Since(p.started) < agent.StartPollFor && p.running() && !get(m, func(s *state) bool {
		return s.mysqld.accepted
	}) {
		<-tick.C
		m.poll(context.Background())
		poke(m.wake)
	}
}

// exited notes that mysqld has ended, and how; everybody learns it now.
func (m *manager) exited(p *process) {
	last, full := p.log.last()
	wanted := p.exit.ExitCode() == exitRestart
	removed := !wanted && m.copyBrokeOff()
	m.update(func(s *state) {
		defer close(p.done)
		if s.mysqld.proc != p {
			return
		}
		s.status.server = nil
		asked := s.mysqld.stopRequested == p
		// If nobody asked for its end, it may have made the group already, and others have joined it.
		m.membership.serverEnded(asked && m.activities.current() != agent.Bootstrapping)
		s.mysqld.exits(wanted || asked, last)
		s.mysqld.dataRemoved = removed && !asked
	})
	m.log.Warn("mysqld has ended", "how", p.ending(), "lastErrors", last)
	if full && p.exit.ExitCode() != 0 {
		m.setProblem(diskFull(last))
	}
	poke(m.leases.wake)
}

// copyBrokeOff reports whether mysqld ended before it had answered, on data that a copy had begun
// to replace. Of one that had answered nothing is read here: its volume may have stalled, and
// others wait for its end. What cannot be read counts as false: unknown is no reason to throw data
// away.
func (m *manager) copyBrokeOff() bool {
	if get(m, func(s *state) bool { return s.mysqld.accepted }) {
		return false
	}
	broke, err := mysql.CopyBrokeOff(m.opt.Dirs.Data)
	if err != nil {
		m.log.Warn("it is not known whether a clone had begun to replace the data", "error", err)
	}
	return broke
}
