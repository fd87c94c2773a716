package sim

import "time"

// cutBoth cuts two machines apart for a while.
func (w *world) cutBoth(a, b int, took time.Duration) {
	w.cut(a, b)
	w.cut(b, a)
	w.later(took, func() { w.mend(a, b); w.mend(b, a) })
}

func (w *world) howLong(d *dice) time.Duration {
	if d.upTo(3) == 0 {
		return d.between(500*time.Millisecond, 5*time.Second)
	}
	return d.between(5*time.Second, 60*time.Second)
}

func (w *world) isolateNode(d *dice) {
	n, took := w.pickNode(d), w.howLong(d)
	withClients := d.upTo(2) == 0 // its clients are on its side
	w.tell("%s is cut off for %s (from the clients: %t)", n.name, took, !withClients)
	for i := range w.machines {
		if i != n.machine && !(i == clientMachine && withClients) {
			w.cutBoth(n.machine, i, took)
		}
	}
}

func (w *world) cutFromAPI(d *dice) {
	n, took := w.pickNode(d), w.howLong(d)
	w.tell("%s cannot reach the API server for %s", n.name, took)
	w.cutBoth(n.machine, apiMachine, took)
}

func (w *world) cutFromOperator(d *dice) {
	n, took := w.pickNode(d), w.howLong(d)
	w.tell("%s and the operators cannot reach each other for %s", n.name, took)
	w.cutBoth(n.machine, operatorMachine1, took)
	w.cutBoth(n.machine, operatorMachine2, took)
}

func (w *world) cutPair(d *dice) {
	a, b := w.pickNode(d), w.nodes[d.upTo(len(w.nodes))]
	if a == b {
		return
	}
	took := w.howLong(d)
	w.tell("%s and %s cannot reach each other for %s", a.name, b.name, took)
	w.cutBoth(a.machine, b.machine, took)
}

func (w *world) cutOneWay(d *dice) {
	a, b := w.pickNode(d).machine, d.upTo(len(w.machines))
	if d.upTo(2) == 0 {
		a, b = b, a
	}
	if a == b {
		return
	}
	took := w.howLong(d)
	w.tell("nothing gets from %s to %s for %s", w.machines[a].name, w.machines[b].name, took)
	w.cut(a, b)
	w.later(took, func() { w.mend(a, b) })
}

// split puts every machine on one of two sides.
func (w *world) split(d *dice) {
	took := w.howLong(d)
	side := make([]bool, len(w.machines))
	for i := range side {
		side[i] = d.upTo(2) == 0
	}
	w.tell("the network is split for %s", took)
	for a := range side {
		for b := range a {
			if side[a] != side[b] {
				w.cutBoth(a, b, took)
			}
		}
	}
}

func (w *world) apiAway(d *dice) {
	took := w.howLong(d)
	w.tell("the API server is away for %s", took)
	for i := range w.machines {
		if i != apiMachine {
			w.cutBoth(apiMachine, i, took)
		}
	}
}

func (w *world) slowLink(d *dice) {
	a, b := w.pickNode(d).machine, d.upTo(len(w.machines))
	took, by := w.howLong(d), d.between(20*time.Millisecond, 1500*time.Millisecond)
	w.tell("what goes between %s and %s takes %s longer, for %s", w.machines[a].name, w.machines[b].name, by, took)
	w.link(a, b).slow, w.link(b, a).slow = by, by
	w.later(took, func() { w.link(a, b).slow, w.link(b, a).slow = 0, 0 })
}

// lateAcks delays what most other nodes send to the primary's, so that what replicas say takes
// long and commits wait.
func (w *world) lateAcks(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil || w.nodeOf(p.Node) == nil {
		return
	}
	to, took := w.nodeOf(p.Node).machine, w.howLong(d)
	by := d.between(50*time.Millisecond, 3*time.Second)
	w.tell("what gets to %s from other nodes takes %s longer, for %s", p.Node, by, took)
	for _, n := range w.nodes {
		if n.machine != to && d.upTo(4) > 0 {
			w.link(n.machine, to).slow = by
			w.later(took, func() { w.link(n.machine, to).slow = 0 })
		}
	}
}

