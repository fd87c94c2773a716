package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// here is where what is written to the volume is cached.
func (m *manager) here() agent.Residence {
	boot := m.w.machines[m.machine].boots
	if m.w.mut.AnyBoot {
		boot = 0
	}
	mount := m.volume.mounts
	if m.w.mut.AnyMount {
		mount = 0
	}
	return agent.Residence{Boot: fmt.Sprint("boot ", boot), Mount: fmt.Sprint("mount ", mount), Node: m.node.name}
}

// noteStart remembers what became of what was received and not flushed. drops says that
// mysqld is to start without its relay logs.
func (m *manager) noteStart(drops bool) {
	v := m.volume
	before := v.record.cached
	failed := v.failed && !m.w.mut.WriteErrorsIgnored
	v.record.cached = before.Starts(agent.Start{Here: m.here(), Failed: failed, Drops: drops})
	if v.failed { // what could not be written is gone with the process that had read it
		v.loseCache()
	}
	v.failed = false
	switch lacks := v.record.cached.MayLack; {
	case lacks && m.w.mut.LackForgotten && before.MayLack:
		v.record.cached.MayLack = false
	case lacks && !before.MayLack:
		m.tell("may lack what it acknowledged")
		m.w.cover.count("manager", "may lack what it acknowledged")
	}
}

func (m *manager) noteReceiving() {
	r := &m.volume.record
	r.viewEpoch = max(r.viewEpoch, m.latest.Epoch)
	r.cached = r.cached.Receives(m.here())
}

func (m *manager) becomeWhole(done func(string)) {
	m.volume.record.cached = m.volume.record.cached.Whole()
	m.w.cover.count("manager", "has all again that it acknowledged")
	m.update()
	done("")
}

// flushRelayLogs writes back what mysqld has received, once it has ended, and notes so on the
// volume. Where that fails, the kernel tells it once; the manager notes the failure, and the page
// cache is lost.
func (m *manager) flushRelayLogs() {
	v := m.volume
	isUp := m.proc != nil && !m.proc.dead
	if !m.locked || isUp || v.stalled || v.db == nil || v.record.cached.In != m.here() {
		return
	}
	if v.failed { // it tells once
		v.record.cached, v.failed = v.record.cached.Starts(agent.Start{Here: m.here(), Failed: true}), false
		v.loseCache()
		return
	}
	if !m.w.mut.MarkWithoutFlush {
		v.db.cached.unflushed = 0
	}
	v.record.cached = v.record.cached.Flushed()
}

// pageCache of a database's relay logs.
type pageCache struct {
	// unflushed is how many of the last transactions of the relay log are nowhere else.
	unflushed int
	// lost went with a page cache.
	lost gtid.Set
}

// loseCache loses some of the last that was received and not flushed. How much, is drawn: nobody
// knows how much the operating system had written.
func (v *volume) loseCache() {
	d := v.db
	if d == nil {
		return
	}
	n := min(d.cached.unflushed, len(d.relay))
	d.cached.unflushed = 0
	if n > 0 {
		n = v.w.cache.IntN(n + 1)
	}
	if n == 0 {
		return
	}
	lost := d.relay[len(d.relay)-n:]
	d.relay = d.relay[: len(d.relay)-n : len(d.relay)-n]
	for _, t := range lost {
		d.retrieved, d.cached.lost = d.retrieved.Subtract(t.set), d.cached.lost.Union(t.set)
	}
	v.w.tell("%s: %d transactions that it had received are gone, the last %s", v.instance, n, lost[n-1].set)
	v.w.cover.count("truth", "a page cache was lost, and what was received with it")
}

// loseCaches loses the page caches of a node that loses its power.
func (n *node) loseCaches() {
	n.w.machines[n.machine].boots++
	for _, v := range n.w.truth.dbs {
		if v.node == n.name && !v.gone {
			v.loseCache()
		}
	}
}

const (
	aheadLosesPower = "the node of the replica that is ahead is off for a moment"
	allLosePower    = "all nodes are off for a moment"
	mountedAnew     = "a volume is mounted anew, without its last writes"
	cannotWriteBack = "a volume cannot write back what was received"
	stoppedAndOff   = "the replica that is ahead is stopped, and its node loses power"
	slowlyBack      = "the node of the replica that is ahead is off for a moment, and what it is sent then comes late"
	twiceStarted    = "the node of the replica that is ahead is off, and its mysqld ends again"
)

func init() {
	faultKinds = append(faultKinds,
		faultKind{aheadLosesPower, 0, (*world).powerOffAhead},
		faultKind{allLosePower, 0, (*world).powerOffAll},
		faultKind{mountedAnew, 0, (*world).mountAnew},
		faultKind{cannotWriteBack, 0, (*world).failWriteBack},
		faultKind{stoppedAndOff, 0, (*world).stopAndPowerOff},
		faultKind{slowlyBack, 0, (*world).powerOffAndDelay},
		faultKind{twiceStarted, 0, (*world).powerOffAndKill},
	)
}

const lagging = "replicas lag, each in its own way"

