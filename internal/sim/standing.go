package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// standing is a fault of a healthy cluster that does not end by itself, while a
// majority of the instances, the API server and an operator are connected. That is
// what I7 promises something about: another primary takes writes within a bound, or
// this one goes on.
type standing struct {
	name string
	// stays: the primary goes on.
	stays bool
	// mayStay: it goes on where its commits wait for nobody for ever, for it keeps its
	// lease.
	mayStay bool
	// silent: its manager cannot be asked, so that lease or quorum have to be the proof.
	silent bool
	// mayOpen: the primary may as well take writes again itself.
	mayOpen bool
	begin   func(w *world, n *node, s *mysqld)
}

var standings = []standing{
	{name: "its node is off", silent: true, begin: func(_ *world, n *node, _ *mysqld) { n.powerOff() }},
	{name: "its node is cut off", silent: true, begin: func(w *world, n *node, _ *mysqld) { w.leaveOnly(n.machine) }},
	{name: "its node reaches only clients", silent: true, begin: func(w *world, n *node,
		_ *mysqld) {
		w.leaveOnly(n.machine, clientMachine)
	}},
	{name: "its node reaches only clients and the API server", silent: true, mayStay: true,
		begin: func(w *world, n *node, _ *mysqld) {
			w.leaveOnly(n.machine, clientMachine, apiMachine)
		}},
	{name: "its disk stalls", silent: true, begin: func(_ *world, _ *node, s *mysqld) { s.stall() }},
	{name: "its disk stalls, and its manager reaches only the API server", silent: true,
		begin: func(w *world, n *node, s *mysqld) {
			s.stall()
			w.leaveOnly(n.machine, apiMachine)
		}},
	{name: "its volume is full", begin: func(w *world, _ *node, s *mysqld) { w.fill(s.volume, true, false) }},
	{name: "its node reaches only clients and the other instances", stays: true,
		begin: func(w *world, n *node, _ *mysqld) {
			for _, control := range []int{apiMachine, operatorMachine1, operatorMachine2} {
				w.separate(n.machine, control)
			}
		}},
	{name: "nobody reaches the API server", stays: true, begin: func(w *world, _ *node,
		_ *mysqld) {
		w.leaveOnly(apiMachine)
	}},
	{name: "the node of another instance is off", stays: true, begin: func(w *world, n *node, _ *mysqld) {
		for _, other := range w.nodes {
			if other != n && len(other.order) == 1 {
				other.powerOff()
				return
			}
		}
	}},
	{name: "neither its node nor the other instances' reach API server and operators", stays: true,
		begin: func(w *world, _ *node, _ *mysqld) {
			for _, n := range w.nodes {
				for _, control := range []int{apiMachine, operatorMachine1, operatorMachine2} {
					w.separate(n.machine, control)
				}
			}
		}},
}

// unseeing is drawn by dice of its own.
var unseeing = standing{name: "another instance does not reach the API server, and its mysqld dies", mayOpen: true,
	begin: func(w *world, n *node, s *mysqld) {
		if other, _ := w.machineBesides(n.machine); other != nowhere {
			w.separate(other, apiMachine)
		}
		s.end(true)
	}}

// machineBesides is a machine with instances other than this one, and how many it has.
func (w *world) machineBesides(this int) (other, instances int) {
	other = nowhere
	for _, name := range w.api.cluster().status.InstanceNames {
		switch s := w.serverOf(name); {
		case s == nil || s.machine == this:
		case other == nowhere, other == s.machine:
			other, instances = s.machine, instances+1
		}
	}
	return other, instances
}

// drawStanding chooses a fault for a seed.
func drawStanding(r *rand.Rand, seed uint64) standing {
	f := standings[r.IntN(len(standings))]
	if rand.New(rand.NewPCG(seed, 37)).IntN(8) == 0 {
		return unseeing
	}
	return f
}

// stall makes the server hang. The next one on the same volume does not get to answer either.
func (s *mysqld) stall() {
	s.volume.stalled = true
	s.suspend()
}

// leaveOnly cuts a machine off from all but some.
func (w *world) leaveOnly(machine int, reached ...int) {
	for other := range w.machines {
		if other != machine && !slices.Contains(reached, other) {
			w.separate(machine, other)
		}
	}
}

func (w *world) separate(a, b int) {
	w.cut(a, b)
	w.cut(b, a)
}

const (
	// takeOverWithin is the bound of I7 while a fault stands, beside spec.failoverDelay:
	// the lease's 15 s, what it takes to notice, an election, and clients that wait 10 s
	// for a server that is gone and 5 s for a connection.
	takeOverWithin = 45 * time.Second
	// longestGap between acknowledged writes to a primary that goes on.
	longestGap = 12 * time.Second
)