// cutFromReplicas cuts the primary off from its replicas, in both directions or in theirs alone.
// API server, operator and clients still reach it.
func (w *world) cutFromReplicas(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil || w.nodeOf(p.Node) == nil {
		return
	}
	from, took, oneWay := w.nodeOf(p.Node).machine, w.howLong(d), d.upTo(2) == 0
	w.tell("the replicas cannot reach %s for %s (one way: %t)", p.Node, took, oneWay)
	for _, n := range w.nodes {
		if n.machine == from {
			continue
		}
		w.cut(n.machine, from)
		if !oneWay {
			w.cut(from, n.machine)
		}
		w.later(took, func() { w.mend(n.machine, from); w.mend(from, n.machine) })
	}
}

// lateReplica delays what the primary sends to one of the other nodes.
func (w *world) lateReplica(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil || w.nodeOf(p.Node) == nil {
		return
	}
	from, to, took := w.nodeOf(p.Node).machine, w.nodes[d.upTo(len(w.nodes))].machine, w.howLong(d)
	if from != to {
		w.tell("what %s sends gets late to %s for %s", p.Node, w.machines[to].name, took)
		w.link(from, to).slow = d.between(200*time.Millisecond, 3*time.Second)
		w.later(took, func() { w.link(from, to).slow = 0 })
	}
}

// lagBoth lets one replica receive late what another has received and not applied.
func (w *world) lagBoth(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil || w.nodeOf(p.Node) == nil {
		return
	}
	from, took := w.nodeOf(p.Node).machine, d.between(2*time.Second, 15*time.Second)
	late := d.upTo(2)
	w.tell("the replicas of %s lag for %s, in reception or in applying", p.Instance, took)
	for i, name := range w.api.cluster().status.InstanceNames {
		s := w.serverOf(name)
		if s == nil || name == p.Instance || s.machine == from {
			continue
		}
		if i%2 == late {
			l := w.link(from, s.machine)
			l.slow = d.between(500*time.Millisecond, 3*time.Second)
			w.later(took, func() { l.slow = 0 })
		} else {
			s.slow = d.between(500*time.Millisecond, 3*time.Second)
			w.later(took, func() { s.slow = 0 })
		}
	}
}

// cutTogether cuts off the primary together with one other node. With a replica there, both are a
// majority of three on one side, and the operator and the API server are on the other.
func (w *world) cutTogether(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil || w.nodeOf(p.Node) == nil {
		return
	}
	a, b := w.nodeOf(p.Node).machine, w.nodes[d.upTo(len(w.nodes))].machine
	took, withClients := d.between(15*time.Second, 60*time.Second), d.upTo(3) > 0
	w.tell("%s and %s are cut off together for %s (from the clients: %t)", w.machines[a].name,
		w.machines[b].name, took, !withClients)
	for i := range w.machines {
		if i != a && i != b && !(i == clientMachine && withClients) {
			w.cutBoth(a, i, took)
			if a != b {
				w.cutBoth(b, i, took)
			}
		}
	}
}

// cutFromControl cuts a node off from the API server and from every operator. It still reaches its
// peers.
func (w *world) cutFromControl(d *dice) {
	n, took := w.pickNode(d), d.between(5*time.Second, 60*time.Second)
	w.tell("%s reaches neither the API server nor the operators for %s", n.name, took)
	for _, m := range []int{apiMachine, operatorMachine1, operatorMachine2} {
		w.cutBoth(n.machine, m, took)
	}
}

// reachOnlyAPI cuts a node off from every operator and every other instance. It still reaches the
// API server, and with it the Lease can be renewed.
func (w *world) reachOnlyAPI(d *dice) {
	n, took, withClients := w.pickNode(d), d.between(10*time.Second, 60*time.Second), d.upTo(2) == 0
	w.tell("%s reaches only the API server for %s (and clients: %t)", n.name, took, withClients)
	for i := range w.machines {
		if i != n.machine && i != apiMachine && !(i == clientMachine && withClients) {
			w.cutBoth(n.machine, i, took)
		}
	}
}

// cutOperators cuts the operators off from the API server. They go on with what they have seen
// before.
func (w *world) cutOperators(d *dice) {
	took := d.between(5*time.Second, 40*time.Second)
	w.tell("the operators cannot reach the API server for %s", took)
	w.cutBoth(operatorMachine1, apiMachine, took)
	w.cutBoth(operatorMachine2, apiMachine, took)
}
