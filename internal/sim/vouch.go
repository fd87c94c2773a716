package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// vouches are those that peers gave this primary for one epoch.
type vouches struct {
	epoch            int64
	last             []vouchOf
	asking, watching bool
	peers            map[string]*manager // standing connections
}

type vouchOf struct {
	instance string
	at       time.Duration
}

// given lists those for the present epoch.
func (v *vouches) given(m *manager) []agent.Given {
	if m.view == nil || m.view.Promotion == nil || m.view.Promotion.Epoch != v.epoch {
		return nil
	}
	var out []agent.Given
	for _, g := range v.last {
		out = append(out, agent.Given{Instance: g.instance, At: m.moment(g.at)})
	}
	return out
}

func (v *vouches) note(epoch int64, instance string, at time.Duration) {
	if v.epoch != epoch {
		v.epoch, v.last = epoch, nil
	}
	v.last = slices.DeleteFunc(v.last, func(g vouchOf) bool { return g.instance == instance })
	v.last = append(v.last, vouchOf{instance, at})
}

// freshLease: vouches do not matter before the lease is so old.
const freshLease = core.LeaseGrace - 4*time.Second

// keepVouched asks every peer once a second whether it counts on this primary;
// while the lease is fresh nothing depends on the answers, and nobody is asked.
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
		if m.lease.epoch == 0 || m.w.now-m.lease.renewed > freshLease {
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
				pf.FrozenBelow = 0
			}
			if no := agent.Vouch(pf, m.me, epoch); no != nil && !w.mut.VouchForAnybody {
				w.cover.count("vouch", string(no.Reason))
				reply(func() {})
				return
			}
			w.cover.count("vouch", "given")
			reply(func() {
				if !m.dead {
					m.vouches.note(epoch, name, sent)
				}
			})
		}, func() { delete(m.vouches.peers, name) })
	}
}

// fenceLook is how often it is looked whether this primary has to fence itself.
const fenceLook = 200 * time.Millisecond

// keepFencing fences this primary when nobody stands behind it any more. While the
// lease is fresh nothing is to be looked for.
func (m *manager) keepFencing() {
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
		if m.facts().MustFenceItself() && !m.w.mut.NoSelfFencing {
			m.tell("fences itself")
			m.w.cover.count("manager", "fenced itself")
			m.fenceItself(func() { m.at(fenceLook, tick) })
			return
		}
		m.at(max(fenceLook, m.lease.renewed+core.LeaseGrace-m.w.now), tick)
	}
	m.at(fenceLook, tick)
}

// fenceItself stops writes; a worker that is busy is not waited for long.
func (m *manager) fenceItself(done func()) {
	began, over := false, false
	m.worker.submit(func(free func()) {
		if over {
			free()
			return
		}
		began = true
		m.stopWrites(func(string) { free(); done() })
	})
	m.at(core.FenceLimit/2, func() {
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
