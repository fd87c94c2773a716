package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// vouching is what a primary asks its peers.
type vouching struct {
	agent.Vouches
	asking, watching bool
	// counted is what a peer, the API server or an operator's order said last to one whose mysqld does not run: it may
	// be started on that.
	counted word
	peers   map[string]*manager // standing connections
}

// freshLease is the age of a Lease up to which the model asks for no vouches, where the product asks for them all the
// time: a vouch that was given by then is too old to count when the Lease is.
const freshLease = core.LeaseGrace - core.VouchLife - core.VouchEvery

// keepVouched asks every peer once a second whether it counts on this primary. While the lease is fresh and
// mysqld runs, nothing depends on the answers, and nobody is asked.
func (m *manager) keepVouched() {
	if m.vouches.asking {
		return
	}
	m.vouches.asking = true
	var tick func()
	tick = func() {
		f := m.facts()
		if !f.NeedsVouches() {
			m.vouches.asking = false
			return
		}
		if m.lease.epoch == 0 || !f.Mysqld.Up || m.w.now-m.lease.renewed > freshLease {
			m.askPeers(f)
		}
		m.at(core.VouchEvery, tick)
	}
	m.at(core.VouchEvery, tick)
}

func (m *manager) askPeers(f *agent.Facts) {
	w, epoch := m.w, f.Cluster.Promotion.Epoch
	if m.vouches.peers == nil {
		m.vouches.peers = map[string]*manager{}
	}
	for _, name := range f.Cluster.Names {
		peer := m.vouches.peers[name]
		if peer == nil {
			peer = w.managerOf(name)
		}
		if name == m.me || peer == nil {
			continue
		}
		m.vouches.peers[name] = peer
		sent := w.now
		w.call(m.machine, peer.machine, core.VouchEvery, func(reply func(func())) {
			if peer.dead {
				reply(func() { delete(m.vouches.peers, name) })
				return
			}
			pf := peer.facts()
			if w.mut.VouchWhileWithheld {
				pf.NoReceivingBelow = 0
			}
			if no := agent.Vouch(pf, m.me, epoch); no != nil && !w.mut.VouchForAnybody {
				w.cover.count("vouch", string(no.Reason))
				reply(func() {})
				return
			}
			w.cover.count("vouch", "given")
			reply(func() {
				if !m.dead {
					m.vouches.Note(epoch, name, m.moment(sent))
					m.vouches.noteStart(m.proc, word{sent, epoch})
				}
			})
		}, func() { delete(m.vouches.peers, name) })
	}
}

// keepIsolating has this primary isolate itself when nobody stands behind it any more. While the
// lease is fresh nothing is to be looked for.
func (m *manager) keepIsolating() {
	if m.vouches.watching {
		return
	}
	m.vouches.watching = true
	var tick func()
	tick = func() {
		if m.writable == 0 && !m.mayWrite {
			m.vouches.watching = false
			return
		}
		if m.facts().MustIsolateItself() && !m.w.mut.NoSelfFencing {
			m.tell("isolates itself")
			m.w.cover.count("manager", "isolated itself")
			m.isolateItself(func() { m.at(core.IsolationLook, tick) })
			return
		}
		m.at(max(core.IsolationLook, m.lease.renewed+core.LeaseGrace-m.w.now), tick)
	}
	m.at(core.IsolationLook, tick)
}

// isolateItself stops writes; a worker that is busy is not waited for long.
func (m *manager) isolateItself(done func()) {
	began, over := false, false
	m.worker.submit(func(free func()) {
		if over {
			free()
			return
		}
		began = true
		m.stopWrites(func(string) { free(); done() })
	})
	m.at(core.IsolationLimit/2, func() {
		if began {
			return
		}
		over = true
		m.tell("the worker is busy; mysqld is killed")
		if m.proc != nil {
			m.proc.end(true)
		}
		m.at(20*time.Millisecond, done)
	})
}

// word is when another counted on a primary, or an operator had it started, and in which epoch.
type word struct {
	at    time.Duration
	epoch int64
}

// noteStart notes a vouch on which mysqld, which does not run, may be started.
func (v *vouching) noteStart(s *mysqld, given word) {
	if s == nil || s.dead {
		v.counted = given
	}
}

// noteWord notes that the API server named an instance whose mysqld does not run, which may be started on that.
func (v *vouching) noteWord(m *manager, given word) {
	if m.word.Instance == m.me {
		v.noteStart(m.proc, given)
	}
}

// startsOn is the word on which mysqld may be started now; none where nobody gave one a moment ago.
func (m *manager) startsOn() word {
	if v := m.vouches.counted; m.w.now-v.at <= agent.WordLife {
		return v
	}
	return word{}
}
