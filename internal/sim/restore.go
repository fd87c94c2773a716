package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// etcdRestored is the fault in which administrators restore etcd from a backup while the cluster
// runs.
const etcdRestored = "etcd is restored from a backup"

func init() {
	faultKinds = append(faultKinds, faultKind{etcdRestored, 0, (*world).restoreEtcd})
}

// restores are what happens around it.
var restores = [][]scene{
	{crashes, later(etcdRestored)},
	{switches, later("the operator crashes"), {within: 2 * time.Second, kind: etcdRestored}},
	{{kind: "node is cut off", primary: true}, {after: 20 * time.Second, within: 40 * time.Second, kind: etcdRestored},
		{within: 20 * time.Second, kind: "manager crashes"}},
	{switches, later(etcdRestored), {within: 10 * time.Second, kind: "mysqld crashes", primary: true}},
	{switches, later(etcdRestored), {within: time.Second, kind: "node is cut off"}},
	{switches, later(etcdRestored), {within: time.Second, kind: "manager crashes"},
		{within: time.Second, kind: "manager crashes"}},
}

var (
	crashes  = scene{kind: "mysqld crashes", primary: true}
	switches = scene{kind: "a switchover is asked for"}
)

// later returns the scene of a fault that happens once another has become primary.
func later(kind string) scene {
	return scene{after: 10 * time.Second, within: 20 * time.Second, kind: kind}
}

// withRestore adds one of them to what happens in a run, drawn by itself.
func withRestore(seed uint64, out []Fault) []Fault {
	if seed%rarely != 11 {
		return out
	}
	r := rand.New(rand.NewPCG(seed, 6))
	at := 20*time.Second + time.Duration(r.Int64N(int64(60*time.Second)))
	out = append(out, act(r, restores[r.IntN(len(restores))], &at)...)
	slices.SortStableFunc(out, func(a, b Fault) int { return int(a.At - b.At) })
	return out
}

// restoreEtcd sets the Cluster's status and the lease back to what they were in an earlier
// epoch. A status of the same epoch that is older is not noticed; docs/simulation.md names
// that, and an instance that has not heard of a later epoch, as what is not modelled.
func (w *world) restoreEtcd(d *dice) {
	now := w.api.cluster()
	if p := now.status.Promotion; p == nil || w.isDataGone(p.Instance) {
		return // nobody is left who could say that it is the primary
	}
	var past []change
	for _, c := range w.api.logs[kindCluster] {
		if s := &c.object.(*clusterObject).status; s.Epoch < now.status.Epoch && s.Promotion != nil &&
			w.hasHeardOfMore(s) {
			past = append(past, c)
		}
	}
	if len(past) == 0 {
		return
	}
	c := past[d.upTo(len(past))]
	old := c.object.(*clusterObject)
	w.tell("etcd is restored: the status is of epoch %d again, of %s ago", old.status.Epoch, w.now-c.at)
	w.cover.count("truth", "etcd was restored")
	w.api.updateCluster(0, func(o *clusterObject) { o.generation++; o.status = old.status })
	w.restoreLease(c.at)
}

// hasHeardOfMore reports whether the instance that would be primary by an old status knows that it
// is old.
func (w *world) hasHeardOfMore(old *core.Status) bool {
	v := w.api.volume(old.Promotion.Instance)
	return v != nil && max(v.data.record.viewEpoch, v.data.record.wasPrimaryEpoch) > old.Epoch
}

func (w *world) restoreLease(at time.Duration) {
	var then any
	for _, c := range w.api.logs[kindLease] {
		if c.at <= at {
			then = c.object
		}
	}
	if then == nil {
		w.api.remove(kindLease, "primary")
		return
	}
	w.api.put(kindLease, "primary", then)
}
