package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// finalRead is what it takes to ask for the final position.
const finalRead = 8 * time.Millisecond

// stopWrites returns when mysqld accepts no write any more and nobody can read
// success from it, or when it was killed.
func (m *manager) stopWrites(done func(string)) {
	s := m.proc
	if s == nil || s.dead || !m.mayWrite {
		if m.follows != "" && s != nil {
			s.do(func() { s.io.stop(); s.changed() })
		}
		m.writable, m.follows, m.sessions = 0, "", 0
		m.update()
		m.at(time.Millisecond, func() { done("") })
		return
	}
	m.stopsWrites = true
	d := &demotion{m: m, s: s, done: done}
	s.at(time.Millisecond, func() {
		s.refuseWrites(func() { m.at(time.Millisecond, d.closeFormer) })
	})
	m.at(agent.DemotePatience, d.press)
	m.at(agent.DemoteLimit(m.answers()), func() { d.kill("it could not be made read-only in time") })
}

// demotion is one stopWrites under way.
type demotion struct {
	m        *manager
	s        *mysqld
	done     func(string)
	readOnly bool
	over     bool
}

// press closes the sessions that hold up the lock.
func (d *demotion) press() {
	if d.over || d.readOnly || d.s.dead {
		return
	}
	m, s := d.m, d.s
	if !m.w.mut.ReleaseWaiters {
		s.do(func() { s.kill(append([]*session{}, s.sessions...)) })
	}
	if !s.stopped && agent.AcksCannotCome(s.report().SemiSync) {
		if m.w.mut.ReleaseWaiters {
			s.requireAcks(0, 0)
			return
		}
		d.kill("sessions wait for acknowledgements that cannot come")
		return
	}
	m.at(agent.DemoteLook, d.press)
}

// closeFormer closes the sessions that were open, and waits until they are gone.
func (d *demotion) closeFormer() {
	if d.over {
		return
	}
	d.readOnly = true
	m, s := d.m, d.s
	if s.dead || s.stopped {
		return
	}
	s.kill(append([]*session{}, s.sessions...))
	m.sessions = len(s.sessions)
	if m.sessions > 0 {
		m.update()
		m.at(agent.DemoteLook, d.closeFormer)
		return
	}
	d.finish()
}

// finish reads what the server holds in the end, which takes statements and their time,
// and tells the promise after that.
func (d *demotion) finish() {
	m := d.m
	d.over = true
	took := finalRead
	if m.w.mut.PromiseBeforeFinal {
		m.demoted()
		m.update()
		took += m.w.jitter(time.Second) // on a busy machine
	}
	m.at(took, func() {
		if d.s.dead {
			d.done("")
			return
		}
		if !m.w.mut.PromiseBeforeFinal {
			m.demoted()
		}
		m.server, m.serverAt = d.s.report(), m.w.now
		if d.s.semi.enabled && len(d.s.semi.waiting) == 0 {
			d.s.semi.timeout = 0
		}
		m.tell("accepts no writes")
		m.update()
		m.wakeLease()
		d.done("")
	})
}

func (m *manager) demoted() {
	m.writable, m.mayWrite, m.stopsWrites, m.sessions = 0, false, false, 0
	m.writableN++
}

// kill is what a server gets that does not become read-only in time.
func (d *demotion) kill(why string) {
	if d.over {
		return
	}
	m := d.m
	d.over = true
	m.tell("mysqld is killed: %s", why)
	m.w.cover.count("manager", "killed in a demotion")
	m.stopRequested = d.s
	m.at(5*time.Millisecond, func() {
		d.s.end(true)
		m.at(2*time.Millisecond, func() {
			m.demoted()
			m.update()
			m.wakeLease()
			d.done("")
		})
	})
}

