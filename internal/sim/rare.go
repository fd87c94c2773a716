package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// rarely is of how many seeds one gets, beside all else, what administrators do at the
// worst moments. The others stay what they were.
const rarely = 16

// rareDramas take longer than other faults leave time for, and so are drawn by themselves.
var rareDramas = [][]scene{
	// Somebody finds NoProof, and makes the lease a means of proof.
	{{kind: leaseSwitched}, {after: 3 * time.Second, within: 5 * time.Second, kind: primaryAlone, primary: true},
		{after: time.Second, within: 25 * time.Second, kind: leaseSwitched}},
	{{kind: leaseSwitched}, {within: time.Second, kind: primaryAlone, primary: true},
		{after: time.Second, within: 25 * time.Second, kind: leaseSwitched}},
	{{kind: primaryAlone, primary: true}, {within: 20 * time.Second, kind: leaseSwitched}, {within: 10 * time.Second,
		kind: leaseSwitched}},
	// How many acknowledgements a commit waits for changes there and back, and an order of
	// before comes late.
	{{kind: minToggled}, {after: 6 * time.Second, within: 4 * time.Second, kind: minToggled}, {after: 6 * time.Second,
		within: 4 * time.Second, kind: minToggled},
		{after: 6 * time.Second, within: 4 * time.Second, kind: lateOrder, primary: true},
		{within: 300 * time.Millisecond, kind: "the primary and one replica are cut off together", primary: true}},
	{{kind: lateOrder}, {within: 20 * time.Second, kind: lateOrder}, {within: 20 * time.Second,
		kind: lateOrder, primary: true}},
}

const (
	minToggled    = "spec.minSyncReplicas is raised or taken back"
	lateOrder     = "an order comes a second time"
	leaseSwitched = "the primary's lease is switched on or off"
	primaryAlone  = "the primary is left with its clients"
)

func init() {
	faultKinds = append(faultKinds,
		faultKind{minToggled, 0, (*world).toggleMin},
		faultKind{lateOrder, 0, (*world).repeatOrder},
		faultKind{leaseSwitched, 0, (*world).switchLease},
		faultKind{primaryAlone, 0, (*world).leaveWithClients},
	)
}

// withRare adds one of them to what happens in a run.
func withRare(seed uint64, out []Fault) []Fault {
	if seed%rarely != 5 {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 5))
	at := 20*time.Second + time.Duration(r.Int64N(int64(40*time.Second)))
	out = append(out, act(r, rareDramas[r.IntN(len(rareDramas))], &at)...)
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

func (w *world) switchLease(*dice) {
	on := !w.api.cluster().spec.lease
	w.tell("spec.enablePrimaryLease is %t", on)
	w.editSpec(func(s *clusterSpec) { s.lease = on })
}

func (w *world) toggleMin(*dice) {
	w.editSpec(func(s *clusterSpec) {
		if s.durability.Mode.Awaits() {
			s.durability.Min = 2 - min(s.durability.Min, 2)
			w.tell("spec.minSyncReplicas is %d", s.durability.Min)
		}
	})
}

// longestDelay of what was sent into a cut, or by an operator that stood still.
const longestDelay = 100 * time.Second

// repeatOrder gives an instance an order of a while ago. Whether it comes again or at last is the
// same to the manager, because orders are idempotent.
func (w *world) repeatOrder(d *dice) {
	in := w.pickInstance(d)
	m := w.managerOf(in)
	if m == nil || m.dead {
		return
	}
	var late []pastOrder
	for _, o := range m.orders {
		if w.now-o.at < longestDelay {
			late = append(late, o)
		}
	}
	if len(late) == 0 {
		return
	}
	o := late[d.upTo(len(late))]
	w.tell("%s gets the order to %s %+v of %s ago", in, o.Verb(), o.Order, w.now-o.at)
	m.order(o.Order, func(string) {})
}

// leaveWithClients cuts the primary off from all but its clients.
func (w *world) leaveWithClients(d *dice) {
	n, took := w.pickNode(d), d.between(15*time.Second, 90*time.Second)
	w.tell("%s is cut off for %s, and its clients with it", n.name, took)
	for i := range w.machines {
		if i != n.machine && i != clientMachine {
			w.cutBoth(n.machine, i, took)
		}
	}
}
