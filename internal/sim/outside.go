package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// outsideName is the external server, by which it is reached, too.
const outsideName = "outside"

// FirstOutside is the first of the seeds of clusters that begin with the data of a server outside, and follow it.
const FirstOutside = 1 << 32

// chooseOutside adds the machine of a server outside, if the seed has one, and returns the server's name. The machine
// never fails; the network to it does.
func (w *world) chooseOutside(seed uint64) string {
	if seed < FirstOutside {
		return ""
	}
	w.addMachine(outsideName)
	return outsideName
}

// startOutside starts that server, and has the cluster take over from it at some time.
func (w *world) startOutside(seed uint64) {
	s := &mysqld{w: w, db: newDatabase(w, outsideName), volume: &volume{stage: stagePopulated},
		manager: &manager{w: w, me: outsideName, dead: true}, machine: len(w.machines) - 1, accepting: true}
	s.io = &receiver{s: s}
	s.volume.db = s.db
	w.outside = s
	for range 20 {
		w.writeOutside()
	}
	w.at(time.Second, s.machine, w.tickOutside)
	after := rand.New(rand.NewPCG(seed, 31)).Int64N(int64(2 * time.Minute))
	w.at(30*time.Second+time.Duration(after), nowhere, w.takeOver)
}

func (w *world) writeOutside() {
	t := w.outside.db.append()
	w.outside.db.commit(t)
}

// tickOutside has the application write on the server outside until it is stopped to move to the cluster.
func (w *world) tickOutside() {
	if w.api.cluster().spec.follows == "" {
		return
	}
	w.writeOutside()
	w.outside.pump()
	w.at(50*time.Millisecond+w.jitter(3*time.Second), w.outside.machine, w.tickOutside)
}

// takeOver is the user's wish: from now on nobody writes outside.
func (w *world) takeOver() {
	if w.outside != nil && w.api.cluster().spec.follows != "" {
		w.tell("the user has the cluster take over from the server outside")
		w.editSpec(func(s *clusterSpec) { s.follows = "" })
	}
}

// followOutside is what follow does, for the server outside.
func (s *mysqld) followOutside() {
	s.io.stop()
	if s.db.source == "" || !s.applying {
		s.db.relay, s.db.retrieved = nil, s.db.retrieved.Subtract(s.db.retrieved)
	}
	s.db.source, s.db.sourceUUID = outsideName, ""
	s.startApplying()
	s.io.start()
	s.changed()
}

// becomeFollower makes the instance the primary that follows the server outside.
func (m *manager) becomeFollower(a agent.BecomeFollower, done func(string)) {
	m.volume.record.wasPrimaryEpoch = a.Epoch
	if m.mayWrite || !m.facts().MayOpen(a.Epoch) {
		done("the promotion was withdrawn, or the lease has run out meanwhile")
		return
	}
	m.writable, m.follows = a.Epoch, a.Server
	m.writableN++
	m.tell("follows the server outside in epoch %d", a.Epoch)
	m.update()
	m.wakeLease()
	m.publish()
	m.askOutside()
	done("")
}

// askOutside asks the server what it has executed, now and then while this instance follows it.
func (m *manager) askOutside() {
	epoch := m.writable
	if m.dead || m.follows == "" {
		return
	}
	again := func() {
		m.at(agent.SourceEvery, func() {
			if m.writable == epoch {
				m.askOutside()
			}
		})
	}
	generation := m.view.Generation
	m.w.call(m.machine, m.w.outside.machine, agent.SourceLimit, func(reply func(func())) {
		executed, writes := m.w.outside.db.executed, m.w.api.cluster().spec.follows != ""
		reply(func() {
			if m.writable == epoch && m.follows != "" {
				m.source = &core.Source{Name: m.follows, Generation: generation, Writable: writes, Executed: executed}
				m.update()
			}
			again()
		})
	}, func() {
		if m.writable == epoch && m.follows != "" {
			m.source = &core.Source{Name: m.follows, Problem: "timeout"}
			m.update()
		}
		again()
	})
}

// followsAs is the server that this instance follows as the primary, or that the primary is to follow.
func (m *manager) followsAs() string {
	return m.view.FollowedBy(m.writable, m.follows)
}

func (m *manager) sourceNow() *core.Source {
	if m.follows == "" || m.source == nil {
		return nil
	}
	out := *m.source
	out.HeldBy(m.server)
	return &out
}

// checkFollowed (I6): nobody diverges by what the server outside has executed while the cluster follows it: whoever
// is the primary gets that as well.
func (tr *truth) checkFollowed(m *manager, d *agent.Decision) {
	if tr.w.outside != nil && m.view.Following() != "" &&
		slices.Contains(d.Errant.Sources(), tr.w.outside.db.uuid) {
		tr.w.fail("I6", "%s takes transactions of the server outside for errant: %s", m.me, d.Errant)
	}
}

// checkTakeOver (I2): the cluster takes over with all that was executed outside, and enough of its members hold
// that. From then on it is acknowledged as any write of its own.
func (v *verdict) checkTakeOver(before, after *core.Promotion) {
	all := v.w.outside.db.executed
	holdsAll := func(of *volume) bool {
		return of.instance == after.Instance && !of.gone && of.db != nil && of.db.holds().Contains(all)
	}
	switch {
	case before.Instance != after.Instance, !before.FollowsServer(), after.FollowsServer():
		v.fail("I1", "%s takes over, and %s is the primary", after.Instance, before.Instance)
	case !slices.ContainsFunc(v.dbs, holdsAll):
		v.fail("I2", "%s takes over, and lacks what was executed outside", after.Instance)
	}
	v.onceWritten(func() {
		v.w.cover.count("truth", "taken over")
		if !v.mode.IsOnReplicas() || v.edited || v.lied {
			return
		}
		for _, t := range v.w.outside.db.binlog {
			t.acked, t.strict, t.holders = true, false, v.holdersOf(t)
			t.members = max(1, len(v.w.api.cluster().status.Members))
			v.must = v.must.Union(t.set)
			v.truth.acked = append(v.truth.acked, t)
		}
	})
}