// stopServer ends mysqld. Writes have stopped before it is asked to end.
func (m *manager) stopServer(a agent.StopServer, done func(string)) {
	m.worker.interrupt = nil
	s := m.proc
	m.stopRequested = s
	if a.Kill {
		m.failures++
		s.end(true)
		m.at(20*time.Millisecond, func() { done("") })
		return
	}
	if m.w.mut.StopPolitely {
		m.begin(agent.Stopping)
		s.shutDown()
		m.afterStop(s)
		done("")
		return
	}
	wrote := m.mayWrite
	m.stopWrites(func(err string) {
		if err == "" {
			m.begin(agent.Stopping)
			m.letSessionsFinish(wrote, func() { m.shutDown(s) })
		}
		done(err)
	})
}

// letSessionsFinish waits for the clients of a replica: mysqld receives, and acknowledges, until
// that is over.
func (m *manager) letSessionsFinish(wrote bool, then func()) {
	if wrote || m.proc == nil || m.proc.dead || m.w.conf.smartShutdown == 0 {
		then()
		return
	}
	m.at(m.w.conf.smartShutdown, then)
}

// shutDown asks mysqld to end, unless it would tell waiting sessions success.
func (m *manager) shutDown(s *mysqld) {
	if s.dead {
		m.endActivity()
		return
	}
	if s.answers() {
		s.kill(append([]*session{}, s.sessions...))
		s.io.stop()
		s.applying = false
	}
	if s.answers() && len(s.semi.waiting) == 0 {
		s.shutDown()
	} else {
		s.end(true)
	}
	m.afterStop(s)
}

func (m *manager) afterStop(s *mysqld) {
	began := m.terminating
	if began == 0 {
		began = m.w.now
	}
	deadline := began + agent.StopLimit(m.w.conf.maxStop)
	var look func()
	look = func() {
		switch {
		case s.dead:
			m.endActivity()
		case m.w.now > deadline:
			s.end(true)
			m.at(10*time.Millisecond, m.endActivity)
		default:
			m.at(50*time.Millisecond, look)
		}
	}
	look()
}

// becomePrimary opens the server for writes, in the order that keeps an
// acknowledged write.
func (m *manager) becomePrimary(a agent.BecomePrimary, done func(string)) {
	s, run := m.proc, m.worker.runs
	wasOpen := m.mayWrite
	m.statement(agent.StatementLimit, func(s *mysqld) {
		if s.db.source != "" {
			s.forgetSource()
		}
		if !wasOpen && s.semi.enabled {
			s.requireAcks(0, 0)
		}
	}, func(err string) {
		if err != "" || m.worker.runs != run {
			done(err)
			return
		}
		m.requireAcks(agent.Awaits{Epoch: a.Epoch, Acks: a.Acks}, agent.StatementLimit, func(err string) {
			if err != "" || m.worker.runs != run {
				done(err)
				return
			}
			if !wasOpen && s.answers() {
				s.kill(append([]*session{}, s.sessions...))
			}
			m.open(a.Epoch, done)
		})
	})
}

// open opens mysqld for writes in the epoch. It looks at the permission once more at the last
// moment. From there on it does not give up half way: a mysqld that does not say whether it became
// writable is killed. done gets why it is not writable, or "".
func (m *manager) open(epoch int64, done func(string)) {
	m.volume.record.wasPrimaryEpoch, m.volume.record.cached = epoch, m.volume.record.cached.Opens()
	m.elsewhere = m.elsewhere.Opens(m.moment(m.w.now))
	if !m.facts().MayOpen(epoch) {
		done("the promotion was withdrawn, or the lease has run out meanwhile")
		return
	}
	m.worker.interrupt = nil
	m.mayWrite = true
	s := m.proc
	m.statement(agent.OpenLimit, func(s *mysqld) { s.openWrites(epoch) }, func(err string) {
		if err != "" {
			if s != nil {
				s.end(true)
			}
			m.at(5*time.Millisecond, func() { done("mysqld does not say whether it became writable, and is killed") })
			return
		}
		m.writable, m.follows, m.source = epoch, "", nil
		m.writableN++
		if m.server != nil {
			server := *m.server
			server.SuperReadOnly, server.Replication = false, nil
			m.server = &server
		}
		m.tell("is primary in epoch %d", epoch)
		m.update()
		m.wakeLease()
		m.publish()
		done("")
	})
}

