package sim

import (
	"fmt"
	"slices"
	"time"
)

// Result is what came of a run.
type Result struct {
	Seed   uint64
	Faults []Fault
	// Violation is nil when all invariants held.
	Violation *Violation
	// Simulated is how much of the world's time has passed, and Acked how many
	// writes were acknowledged.
	Simulated time.Duration
	Acked     int
	Story     []string
	// Script are the decisions of the operator's that led to a violation, as a story
	// that the tests of core/async run.
	Script string
}

const (
	// recoverWithin is the bound of I7: how long after the last fault a cluster may
	// take to be healthy, with a human's help. A primary that is stopped may wait half
	// of spec.maxStopDelay (30 min) for a successor, and hold the lock on its volume.
	recoverWithin = 20 * time.Minute
	// quietFor is how long it is watched afterwards.
	quietFor = 40 * time.Second
)

// Run plays one seed.
func Run(seed uint64, cover Coverage) Result {
	return play(seed, chooseFaults(seed), &mutation{}, cover, false)
}

// Tell plays one seed and tells its story.
func Tell(seed uint64) Result {
	return play(seed, chooseFaults(seed), &mutation{}, nil, true)
}

func play(seed uint64, faults []Fault, mut *mutation, cover Coverage, tell bool) Result {
	w := newWorld(seed, mut, cover, &story{on: tell})
	w.now = 0
	w.tell("%d instances, %s, failoverDelay %s, lease %t, network volumes %t", w.conf.instances, w.conf.durability.Mode,
		w.conf.delay, w.conf.lease, w.conf.network)
	end := 100 * time.Second
	for _, f := range faults {
		w.push(f.At, nowhere, func() { w.happen(f) })
		w.bursts = append(w.bursts, burst{f.At - 5*time.Second, f.At + 25*time.Second})
		end = max(end, f.At+30*time.Second)
	}
	w.runUntil(end)
	isWell := w.recover()
	if isWell {
		w.archive.finish()
	}
	if isWell && seed%4 == 0 {
		w.stand(seed)
		w.recover()
	} else if seed%4 == 2 && w.failure == nil && w.isHealthy() {
		w.starve(seed)
	}
	r := Result{Seed: seed, Faults: faults, Simulated: w.now, Acked: w.truth.all, Story: w.story.lines}
	if v, ok := w.failure.(*Violation); ok {
		r.Violation, r.Script = v, w.script(v, faults)
	}
	return r
}

// burst is a time in which clients are busy.
type burst struct{ from, to time.Duration }

func (w *world) busy() bool {
	if w.healing && w.now-w.healedAt < 30*time.Second {
		return true
	}
	return slices.ContainsFunc(w.bursts, func(b burst) bool { return b.from <= w.now && w.now < b.to })
}

// recover (I7): when the faults have ended, the cluster is healthy within the
// bound, and stays so without a write to the API; false when it cannot be.
func (w *world) recover() bool {
	if w.failure != nil {
		return false
	}
	w.heal()
	w.healedAt = w.now
	for w.failure == nil && w.now-w.healedAt < recoverWithin {
		w.runUntil(w.now + 2*time.Second)
		w.user.help()
		if w.now-w.healedAt > 30*time.Second && w.isHealthy() && w.truth.lastAck > w.healedAt {
			w.cover.count("end", "healthy")
			w.beQuiet()
			return w.failure == nil
		}
	}
	if w.truth.lied {
		w.cover.count("end", "a disk has lost writes, and a human has to compare the copies")
		return false
	}
	if w.isHopeless() {
		w.cover.count("end", "needs a backup, or to be recreated")
		return false
	}
	w.fail("I7", "not healthy %s after the faults ended: %s", recoverWithin, w.situation())
	return false
}

func (w *world) situation() string {
	s := w.api.cluster().status
	said := fmt.Sprintf("%s, %s: %s", s.Phase, s.Diagnosis, s.Reason)
	if s.Promotion != nil {
		if m := w.managerOf(s.Promotion.Instance); m != nil {
			r := m.report()
			said += fmt.Sprintf("; %s says %s %s: %s", m.me, r.State, r.Reason, r.Message)
		}
	}
	return said
}

// beQuiet fails the run unless a steady state is silent, and stays healthy.
func (w *world) beQuiet() {
	// A preferred primary takes over when the present one has been stable for long enough, and
	// a minute after it was given up as a target, which may be so again when what it watches
	// comes late once more.
	w.runUntil(w.now + 20*time.Second + time.Minute + w.conf.policy.StabilityWindow)
	for n := 0; n < 2 && w.failure == nil && w.api.cluster().status.Return != nil; n++ {
		w.runUntil(w.now + time.Minute + w.conf.policy.StabilityWindow)
	}
	if w.failure != nil {
		return
	}
	before := w.steadyVersion()
	w.runUntil(w.now + quietFor)
	switch {
	case w.failure != nil, w.truth.falseAlarm > w.healedAt:
	case !w.isHealthy():
		w.fail("I7", "healthy, and then no more without a reason: %s", w.situation())
	case !w.haveGrown():
		w.fail("I7", "a claim asks for less than spec.storage.size, and nobody asks for more")
	case w.steadyVersion() != before:
		w.fail("silence", "the API is written to although nothing happens")
	}
}

// steadyVersion changes with every write but the lease's.
func (w *world) steadyVersion() int {
	n := 0
	for k := range kinds {
		if k != kindLease {
			n += len(w.api.logs[k])
		}
	}
	return n
}
