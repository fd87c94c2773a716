package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/async"
)

const (
	passes   = 12
	backstop = 5 * time.Second
)

// operator is one run of the operator: what internal/operator is in reality,
// around the real async.Decide.
type operator struct {
	w       *world
	id      string
	machine int
	dead    bool

	clusters, pods, volumes, nodes, routes *watch

	streams map[string]*statusStream
	order   []string
	ended   map[string][]string
	// latest is what it wrote itself, if that is newer than what it has seen.
	latest   *clusterObject
	latestRV int64
	failed   string

	running, woken bool
	timer          int
	left           int
	failures       int
	// news: something was heard or seen since the last pass. lazy: until then,
	// looking again would decide the same.
	news, lazy bool
	rested     time.Duration
	ready      bool
	// crashAfterWrite: it dies between the next status and its effects.
	crashAfterWrite bool
}

func (w *world) startOperator(machine int) *operator {
	op := &operator{w: w, id: w.name("operator"), machine: machine, streams: map[string]*statusStream{}, ended: map[string][]string{}}
	w.ops = append(w.ops, op)
	stale := time.Duration(0)
	if w.oneIn(4) {
		stale = w.jitter(5 * time.Second)
	}
	changed := func(string) { op.notice(); op.wake() }
	op.clusters = newWatch(w, kindCluster, machine, 0, changed)
	op.pods = newWatch(w, kindPod, machine, stale, func(name string) { op.notePod(name); changed(name) })
	op.volumes = newWatch(w, kindVolume, machine, stale, changed)
	op.nodes = newWatch(w, kindNode, machine, stale, changed)
	op.routes = newWatch(w, kindRoute, machine, stale, changed)
	w.tell("%s starts", op.id)
	return op
}

// crash: all that is not in the API is forgotten.
func (op *operator) crash() {
	if op.dead {
		return
	}
	op.dead = true
	op.w.tell("%s is no more", op.id)
	for _, v := range []*watch{op.clusters, op.pods, op.volumes, op.nodes, op.routes} {
		v.stop()
	}
	for _, name := range op.order {
		op.streams[name].stop()
	}
	op.w.ops = slices.DeleteFunc(op.w.ops, func(o *operator) bool { return o == op })
}

func (op *operator) at(d time.Duration, do func()) {
	op.w.at(d, op.machine, func() {
		if !op.dead {
			do()
		}
	})
}

func (op *operator) clock() time.Time { return op.w.clockOf(op.machine) }

// notePod remembers Pods that the kubelet reported ended before they go.
func (op *operator) notePod(name string) {
	p := watched[podObject](op.pods, name)
	if p == nil || !(p.deleting && p.ended) || slices.Contains(op.ended[name], p.uid) {
		return
	}
	kept := append(op.ended[name], p.uid)
	op.ended[name] = kept[max(0, len(kept)-8):]
}

func (op *operator) synced() bool {
	if !op.ready {
		op.ready = op.clusters.synced && op.pods.synced && op.volumes.synced && op.nodes.synced && op.routes.synced
	}
	return op.ready
}

// wake has the cluster looked at, now or when the pass under way is over.
func (op *operator) wake() {
	if op.woken || op.dead {
		return
	}
	op.woken = true
	if !op.running {
		op.at(100*time.Microsecond, op.reconcile)
	}
}

func (op *operator) reconcile() {
	if op.running || !op.woken {
		return
	}
	op.woken, op.running, op.left = false, true, passes
	op.pass()
}

// rest ends a reconcile; the next is when something wakes it, or after a while.
func (op *operator) rest(next time.Duration) {
	op.running = false
	op.timer++
	op.rested = op.w.now
	if op.woken {
		op.lazy = false
		op.at(100*time.Microsecond, op.reconcile)
		return
	}
	if !op.lazy {
		op.alarm(next)
	}
}

// alarm wakes it after a while, unless something else does before.
func (op *operator) alarm(after time.Duration) {
	timer := op.timer
	op.at(after, func() {
		if op.timer == timer {
			op.wake()
		}
	})
}

// notice: something was heard or seen that the next pass may decide by.
func (op *operator) notice() {
	op.news = true
	if op.lazy {
		op.lazy = false
		op.alarm(max(time.Millisecond, op.rested+backstop-op.w.now))
	}
}

// retry is the queue's pause after an error.
func (op *operator) retry() {
	op.failures++
	op.lazy = false
	op.rest(min(50*time.Millisecond<<min(op.failures, 8), 10*time.Second))
}

// newest is the newest Cluster that is known.
func (op *operator) newest() (*clusterObject, int64) {
	c, rv := watched[clusterObject](op.clusters, clusterName), op.clusters.versions[clusterName]
	if op.latest != nil && op.latestRV > rv {
		return op.latest, op.latestRV
	}
	op.latest = nil
	return c, rv
}

