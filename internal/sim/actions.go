package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// statement runs something in mysqld. When it takes too long it is given up; a
// server that was stopped executes it all the same when it goes on.
func (m *manager) statement(limit time.Duration, run func(*mysqld), done func(err string)) {
	s := m.proc
	if s == nil || s.dead || !s.accepting {
		m.at(time.Millisecond, func() { done("mysqld does not run") })
		return
	}
	over := false
	s.at(500*time.Microsecond+m.w.jitter(2*time.Millisecond), func() {
		run(s)
		m.at(100*time.Microsecond, func() {
			if !over {
				over = true
				done("")
			}
		})
	})
	m.at(limit, func() {
		if !over {
			over = true
			done("mysqld does not answer in time")
		}
	})
	if s.stopped {
		return
	}
}

// startServer starts mysqld read-only; a full volume is a problem, not a failure.
func (m *manager) startServer(done func(string)) {
	if m.view == nil {
		done("the Cluster is not known yet")
		return
	}
	if m.volume.full {
		m.setProblem(core.InstanceDiskFull)
		done("")
		return
	}
	m.noteStart(!m.view.KeepsRelayLogs())
	f := m.facts()
	m.launch()
	m.problem = nil
	if f.LaunchEndsTail() {
		m.forgetTail()
	}
	done("")
}

func (m *manager) launch() {
	if m.started != 0 {
		m.restarts++
	}
	keepsRelay := m.view.KeepsRelayLogs() && !m.volume.record.cached.MayLack && !m.w.mut.RelayNotDurable
	m.proc = startMysqld(m, keepsRelay)
	m.started = m.w.now
	m.accepted, m.misses, m.server, m.receiveTry = false, 0, nil, 0
	m.mayWrite, m.stopsWrites, m.writable = false, false, 0
	m.writableN++
	m.awaitStart(m.proc)
	m.update()
}

// awaitStart asks more often than the poll while a server is starting.
func (m *manager) awaitStart(s *mysqld) {
	m.at(agent.StartPollEvery, func() {
		if m.proc != s || s.dead || m.accepted || m.w.now-m.started > agent.StartPollFor {
			return
		}
		if s.answers() {
			m.poll()
			m.worker.wake()
			return
		}
		m.awaitStart(s)
	})
}

func (m *manager) begin(what agent.Activity) {
	m.activity = what
	m.abort = nil
	m.update()
}

func (m *manager) endActivity() {
	m.activity, m.abort = agent.NoActivity, nil
	m.update()
}

func (m *manager) abortActivity(done func(string)) {
	m.worker.interrupt = nil
	if m.abort != nil {
		m.abort()
	}
	m.killServer()
	m.endActivity()
	m.at(20*time.Millisecond, func() { done("") })
}

func (m *manager) killServer() {
	if m.proc != nil && !m.proc.dead {
		m.stopRequested = m.proc
		m.proc.end(true)
		m.exited(m.proc, true)
	}
}

// makeData makes a data directory; unfinished, it is recreated.
func (m *manager) makeData(from core.DataOrigin) {
	v := m.volume
	if v.stage == stagePopulated && v.db != nil {
		m.w.cover.count("manager", "refused to replace populated data")
		return
	}
	m.begin(agent.Initializing)
	v.stage = stageInitializing
	over := false
	m.abort = func() { over = true }
	m.at(3*time.Second+m.w.jitter(2*time.Second), func() {
		if over {
			return
		}
		v.db = newDatabase(m.w, m.me)
		if from == core.OriginImported {
			v.db = copyOf(m.w.outside.db, m.me)
		}
		v.db.machine = m.machine
		v.stage = stageScratch
		m.data, m.failures, m.ended = core.DataScratch, 0, false
		if from != core.OriginCloned {
			t := v.db.append()
			v.db.commit(t)
			m.w.truth.bootstrapped(m)
			v.stage, m.data = stagePopulated, core.DataPopulated
			m.launch()
		}
		m.endActivity()
	})
}

// cloneFrom copies a donor's data; mysqld ends itself when it has them.
func (m *manager) cloneFrom(donor string) {
	m.clone = &core.Clone{Donor: donor}
	m.begin(agent.Cloning)
	s, source := m.proc, m.w.serverOf(donor)
	over := false
	finish := func(err string) {
		if over {
			return
		}
		over = true
		m.donor = ""
		if err != "" {
			m.clone = &core.Clone{Donor: donor, Error: err}
		}
		m.endActivity()
	}
	m.abort = func() { over = true }
	took := 2*time.Second + m.w.jitter(8*time.Second)
	if m.w.slowClones {
		took += time.Minute + m.w.jitter(2*time.Minute)
	}
	var copied func()
	m.at(took, func() { source.whenCommitted(m, func() bool { return over }, finish, copied) })
	copied = func() {
		ok := source.answers() && s.answers() && m.w.connected(m.machine, source.machine) &&
			m.volume.stage == stageScratch && !m.volume.full
		if over || !ok {
			finish("the donor cannot be reached")
			return
		}
		m.w.truth.overwritten(m.volume)
		m.volume.db = copyOf(source.db, m.me)
		s.end(false)
		m.at(10*time.Millisecond, func() { finish("") })
	}
}

// clonePatience is how long the server lets a clone wait for a commit of its donor.
const clonePatience = 5 * time.Minute

// whenCommitted goes on when every commit that waits now has ended: a clone does not end
// before. After clonePatience it fails.
func (s *mysqld) whenCommitted(m *manager, over func() bool, fail func(string), then func()) {
	until, waiting := m.w.now+clonePatience, []*commit(nil)
	if s != nil {
		waiting = slices.Clone(s.semi.waiting)
	}
	var look func()
	look = func() {
		hinders := s.answers() && slices.ContainsFunc(waiting, func(c *commit) bool {
			return slices.Contains(s.semi.waiting, c)
		})
		switch {
		case over():
		case !hinders:
			then()
		case m.w.now >= until:
			m.w.cover.count("manager", "a clone waited in vain for a commit of its donor")
			fail("Innodb Clone Restart failed, existing clone aborted")
		default:
			m.at(500*time.Millisecond, look)
		}
	}
	look()
}

// verifyClone takes scratch data for the instance's own once they have become a donor's: mysqld
// answers on them and has executed something. It looks once at each process.
func (m *manager) verifyClone() {
	s := m.proc
	if m.data != core.DataScratch || m.server == nil || m.activity != "" || m.verified == s || !s.answers() {
		return
	}
	m.verified = s
	if m.volume.db.executed.IsEmpty() {
		return
	}
	m.volume.stage, m.data = stagePopulated, core.DataPopulated
	m.update()
}

// waitApplied waits a second at most for what is to be executed.
func (m *manager) waitApplied(a agent.WaitApplied, done func(string)) {
	until := m.w.now + agent.AppliedLimit
	s := m.proc
	if !s.answers() {
		m.at(time.Millisecond, func() { done("mysqld does not answer") })
		return
	}
	over := false
	m.worker.interrupt = func() { over = true; done(interrupted) }
	var look func()
	look = func() {
		switch {
		case over:
		case s.answers() && s.db.executed.Contains(a.Set):
			done("")
		case m.w.now >= until:
			m.worker.woken = true
			done("")
		default:
			m.at(25*time.Millisecond, look)
		}
	}
	look()
}

func (m *manager) forgetTail() {
	m.volume.record.tailEpoch = 0
}

func (m *manager) cutTail(a agent.CutTail) {
	if m.proc == nil || m.proc.dead {
		m.volume.db.cutTail(a.Held)
	}
	m.forgetTail()
	m.update()
}