// cacheDramas are the dramas in which a page cache is lost that holds what only one replica has
// received and not applied, before the primary fails.
var cacheDramas = [][]scene{
	before(aheadLosesPower, 700*time.Millisecond, "node is cut off"),
	before(aheadLosesPower, 5*time.Second, "mysqld crashes"),
	before(aheadLosesPower, 10*time.Second, "node is cut off"),
	before(twiceStarted, 700*time.Millisecond, "node is cut off"),
	before(mountedAnew, 700*time.Millisecond, "node is cut off"),
	before(mountedAnew, 4*time.Second, "node is cut off"),
	before(cannotWriteBack, 400*time.Millisecond, "node is cut off"),
	before(stoppedAndOff, 3*time.Second, "node is cut off"),
	before(slowlyBack, 6*time.Second, "node is cut off"),
	before(slowlyBack, 4*time.Second, "node is cut off"),
	before(allLosePower, 5*time.Second, "node loses power"),
}

// before has one thing happen to a replica that alone has received what its primary was sent,
// and within some time another to the primary.
func before(first string, within time.Duration, then string) []scene {
	return []scene{{kind: lagging}, {after: 300 * time.Millisecond, within: time.Second, kind: first},
		{within: within, kind: then, primary: true}}
}

// hasCacheDrama reports whether the run of the seed gets such a drama beside all else: one seed of
// 16 does.
func hasCacheDrama(seed uint64) bool { return seed%16 == 9 }

func withCacheDrama(seed uint64, out []Fault) []Fault {
	if !hasCacheDrama(seed) {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 23))
	at := 30*time.Second + time.Duration(r.Int64N(int64(40*time.Second)))
	out = append(out, act(r, cacheDramas[r.IntN(len(cacheDramas))], &at)...)
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// ahead is the replica that has received and not applied the most; nil where there is none.
func (w *world) ahead() *mysqld {
	var best *mysqld
	p := w.api.cluster().status.Promotion
	for _, s := range w.servers() {
		if p == nil || s.manager.me == p.Instance || s.volume.stage != stagePopulated {
			continue
		}
		if best == nil || len(s.db.relay) > len(best.db.relay) {
			best = s
		}
	}
	return best
}

func (w *world) offFor(n *node, took time.Duration) {
	if w.machines[n.machine].off {
		return
	}
	w.tell("%s is off for %s", n.name, took)
	w.beforeNetworkChange()
	n.powerOff()
	w.later(took, func() { w.tell("%s is on", n.name); n.powerOn() })
}

func (w *world) powerOffAhead(d *dice) {
	if s := w.ahead(); s != nil {
		w.offFor(s.manager.node, d.between(200*time.Millisecond, 4*time.Second))
	}
}

func (w *world) powerOffAndKill(d *dice) {
	s := w.ahead()
	if s == nil {
		return
	}
	took, in := d.between(200*time.Millisecond, 2*time.Second), s.manager.me
	w.offFor(s.manager.node, took)
	for i := range 8 { // whenever it runs again
		w.at(took+time.Duration(i+1)*500*time.Millisecond, nowhere, func() {
			if s := w.serverOf(in); s != nil && s.accepting && w.cache.IntN(2) == 0 {
				w.tell("mysqld of %s is killed", in)
				s.end(true)
			}
		})
	}
}

func (w *world) powerOffAll(d *dice) {
	for _, n := range w.nodes {
		w.offFor(n, d.between(time.Second, 15*time.Second))
	}
}

func (w *world) mountAnew(*dice) {
	s := w.ahead()
	if s == nil {
		return
	}
	s.manager.tell("the container crashes, and its volume is mounted anew")
	s.manager.die(false)
	s.volume.mounts++
	s.volume.loseCache()
}

func (w *world) failWriteBack(*dice) {
	s := w.ahead()
	if s == nil {
		return
	}
	w.tell("the volume of %s cannot write back, and its mysqld is killed", s.manager.me)
	s.volume.failed = true
	s.end(true)
}

// stopAndPowerOff deletes the Pod of the replica that is ahead, which is an orderly stop, and
// takes the power of its node as soon as that is over.
func (w *world) stopAndPowerOff(d *dice) {
	s := w.ahead()
	if s == nil {
		return
	}
	m, took, heals := s.manager, d.between(time.Second, 5*time.Second), w.heals
	m.tell("the Pod is deleted")
	w.api.deletePod(m.me, "", false)
	var look func()
	look = func() {
		switch {
		case w.heals != heals:
		case m.dead:
			w.offFor(m.node, took)
		default:
			w.at(20*time.Millisecond, nowhere, look)
		}
	}
	look()
}

// powerOffAndDelay takes the power of the node of the replica that is ahead for a moment, and
// delays what the primary sends to it. The replica receives again, and has not got what it had
// before.
func (w *world) powerOffAndDelay(d *dice) {
	s, p := w.ahead(), w.api.cluster().status.Promotion
	if s == nil || w.nodeOf(p.Node) == nil || p.Node == s.manager.node.name {
		return
	}
	from, to := w.nodeOf(p.Node).machine, s.machine
	w.offFor(s.manager.node, d.between(200*time.Millisecond, time.Second))
	w.link(from, to).slow = d.between(500*time.Millisecond, 2*time.Second)
	w.later(15*time.Second, func() { w.link(from, to).slow = 0 })
}