// pass observes, decides, publishes and acts once.
func (op *operator) pass() {
	c, rv := op.newest()
	if c == nil || !op.synced() {
		op.lazy = false
		op.rest(200 * time.Millisecond)
		return
	}
	op.listen()
	if op.isFirstContact() {
		op.lazy = false
		op.rest(firstContact)
		return
	}
	op.news, op.lazy = false, false
	o := op.observe(c)
	plan := op.w.plan(o)
	op.publish(c, rv, o, plan)
}

// plan asks the real core, through the seams of a mutation.
func (w *world) plan(o core.Observation) core.Plan {
	if w.mut.Observe != nil {
		w.mut.Observe(w, &o)
	}
	plan := async.Decide(o)
	if w.mut.Plan != nil {
		w.mut.Plan(&o, &plan)
	}
	w.cover.plan(&o, &plan)
	w.truth.checkPlan(&o, &plan)
	return plan
}

// listen keeps a stream to every instance that has a Pod.
func (op *operator) listen() {
	for _, name := range slices.Sorted(maps.Keys(op.pods.objects)) {
		p := watched[podObject](op.pods, name)
		n := op.w.nodeOf(p.node)
		if n == nil || !p.started || p.ended {
			continue
		}
		old := op.streams[name]
		if old != nil && old.uid == p.uid {
			continue
		}
		st := &statusStream{op: op, instance: name, uid: p.uid, node: n, since: op.w.now}
		if old != nil {
			old.catchUp()
			st.words = old.words
			st.words.report, st.words.earlier = core.Fact[core.Report]{}, nil
			old.stop()
		} else {
			op.order = append(op.order, name)
			slices.Sort(op.order)
		}
		op.streams[name] = st
		st.connect()
	}
}

func (op *operator) isFirstContact() bool {
	waiting := false
	for _, name := range op.order {
		st := op.streams[name]
		if st.words.last.Known() || st.words.lastFail != "" {
			return false
		}
		waiting = waiting || op.w.now-st.since < firstContact
	}
	return waiting
}

// observe gathers an Observation from the caches and the streams.
func (op *operator) observe(c *clusterObject) core.Observation {
	read := op.clock()
	route := watched[routeObject](op.routes, "rw")
	o := core.Observation{Cluster: core.Cluster{
		Name: clusterName, Generation: c.generation, Failed: op.failed, Wanted: c.spec.instances, Durability: c.spec.durability,
		FailoverDelay: op.w.conf.delay, SwitchoverLimit: op.w.conf.switchover, Status: c.status,
	}}
	if route != nil {
		o.Cluster.Routed = core.Known(route.primary, read, read)
	}
	for _, name := range op.instanceNames(c) {
		o.Instances = append(o.Instances, op.instance(c, name, read))
	}
	o.Now = op.clock()
	return o
}

func (op *operator) instanceNames(c *clusterObject) []string {
	seen := map[string]bool{}
	for _, name := range c.status.InstanceNames {
		seen[name] = true
	}
	for name := range op.pods.objects {
		seen[name] = true
	}
	for name := range op.volumes.objects {
		seen[name] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Compare(ordinalOf(a), ordinalOf(b)) })
}

func (op *operator) instance(c *clusterObject, name string, read time.Time) core.Instance {
	in := core.Instance{Name: name, Ordinal: ordinalOf(name), EndedPods: op.ended[name]}
	var pod core.Pod
	if p := watched[podObject](op.pods, name); p != nil {
		pod = core.Pod{Exists: true, UID: p.uid, Node: p.node, Ready: p.ready, Terminating: p.deleting, Terminated: p.deleting && p.ended,
			Current: p.template == podTemplate{c.spec.template, c.spec.durability.Mode}, NeverStarted: !p.started,
			DemoteRequested: p.demote, Role: p.role, Routable: p.routable}
	}
	in.Pod = core.Known(pod, read, read)
	var vol core.Volume
	if v := watched[volumeObject](op.volumes, name); v != nil {
		vol = core.Volume{Exists: true, Deleting: v.deleting, Bound: v.bound}
	}
	in.Volume = core.Known(vol, read, read)
	node := pod.Node
	if p := c.status.Promotion; p != nil && p.Instance == name && p.Node != "" {
		node = p.Node
	}
	if node != "" {
		var facts core.Node
		if n := watched[nodeObject](op.nodes, node); n != nil {
			facts = core.Node{Exists: true, OutOfService: n.outOfService, Draining: n.draining}
		}
		in.Node = core.Known(facts, read, read)
	}
	if st := op.streams[name]; st != nil {
		st.catchUp()
		h := &st.words
		in.Report, in.Earlier, in.LastWord = h.report, h.earlier, h.last
	}
	return in
}
