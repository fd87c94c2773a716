package sim

import (
	"math/rand/v2"
	"time"
)

// Fault is something that happens to somebody at a moment. What exactly is
// decided when it happens, from its dice.
type Fault struct {
	At   time.Duration
	Kind string
	// Dice choose whom and how long.
	Dice [4]uint32
}

// faultKind is what can happen; a larger weight happens more often.
type faultKind struct {
	name   string
	weight int
	do     func(*world, *dice)
}

// dice are a fault's own random numbers: leaving another fault out does not
// change them.
type dice struct {
	left []uint32
}

func (d *dice) upTo(n int) int {
	v := d.left[0]
	d.left = append(d.left[1:], v*2654435761+1)
	return int(v>>3) % n
}

func (d *dice) between(from, to time.Duration) time.Duration {
	return from + (to-from)*time.Duration(d.upTo(1000))/1000
}

var faultKinds []faultKind

func init() {
	faultKinds = []faultKind{
		{"mysqld crashes", 10, (*world).crashMysqld},
		{"mysqld hangs", 6, (*world).hangMysqld},
		{"manager crashes", 5, (*world).crashManager},
		{"node loses power", 5, (*world).powerLoss},
		{"node loses power and is tainted", 4, (*world).powerLossTainted},
		{"node is paused", 5, (*world).pauseNode},
		{"node is cut off", 7, (*world).isolateNode},
		{"node cannot reach the API server", 5, (*world).cutFromAPI},
		{"node cannot reach the operator", 4, (*world).cutFromOperator},
		{"two nodes are cut apart", 5, (*world).cutPair},
		{"one direction is cut", 6, (*world).cutOneWay},
		{"the network is split", 4, (*world).split},
		{"the API server is away", 4, (*world).apiAway},
		{"acknowledgements are late", 8, (*world).lateAcks},
		{"replicas cannot reach the primary", 5, (*world).cutFromReplicas},
		{"one replica receives late", 4, (*world).lateReplica},
		{"replicas lag, each in its own way", 4, (*world).lagBoth},
		{"all appliers stop with an error", 2, (*world).breakAppliers},
		{"the primary and one replica are cut off together", 4, (*world).cutTogether},
		{"node cannot reach the control plane", 4, (*world).cutFromControl},
		{"node reaches only the API server", 3, (*world).reachOnlyAPI},
		{"the operators cannot reach the API server", 3, (*world).cutOperators},
		{"a link is slow", 3, (*world).slowLink},
		{"the operator crashes", 6, (*world).crashOperator},
		{"the operator crashes after its next status", 5, (*world).crashAfterWrite},
		{"two operators are at work", 5, (*world).twoOperators},
		{"the operator is paused", 3, (*world).pauseOperator},
		{"a wall clock jumps", 3, (*world).jumpClock},
		{"a switchover is asked for", 9, (*world).wishSwitchover},
		{"spec.instances is changed", 4, (*world).scale},
		{growsInVain, 0, (*world).growInVain},
		{"a Pod is deleted", 7, (*world).deletePod},
		{"a Pod is deleted by force", 6, (*world).deletePodByForce},
		{"a Pod and its volume are deleted", 4, (*world).loseVolume},
		{"a volume is full", 3, (*world).fillVolume},
		{"a node is drained", 4, (*world).drain},
		{"a Pod is annotated to demote", 3, (*world).annotateDemote},
		{"a Pod is fenced", 3, (*world).fencePod},
		{"an instance is to be recreated", 2, (*world).wishReinit},
		{"durability is changed", 2, (*world).editDurability},
		{"the Pod template is changed", 3, (*world).editTemplate},
		{"an applier is slow", 4, (*world).slowApplier},
		{"binary logs are purged", 3, (*world).purgeLogs},
		{"an applier stops with an error", 2, (*world).breakApplier},
		{"somebody writes to a replica", 2, (*world).writeToReplica},
		{"a server has lost its last writes", 1, (*world).turnBack},
		{"the lease is deleted", 1, (*world).deleteLease},
	}
}

// chooseFaults sets what happens in a run; it does not depend on the world.
func chooseFaults(seed uint64) []Fault {
	r := rand.New(rand.NewPCG(seed, 2))
	at := 20*time.Second + time.Duration(r.Int64N(int64(60*time.Second)))
	if r.IntN(4) == 0 { // while it is being made
		at = 3*time.Second + time.Duration(r.Int64N(int64(17*time.Second)))
	}
	var out []Fault
	for range 1 + r.IntN(7) {
		if r.IntN(2) == 0 {
			out = append(out, drama(r, &at)...)
		} else {
			out = append(out, Fault{At: at, Kind: anyFault(r), Dice: roll(r)})
		}
		at += gap(r)
	}
	out = append(out, chooseMembers(seed, out[0].At)...)
	return withSizes(seed, withCacheDrama(seed, withUnseen(seed, withRestore(seed, withRare(seed, out)))))
}

