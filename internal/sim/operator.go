package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/async"
)

// operator is one run of the operator: what internal/operator is in reality,
// around the real async.Decide.
type operator struct {
	w       *world
	id      string
	machine int
	dead    bool

	clusters, pods, volumes, nodes, routes, leases *watch
	// leaseVersion has been seen since leaseSince.
	leaseVersion string
	leaseSince   time.Time

	streams map[string]*statusStream
	order   []string
	ended   map[string]core.EndedPods
	notMade map[string]core.NotMade
	refused map[string]refusedGrowth // by claim
	// latest is what it wrote itself, if that is newer than what it has seen.
	latest   *clusterObject
	latestRV int64
	failed   string
	carried  core.Carried
	// generation is that of the Cluster whose plan is carried out.
	generation int64
	met        bool // enough was heard to decide

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
	// crashOnceMade: it dies when it has made a Pod of the primary, and what is then done
	// to that.
	crashOnceMade func()
}

func (w *world) startOperator(machine int) *operator {
	op := &operator{w: w, id: w.name("operator"), machine: machine, streams: map[string]*statusStream{},
		ended: map[string]core.EndedPods{}, notMade: map[string]core.NotMade{}, refused: map[string]refusedGrowth{}}
	w.ops = append(w.ops, op)
	stale := w.staleness()
	changed := func(string) { op.notice(); op.wake() }
	op.clusters = newWatch(w, kindCluster, machine, stale, changed)
	op.pods = newWatch(w, kindPod, machine, stale, func(name string) { op.notePod(name); changed(name) })
	op.volumes = newWatch(w, kindVolume, machine, stale, changed)
	op.nodes = newWatch(w, kindNode, machine, stale, changed)
	op.routes = newWatch(w, kindRoute, machine, stale, changed)
	op.leases = newWatch(w, kindLease, machine, stale, func(string) {
		op.noteLease(op.leases.versions["primary"])
		if watched[leaseObject](op.leases, "primary") == nil {
			op.wake()
		}
	})
	w.tell("%s starts", op.id)
	return op
}