// requireAcks remembers the number before it is applied.
func (m *manager) requireAcks(a agent.Awaits, limit time.Duration, done func(string)) {
	r := &m.volume.record
	forEver := m.view.WaitsForEver()
	promised, begins := r.promised().Before(a, forEver && a.Acks > 0 || m.w.mut.TailAlways, m.mayWrite)
	if r.setPromised(promised); !promised.MayHaveTail() {
		r.tailBase = gtid.Set{}
	}
	timeout := m.w.conf.ackTimeout
	if forEver {
		timeout = forever
	}
	var base gtid.Set
	m.statement(limit, func(s *mysqld) { s.requireAcks(a.Acks, timeout); base = s.db.executed },
		func(err string) {
			if err == "" {
				m.volume.record.acks = a.Acks
			}
			if err == "" && begins {
				m.volume.record.tailEpoch, m.volume.record.tailBase = a.Epoch, base
			}
			done(err)
		})
}

// forever is the longest that a commit can be told to wait.
const forever = 49 * 24 * time.Hour

// askPrimary reads what this instance has executed first, and asks the primary
// after that.
func (m *manager) askPrimary(a agent.AskPrimary) {
	if m.asking {
		return
	}
	m.asking = true
	until := m.w.now + agent.AskLimit
	var mine gtid.Set
	m.statement(agent.AskLimit, func(s *mysqld) { mine = s.db.executed }, func(err string) {
		if err != "" {
			m.askedInVain(err)
			return
		}
		at := m.w.now
		m.askPeer(a.Instance, until, func(r core.Report) {
			m.primary = a.Answered(r, mine, m.moment(at))
		})
	})
}

// askWord reads the Cluster from the API server itself, and takes it for its view as soon
// as the watch has come so far.
func (m *manager) askWord() {
	if m.asking {
		return
	}
	m.asking = true
	sent := m.w.now
	m.w.call(m.machine, apiMachine, agent.AskLimit, func(reply func(func())) {
		s := m.w.api.cluster().status
		upTo := len(m.w.api.logs[kindCluster])
		reply(func() {
			if m.dead {
				return
			}
			m.asking, m.askFailed = false, ""
			m.word = &agent.Word{At: m.moment(sent), Epoch: s.Epoch}
			if s.Promotion != nil {
				m.word.Instance = s.Promotion.Instance
				m.vouches.noteWord(m, word{sent, s.Epoch})
			}
			m.cluster.apply(upTo)
			m.update()
		})
	}, func() {
		if !m.dead {
			m.askedInVain("timeout")
		}
	})
}

func (m *manager) askedInVain(why string) {
	m.asking = false
	m.askFailed, m.askAgain = why, m.w.now+agent.AskRetry
	m.update()
}

// askPeer asks another instance's manager for a report taken now. It waits until a moment.
func (m *manager) askPeer(instance string, until time.Duration, answer func(core.Report)) {
	peer := m.w.managerOf(instance)
	if peer == nil {
		m.at(10*time.Millisecond, func() { m.askedInVain("no such host") })
		return
	}
	m.w.call(m.machine, peer.machine, until-m.w.now, func(reply func(func())) {
		if peer.dead {
			reply(func() { m.askedInVain("connection refused") })
			return
		}
		peer.poll()
		fresh := peer.serverAt == m.w.now
		r := peer.report()
		reply(func() {
			switch {
			case m.dead:
			case r.Instance != instance || r.Server == nil || !fresh:
				m.askedInVain(string(r.State))
			default:
				m.asking, m.askFailed = false, ""
				answer(r)
				m.update()
			}
		})
	}, func() {
		if !m.dead {
			m.askedInVain("timeout")
		}
	})
}