const growsInVain = "spec.instances grows in vain"

// chooseMembers returns, for some seeds, that the cluster grows all the while, or that a member
// loses its data just before the primary fails; nil for the others. It draws by itself, so that
// what else happens in a run does not depend on it.
func chooseMembers(seed uint64, begin time.Duration) []Fault {
	r := rand.New(rand.NewPCG(seed, 4))
	begin = max(0, begin-time.Duration(r.Int64N(int64(20*time.Second))))
	switch r.IntN(8) {
	case 0:
		return []Fault{{At: begin, Kind: growsInVain, Dice: roll(r)}}
	case 1:
		return act(r, losses[r.IntN(len(losses))], &begin)
	}
	return nil
}

func roll(r *rand.Rand) [4]uint32 {
	return [4]uint32{r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32()}
}

func anyFault(r *rand.Rand) string {
	total := 0
	for _, k := range faultKinds {
		total += k.weight
	}
	n := r.IntN(total)
	for _, k := range faultKinds {
		if n -= k.weight; n < 0 {
			return k.name
		}
	}
	return ""
}

func gap(r *rand.Rand) time.Duration {
	most := []time.Duration{200 * time.Millisecond, 4 * time.Second, 20 * time.Second, 90 * time.Second}[r.IntN(4)]
	return time.Duration(r.Int64N(int64(most)))
}

func (w *world) happen(f Fault) {
	for _, k := range faultKinds {
		if k.name == f.Kind {
			w.tell("FAULT: %s", f.Kind)
			w.cover.count("fault", f.Kind)
			w.truth.meddled = w.truth.meddled || !isPlain(f.Kind)
			k.do(w, &dice{left: f.Dice[:]})
		}
	}
}

// pickInstance is the primary as often as not.
func (w *world) pickInstance(d *dice) string {
	s := &w.api.cluster().status
	if p := s.Promotion; p != nil && d.upTo(2) == 0 {
		return p.Instance
	}
	if len(s.InstanceNames) == 0 {
		return clusterName + "-1"
	}
	return s.InstanceNames[d.upTo(len(s.InstanceNames))]
}

// pickNode is where that instance is.
func (w *world) pickNode(d *dice) *node {
	instance := w.pickInstance(d)
	if p := w.api.pod(instance); p != nil && w.nodeOf(p.node) != nil {
		return w.nodeOf(p.node)
	}
	return w.nodes[d.upTo(len(w.nodes))]
}

// later undoes a fault, unless all of them were undone before.
func (w *world) later(d time.Duration, undo func()) {
	heals := w.heals
	w.at(d, nowhere, func() {
		if w.heals == heals {
			undo()
		}
	})
}

func (w *world) crashMysqld(d *dice) {
	in := w.pickInstance(d)
	if s := w.serverOf(in); s != nil {
		w.tell("mysqld of %s is killed", in)
		s.end(true)
	}
}

func (w *world) hangMysqld(d *dice) {
	in := w.pickInstance(d)
	if s := w.serverOf(in); s != nil && !s.stopped {
		took := d.between(200*time.Millisecond, 40*time.Second)
		w.tell("mysqld of %s hangs for %s", in, took)
		s.suspend()
		w.later(took, func() { w.tell("mysqld of %s goes on", in); s.resume() })
	}
}

func (w *world) crashManager(d *dice) {
	if m := w.managerOf(w.pickInstance(d)); m != nil && !m.dead {
		m.tell("the container crashes")
		m.die(false)
	}
}

func (w *world) powerLoss(d *dice) {
	n := w.pickNode(d)
	if w.machines[n.machine].off {
		return
	}
	took := d.between(5*time.Second, 90*time.Second)
	w.tell("%s is off for %s", n.name, took)
	w.beforeNetworkChange()
	n.powerOff()
	w.later(took, func() { w.tell("%s is on", n.name); n.powerOn() })
}

// powerLossTainted takes the power of a node. A human finds it dead, says so by the taint, and
// mends it later.
func (w *world) powerLossTainted(d *dice) {
	n := w.pickNode(d)
	if w.machines[n.machine].off {
		return
	}
	w.tell("%s is off", n.name)
	w.beforeNetworkChange()
	n.powerOff()
	w.later(d.between(time.Second, 20*time.Second), func() { w.taint(n) })
	w.later(d.between(30*time.Second, 120*time.Second), func() {
		w.tell("%s is on", n.name)
		n.powerOn()
		w.untaint(n)
	})
}

