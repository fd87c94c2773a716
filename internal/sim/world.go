package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cnmsql.co/internal/core"
)

// world is one run: everything that is true in it.
type world struct {
	queue
	now  time.Duration
	rnd  *rand.Rand
	rare *rand.Rand // of what was added later: it does not move the rest
	// cache tells how much of a page cache is lost.
	cache *rand.Rand
	conf  scenario
	mut   *mutation

	machines []*machine
	links    []link
	api      *apiServer
	nodes    []*node
	ops      []*operator
	clients  []*client
	user     *user
	truth    *truth
	cover    Coverage
	story    *story
	archive  *archiving // nil where nothing is archived
	outside  *mysqld    // the external server that is followed; nil where none is

	serial   int // gives names to Pods, volumes, boots and operators
	failure  error
	seen     decisions
	healing  bool
	heals    int // how often all faults have ended
	healedAt time.Duration
	bursts   []burst
	// noRoom: no node has any for a Pod whose volume is new; slowClones: to copy data
	// takes minutes.
	noRoom, slowClones bool
	// noQuota: no claim may ask for more.
	noQuota bool
	// stays: a Pod goes back to the node of its volume, wherever else it could.
	stays bool
}

// scenario is what a seed sets the stage with.
type scenario struct {
	instances  int
	durability core.Durability
	delay      time.Duration // failoverDelay
	switchover time.Duration // maxSwitchoverDelay
	pause      time.Duration // maxSwitchoverPause
	maxStop    time.Duration
	// smartShutdown is how long a replica that is stopped waits for its clients.
	smartShutdown time.Duration
	ackTimeout    time.Duration
	lease         bool
	policy        core.FailoverPolicy
	network       bool   // volumes are reachable from every node
	follows       string // the server outside that the cluster begins with; "" for none
}

const clusterName = "c"

// mostDrift of a machine's monotonic clock, in parts per million. Two of them differ
// by less than the one in a thousand that the operator allows for.
const mostDrift = 450

func newWorld(seed uint64, mut *mutation, cover Coverage, story *story) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), rare: rand.New(rand.NewPCG(seed, 5)), mut: mut,
		cover: cover, story: story}
	w.cache = rand.New(rand.NewPCG(seed, 23))
	w.conf = w.chooseScenario()
	w.conf.network = w.conf.network || hasUnseen(seed)
	if hasBounds(seed) {
		w.conf.bound(seed)
	}
	if hasCacheDrama(seed) { // only there anything is promised of it
		w.conf.durability.Mode = core.DurabilityQuorum
	}
	w.conf.pause = []time.Duration{0, 2 * time.Second, 5 * time.Second,
		5 * time.Second}[rand.New(rand.NewPCG(seed, 17)).IntN(4)]
	if r := rand.New(rand.NewPCG(seed, 29)); r.IntN(4) == 0 {
		w.conf.smartShutdown = []time.Duration{5 * time.Second, 20 * time.Second}[r.IntN(2)]
	}
	w.addMachine("api")
	w.addMachine("operator-host-1")
	w.addMachine("operator-host-2")
	w.addMachine("clients")
	count := max(w.conf.instances+w.rnd.IntN(2), 2)
	for i := range count {
		w.addMachine(fmt.Sprintf("node-%d", i+1))
	}
	w.conf.follows = w.chooseOutside(seed)
	w.links = make([]link, len(w.machines)*len(w.machines))
	w.api = newAPIServer(w)
	w.truth = newTruth(w)
	if w.conf.follows != "" {
		w.startOutside(seed)
	}
	for i := range count {
		w.nodes = append(w.nodes, newNode(w, firstNode+i))
	}
	w.user = &user{w: w}
	w.startOperator(operatorMachine1)
	w.startClients()
	if hasArchive(seed) && w.outside == nil {
		w.archive = newArchiving(w, seed)
	}
	return w
}

func (w *world) addMachine(name string) {
	m := &machine{name: name}
	m.clock.wall = time.Duration(w.rnd.IntN(4000)-2000) * time.Millisecond
	m.clock.drift = int64(w.rnd.IntN(2*mostDrift+1)) - mostDrift
	if w.mut.ClocksDrift {
		m.clock.drift *= 1000
	}
	w.machines = append(w.machines, m)
}

// chooseScenario draws the cluster of the run, and how its user wants it. Quorum is where most is
// promised, and gets half of the runs.
func (w *world) chooseScenario() scenario {
	r := w.rnd
	s := scenario{
		instances:  []int{3, 3, 3, 3, 3, 2, 5, 1, 4}[r.IntN(9)],
		delay:      []time.Duration{0, 0, 0, 2 * time.Second, 10 * time.Second}[r.IntN(5)],
		switchover: []time.Duration{0, 5 * time.Second, 30 * time.Second, 30 * time.Second}[r.IntN(4)],
		maxStop:    []time.Duration{30 * time.Second, 60 * time.Second, 1800 * time.Second}[r.IntN(3)],
		ackTimeout: []time.Duration{time.Second, 10 * time.Second}[r.IntN(2)],
		lease:      r.IntN(5) > 0,
		network:    r.IntN(5) == 0,
	}
	s.durability = w.chooseDurability()
	if r.IntN(6) == 0 {
		s.policy.Preferred = []string{clusterName + "-2"}
		s.policy.StabilityWindow = 20 * time.Second
	}
	return s
}

func (w *world) chooseDurability() core.Durability {
	mode := []core.DurabilityMode{core.DurabilityQuorum, core.DurabilityQuorum, core.DurabilityQuorum,
		core.DurabilityAsync, core.DurabilityPreferred, core.DurabilityRequired}[w.rnd.IntN(6)]
	d := core.Durability{Mode: mode}
	if mode.Awaits() && w.rnd.IntN(4) == 0 {
		d.Min = 1 + w.rnd.IntN(2)
	}
	return d
}

// at has something happen after d, on a machine.
func (w *world) at(d time.Duration, on int, do func()) {
	w.push(w.now+d, on, do)
}

func (w *world) jitter(most time.Duration) time.Duration {
	return time.Duration(w.rnd.Int64N(int64(most)))
}

// oneIn is true once in n times.
func (w *world) oneIn(n int) bool { return w.rnd.IntN(n) == 0 }

// clockOf is what a machine's time.Now returns.
func (w *world) clockOf(machine int) time.Time { return w.machines[machine].clock.now(w.now) }

func (w *world) name(prefix string) string {
	w.serial++
	return fmt.Sprintf("%s-%d", prefix, w.serial)
}

// fail ends the run: an invariant does not hold.
func (w *world) fail(invariant, format string, args ...any) {
	if w.failure == nil {
		w.failure = &Violation{Invariant: invariant, What: fmt.Sprintf(format, args...), At: w.now}
		w.tell("VIOLATION of %s: %s", invariant, w.failure)
	}
}

// Violation is an invariant that did not hold.
type Violation struct {
	Invariant string
	What      string
	At        time.Duration
}

func (v *Violation) Error() string { return v.Invariant + ": " + v.What }

// runUntil lets everything happen that happens before the end.
func (w *world) runUntil(end time.Duration) {
	for w.failure == nil && len(w.events) > 0 && w.events[0].at <= end {
		e := w.pop()
		w.now = e.at
		if e.on != nowhere {
			m := w.machines[e.on]
			if m.off {
				continue
			}
			if m.pausedUntil > w.now { // it goes on then
				e.at = m.pausedUntil
				w.put(e)
				continue
			}
		}
		e.do()
	}
	if w.failure == nil {
		w.now = end
	}
}