// crash ends the operator. All that it knows and that is not in the API is forgotten.
func (op *operator) crash() {
	if op.dead {
		return
	}
	op.dead = true
	op.w.tell("%s is no more", op.id)
	for _, v := range []*watch{op.clusters, op.pods, op.volumes, op.nodes, op.routes, op.leases} {
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
	if p != nil && p.ended {
		op.ended[name] = op.ended[name].With(p.uid)
	}
}

func (op *operator) synced() bool {
	if !op.ready {
		op.ready = op.clusters.synced && op.pods.synced && op.volumes.synced && op.nodes.synced &&
			op.routes.synced && op.leases.synced
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
	op.woken, op.running, op.left = false, true, core.PassesAtOnce
	op.stay()
	op.prepare()
	op.pass()
}

// prepare makes the primary's record again that somebody deleted.
func (op *operator) prepare() {
	if op.synced() && watched[leaseObject](op.leases, "primary") == nil {
		again := func(reply func(func())) { op.w.api.makeLease() }
		op.w.call(op.machine, apiMachine, operatorCallLimit, again, func() {})
	}
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

// notice notes that something was heard or seen by which the next pass may decide otherwise, and
// wakes an operator that would not have looked again.
func (op *operator) notice() {
	op.news = true
	if op.lazy {
		op.lazy = false
		op.alarm(max(time.Millisecond, op.rested+core.LookAgain-op.w.now))
	}
}

// retry is the queue's pause after an error.
func (op *operator) retry() {
	op.failures++
	op.lazy = false
	op.rest(min(core.PassRetryFirst<<min(op.failures, 8), core.PassRetryMost))
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
	op.listen(&c.status)
	if op.isFirstContact(&c.status) {
		op.lazy = false
		op.rest(core.FirstContact)
		return
	}
	op.news, op.lazy = false, false
	o := op.observe(c)
	plan, seen := op.plan(o)
	if !plan.GrantsByKubernetesWord(o) {
		op.publish(c, rv, o, plan, op.w.decided(seen, &plan))
		return
	}
	op.confirm(c, o, func(o core.Observation) { // what was decided by the caches alone does not count
		plan, seen := op.plan(o)
		op.publish(c, rv, o, plan, op.w.decided(seen, &plan))
	})
}

// confirm reads past the caches what a proof by Kubernetes' word rests on.
func (op *operator) confirm(c *clusterObject, o core.Observation, then func(core.Observation)) {
	w, p := op.w, c.status.Promotion
	i := -1
	if p != nil {
		i = slices.IndexFunc(o.Instances, func(in core.Instance) bool { return in.Name == p.Instance })
	}
	if i < 0 {
		then(o)
		return
	}
	read := op.clock()
	w.call(op.machine, apiMachine, operatorCallLimit, func(reply func(func())) {
		a := w.api
		pod, lease, version := a.pod(p.Instance), a.lease(), a.versions[kindLease]["primary"]
		var node *nodeObject
		name := nodeToWatch(c, p.Instance, pod)
		if name != "" {
			node = a.node(name)
		}
		reply(func() {
			if op.dead {
				return
			}
			in := &o.Instances[i]
			in.Pod = core.Known(podFacts(pod, c), read, read)
			if name != "" {
				in.Node = core.Known(nodeFacts(node), read, read)
			}
			o.Cluster.Lease = op.lease(lease, version, read)
			o.Now = op.clock()
			then(o)
		})
	}, func() {
		if !op.dead {
			op.retry()
		}
	})
}

// noteLease tells since when the record has been as it is.
func (op *operator) noteLease(version int64) time.Time {
	v := ""
	if version != 0 {
		v = fmt.Sprint(version)
	}
	if op.leaseSince.IsZero() || v != op.leaseVersion {
		op.leaseVersion, op.leaseSince = v, op.clock()
	}
	return op.leaseSince
}

func (op *operator) lease(o *leaseObject, version int64, read time.Time) core.Fact[core.Lease] {
	l := core.Lease{UnchangedSince: op.noteLease(version)}
	if o != nil {
		l.Holder, l.Epoch, l.Version = o.holder, o.epoch, fmt.Sprint(version)
	}
	if op.w.mut.LeaseTTLIgnored {
		l.UnchangedSince = l.UnchangedSince.Add(-core.LeaseTTL)
	}
	return core.Known(l, read, read)
}

// plan decides, and remembers what is to be recorded.
func (op *operator) plan(o core.Observation) (plan core.Plan, seen *core.Observation) {
	plan, seen = op.w.plan(o)
	op.carried = plan.Carried
	return plan, seen
}

// decided holds a plan against the truth. The verdict is accepted once the status of the plan is
// written, and then the plan is carried out.
func (w *world) decided(o *core.Observation, plan *core.Plan) *verdict {
	w.cover.plan(o, plan)
	return w.truth.judge(o, plan)
}

// plan asks the real core, through the seams of a mutation, and returns what the core
// has seen, too.
func (w *world) plan(o core.Observation) (core.Plan, *core.Observation) {
	seen := o
	seen.Instances = slices.Clone(o.Instances) // a mutation changes them
	if w.mut.Observe != nil {
		w.mut.Observe(w, &o)
	}
	plan := async.Decide(o)
	if w.mut.Plan != nil {
		w.mut.Plan(&o, &plan)
	}
	w.note(&seen, &plan)
	return plan, &o
}

// listen keeps a stream to every instance that has a Pod.
func (op *operator) listen(s *core.Status) {
	var keep []string
	if s.Promotion != nil {
		keep = append(keep, s.Promotion.Instance)
	}
	belong := append(slices.Clone(keep), s.InstanceNames...)
	for _, name := range slices.Sorted(maps.Keys(op.pods.objects)) {
		p := watched[podObject](op.pods, name)
		n := op.w.nodeOf(p.node)
		if n == nil || !p.started || p.ended || p.deleting && !slices.Contains(belong, name) {
			continue
		}
		keep = append(keep, name)
		old := op.streams[name]
		if old != nil && old.uid == p.uid && !old.stopped {
			continue
		}
		st := &statusStream{op: op, instance: name, uid: p.uid, node: n, since: op.w.now}
		if old != nil {
			old.catchUp()
			st.words = old.words
			st.words.Lose()
			old.stop()
		} else {
			op.order = append(op.order, name)
			slices.Sort(op.order)
		}
		op.streams[name] = st
		st.connect()
		st.keepMeasured()
	}
	op.tidy(keep, s.InstanceNames)
}

// tidy ends the streams that nobody answers and nobody will.
func (op *operator) tidy(keep, members []string) {
	for _, name := range slices.Clone(op.order) {
		st := op.streams[name]
		if slices.Contains(keep, name) || st.words.Report.Known() {
			continue
		}
		st.stop()
		if !slices.Contains(members, name) {
			delete(op.streams, name)
			op.order = slices.DeleteFunc(op.order, func(n string) bool { return n == name })
		}
	}
}

func (op *operator) isFirstContact(status *core.Status) bool {
	if op.met || len(op.order) == 0 {
		return false
	}
	var all []core.Contact
	for _, name := range op.order {
		st := op.streams[name]
		all = append(all, core.Contact{Instance: name, Begun: time.Unix(0, 0).Add(st.since), Report: st.words.Report,
			Answered: st.words.Latest.Known() || st.words.lastFail != ""})
	}
	op.met = !core.IsFirstContact(status, all, time.Unix(0, 0).Add(op.w.now))
	return !op.met
}