// taint says that a node is out of service, which takes its Pods from it.
func (w *world) taint(n *node) {
	w.tell("a human taints %s as out of service", n.name)
	w.api.updateNode(n.name, func(o *nodeObject) { o.outOfService = true })
	for _, name := range sortedKeys(w.api.objects[kindPod]) {
		if p := w.api.pod(name); p.node == n.name {
			w.api.deletePod(name, p.uid, true)
		}
	}
}

func (w *world) untaint(n *node) {
	w.api.updateNode(n.name, func(o *nodeObject) { o.outOfService = false })
}

func (w *world) pauseNode(d *dice) {
	w.pause(w.pickNode(d).machine, d.between(300*time.Millisecond, longestPause))
}

// longestPause of a node is shorter than it takes to replace a primary by its
// lease: nothing can isolate itself while it is paused.
const longestPause = 12 * time.Second

func (w *world) pause(machine int, took time.Duration) {
	w.tell("%s is paused for %s", w.machines[machine].name, took)
	w.beforeNetworkChange()
	w.machines[machine].pausedUntil = w.now + took
	w.listen()
	w.at(took, nowhere, w.listen)
	for _, op := range w.ops {
		op.watchSilence()
	}
}

// pauseOperator stops the operator's machine; half of the times its clocks stand still with it, as
// when a hypervisor stops it.
func (w *world) pauseOperator(d *dice) {
	took := d.between(300*time.Millisecond, 20*time.Second)
	w.pause(operatorMachine1, took)
	if took%2 == 0 { // no die is thrown for it, so that what seeds mean does not change
		w.tell("its clocks stand still")
		w.machines[operatorMachine1].clock.stop(w.now, w.now+took)
	}
}

func (w *world) jumpClock(d *dice) {
	m := w.machines[d.upTo(len(w.machines))]
	by := d.between(-time.Hour, time.Hour)
	if d.upTo(2) == 0 {
		by /= 360
	}
	w.tell("the wall clock of %s jumps by %s", m.name, by)
	m.clock.wall += by
}

// fillVolume fills one; often, where mysqld waits for space, that of the primary, of which commits wait.
func (w *world) fillVolume(d *dice) {
	in := w.pickInstance(d)
	took := d.between(2*time.Second, 40*time.Second)
	waits := d.upTo(3) > 0
	if p := w.api.cluster().status.Promotion; p != nil && waits && d.upTo(2) == 0 {
		in = p.Instance
	}
	v := w.api.volume(in)
	if v == nil {
		return
	}
	w.tell("the volume of %s is full for %s (mysqld waits: %t)", in, took, waits)
	w.fill(v.data, true, waits)
	w.later(took, func() { w.fill(v.data, false, false) })
}

func (w *world) deleteLease(*dice) { w.api.remove(kindLease, "primary") }

func (w *world) crashOperator(d *dice) {
	pause := d.between(0, 15*time.Second)
	for _, op := range append([]*operator{}, w.ops...) {
		op.crash()
		w.at(pause, nowhere, w.ensureOperator)
	}
}

func (w *world) ensureOperator() {
	if len(w.ops) == 0 {
		w.startOperator(operatorMachine1)
	}
}

func (w *world) crashAfterWrite(*dice) {
	for _, op := range w.ops {
		op.crashAfterWrite = true
	}
}

// twoOperators starts a second operator while the first, which has lost its leadership, has not
// noticed yet.
func (w *world) twoOperators(d *dice) {
	if len(w.ops) != 1 {
		return
	}
	old := w.ops[0]
	w.startOperator(operatorMachine1 + operatorMachine2 - old.machine)
	w.at(d.between(500*time.Millisecond, 15*time.Second), nowhere, old.crash)
}

func (w *world) editDurability(*dice) {
	was := w.api.cluster().spec.durability
	now := was
	for now == was {
		now = w.chooseDurability()
	}
	w.tell("durability is %v", now)
	w.editSpec(func(s *clusterSpec) { s.durability = now })
}

func (w *world) editSpec(f func(*clusterSpec)) {
	w.api.updateCluster(0, func(c *clusterObject) { c.generation++; f(&c.spec) })
}

func (w *world) editTemplate(*dice) { w.editSpec(func(s *clusterSpec) { s.template++ }) }