// stand has a fault happen to a healthy cluster that does not end by itself.
func (w *world) stand(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	f := drawStanding(r, seed)
	p := w.api.cluster().status.Promotion
	n, s := w.nodeOf(p.Node), w.serverOf(p.Instance)
	if n == nil || s == nil || len(n.order) != 1 {
		return
	}
	if f.mayStay && !w.api.cluster().spec.durability.Mode.WaitsForEver() {
		f.stays = true
	}
	if !w.canStand(f, p) {
		return
	}
	w.healing = false
	w.bursts = append(w.bursts, burst{w.now, w.now + 5*time.Minute})
	w.runUntil(w.now + leisurely + w.jitter(10*time.Second)) // until all clients are busy
	if w.failure != nil || !w.isHealthy() || w.api.cluster().status.Promotion.Epoch != p.Epoch {
		return
	}
	grows := ""
	if n := w.api.cluster().spec.instances; n < most && r.IntN(3) == 0 {
		grows = ", while it grows"
		w.hinderGrowth(r.IntN(2) == 0)
		w.scaleTo(min(n+1+r.IntN(2), most))
		w.runUntil(w.now + 10*time.Second + w.jitter(30*time.Second))
		if w.failure != nil || w.api.cluster().status.Diagnosis != core.PrimaryHealthy ||
			w.api.cluster().status.Promotion.Epoch != p.Epoch {
			return
		}
		w.cover.count("truth", "a standing fault while the cluster grows")
	}
	w.tell("STANDING FAULT: %s%s", f.name, grows)
	w.beforeNetworkChange()
	f.begin(w, n, s)
	w.listen()
	if f.stays {
		w.goesOn(f, p)
	} else {
		w.isReplaced(f, p)
	}
}

// canStand reports whether the cluster must get over the fault, by what is promised.
func (w *world) canStand(f standing, p *core.Promotion) bool {
	c := w.api.cluster()
	left, forEver := len(c.status.Members)-1, c.spec.durability.Mode.WaitsForEver()
	switch {
	case left < 2 || f.stays && len(w.conf.policy.Preferred) > 0:
		return false
	case forEver:
		lost := 1 // who takes over acknowledges nothing
		if f.mayOpen {
			_, lost = w.machineBesides(w.serverOf(p.Instance).machine) // and the primary's mysqld is started again
		}
		return p.LosslessSince > 0 && p.RequiredAcks > 0 && left-lost >= c.spec.durability.Wished(left+1)
	}
	return c.spec.lease && p.Leased || !f.silent && !f.stays
}

// isReplaced fails the run unless somebody else acknowledges writes within the bound.
func (w *world) isReplaced(f standing, p *core.Promotion) {
	began := w.now
	bound := takeOverWithin + w.conf.delay
	for w.failure == nil && w.now < began+bound {
		w.runUntil(w.now + 100*time.Millisecond)
		for epoch, by := range w.truth.ackers {
			if epoch > p.Epoch && (by != p.Instance || f.mayOpen) {
				w.cover.count("standing", f.name)
				w.cover.outage(f.name, w.now-began-w.conf.delay)
				return
			}
		}
		if f.mayOpen && w.truth.lastAck > began+longestGap { // it was started again in place
			w.cover.count("standing", f.name)
			return
		}
	}
	w.fail("I7", "%s: nobody else takes writes %s later: %s", f.name, bound, w.situation())
}

// goesOn fails the run unless the primary acknowledges writes all the time, and stays primary.
func (w *world) goesOn(f standing, p *core.Promotion) {
	began := w.now
	for w.failure == nil && w.now < began+40*time.Second {
		w.runUntil(w.now + time.Second)
		if gap := w.now - max(w.truth.lastAck, began); gap > longestGap {
			w.fail("I7", "%s: no write is acknowledged for %s: %s", f.name, gap, w.situation())
		}
	}
	if now := w.api.cluster().status.Promotion; w.failure == nil && now.Instance != p.Instance {
		w.fail("I7", "%s, and %s was replaced by %s (%s) without need", f.name, p.Instance, now.Instance, now.Proof)
	}
	w.cover.count("standing", f.name)
}

// outage counts how long it took until somebody else acknowledged a write, without
// spec.failoverDelay.
func (c Coverage) outage(of string, took time.Duration) {
	for _, most := range []time.Duration{2 * time.Second, 5 * time.Second, 10 * time.Second,
		18 * time.Second, 25 * time.Second} {
		if took <= most {
			c.count("another primary acknowledges writes", fmt.Sprintf("%s: within %2.0f s", of, most.Seconds()))
			return
		}
	}
	c.count("another primary acknowledges writes", of+": later")
}

func standingNames() []string {
	var out []string
	for _, f := range standings {
		out = append(out, f.name)
	}
	return append(out, unseeing.name)
}
