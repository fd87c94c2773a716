package async

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// proven is a proof that the holder cannot acknowledge another write, with what
// it rests on and since when it has been known.
type proven struct {
	proof    core.Proof
	evidence string
	since    time.Time
}

// prove looks for a proof that the holder of the present promotion is not
// writable and will not be below epoch next. Neither a missing Pod object nor a
// failed request is one.
func prove(o *core.Observation, next int64) (proven, bool) {
	holder := holderOf(o)
	if holder == nil {
		return proven{}, false
	}
	for _, rule := range []func(*core.Observation, *core.Instance, int64) (proven, bool){managerFenced, podTerminated,
		quorumCut, leaseExpired} {
		if p, ok := rule(o, holder, next); ok {
			return p, true
		}
	}
	return proven{}, false
}

// managerFenced returns a proof when the manager of the Pod that may be writable gave its word, or
// that of another Pod which has the same data on the same node and holds the lock on it. The word
// is kept on the volume, so that the last one heard of a manager that is gone counts.
func managerFenced(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	words := heard(holder)
	if !holder.Report.Known() {
		words = []core.Fact[core.Report]{holder.Latest}
	}
	p := o.Cluster.Status.Promotion
	r, known := words[0].Get()
	if !known || !promises(words[0], p, next) {
		return keptPromise(o, holder, next)
	}
	since := words[0].Received()
	for _, earlier := range words[1:] {
		if !promises(earlier, p, next) {
			break
		}
		since = earlier.Received()
	}
	return proven{core.ProofManagerFenced,
		fmt.Sprintf("the manager of %s promises that it is not writable below epoch %d; mysqld: %s", holder.Name,
			r.NoWritesBelow, r.State), since}, true
}

// keptPromise returns the proof of a promise that stands in the status. A promise ends with no report
// that lacks it: what was said last by the Pod that gave it was said before, and what another Pod on
// another node says is not of it. But a Pod may take writes in the same epoch that answers, or that was
// made beside it, and has no such promise on its volume: its own word is needed.
func keptPromise(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	p := o.Cluster.Status.Promotion
	r, known := lastWord(holder).Get()
	answers := holder.Report.Known()
	isOld := !answers && r.PodUID == p.PodUID
	isElsewhere := r.WritableEpoch == 0 && !p.MayBeOf(r.PodUID, r.Node)
	isBeside := !answers && holder.Pod.Is(func(pod core.Pod) bool { return pod.UID != p.PodUID && mayTakeOver(pod, p) })
	if p.NoWritesBelow < next || known && !isOld && !isElsewhere || isBeside {
		return proven{}, false
	}
	return proven{core.ProofManagerFenced,
		fmt.Sprintf("the manager of %s promised that it is not writable below epoch %d", holder.Name,
			p.NoWritesBelow), o.Now}, true
}

// promises reports whether a report is a manager's word that the granted primary is not writable
// below epoch next. A volume without the cluster's data is not the one that was written to, and its
// lock tells nothing about the other.
func promises(word core.Fact[core.Report], p *core.Promotion, next int64) bool {
	r, known := word.Get()
	if !known || r.NoWritesBelow < next || r.WritableEpoch != 0 || r.ClientSessions != 0 {
		return false
	}
	return r.PodUID == p.PodUID || r.VolumeLocked && r.Data == core.DataPopulated && p.IsOf(r.PodUID, r.Node)
}

// podTerminated goes by the kubelet's report that the container ended, or by the end of the
// node. If the manager of that very Pod still answers, the report is wrong and proves nothing.
func podTerminated(o *core.Observation, holder *core.Instance, _ int64) (proven, bool) {
	p := o.Cluster.Status.Promotion
	if r, answers := holder.Report.Get(); answers && (r.PodUID == p.PodUID || r.WritableEpoch != 0) {
		return proven{}, false
	}
	if isNodeEnded(o, holder) {
		return proven{core.ProofPodTerminated, "node " + p.Node + " is gone or out of service",
			holder.Node.Received()}, true
	}
	pod, known := holder.Pod.Get()
	switch {
	case !known || p.PodUID == "" || pod.Exists && pod.UID == p.PodUID && !pod.Terminated:
		return proven{}, false
	case isAnyOpen(holder, p):
		return proven{}, false
	case pod.Exists && pod.UID == p.PodUID:
		return proven{core.ProofPodTerminated, "the kubelet of " + pod.Node + " reported the containers of Pod " +
			pod.UID + " terminated", holder.Pod.Received()}, true
	}
	return proven{core.ProofPodTerminated, "the kubelet reported the containers of Pod " + p.PodUID +
		" terminated before it was deleted", holder.Pod.Received()}, true
}

// isNodeEnded reports whether the node of the Pod that may be writable has ended, and nothing contradicts that:
// a taint may be left on a node that was mended, and a Node object deleted by mistake.
func isNodeEnded(o *core.Observation, holder *core.Instance) bool {
	return isNodeSaidToEnd(o, holder) && receivers(o) == 0 && !o.Now.Before(leaseRunsOut(o))
}

// isNodeSaidToEnd reports whether Kubernetes has no such node any more, or a human says that it is out of service.
func isNodeSaidToEnd(o *core.Observation, holder *core.Instance) bool {
	node, known := holder.Node.Get()
	return known && o.Cluster.Status.Promotion.Node != "" && (!node.Exists || node.OutOfService)
}

// leaseRunsOut is when the primary's lease runs out unless it is renewed; zero in a cluster that does not go by
// one, or when it is not the primary's any more. One of which nothing is known may have been renewed this moment.
func leaseRunsOut(o *core.Observation) time.Time {
	l, known := o.Cluster.Lease.Get()
	switch {
	case !goesByLease(o):
		return time.Time{}
	case !known:
		return o.Now.Add(core.LeaseTTL)
	case l.Holder != o.Cluster.Status.Promotion.Instance:
		return time.Time{}
	}
	return l.UnchangedSince.Add(core.LeaseTTL)
}

// quorumCut returns a proof when every commit of this epoch waits for RequiredAcks replicas and
// never stops waiting, and so many withhold their acknowledgements that too few are left to give
// them. Whoever is not known to withhold may acknowledge.
func quorumCut(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	p := o.Cluster.Status.Promotion
	if !o.Cluster.Durability.Mode.WaitsForEver() || p.LosslessSince == 0 || p.RequiredAcks == 0 {
		return proven{}, false
	}
	silent, may := receivePromises(o, holder.Name, next, 0)
	if len(may) >= p.RequiredAcks {
		return proven{}, false
	}
	return proven{core.ProofQuorumCut, fmt.Sprintf("a commit on %s needs %s, and %s have stopped receiving",
		holder.Name, core.Acknowledgements(p.RequiredAcks), names(silent)), latest(silent)}, true
}

// leaseExpired returns a proof when two things are so. The primary's lease was not renewed for its
// whole life, and after that its record has been taken for the next epoch. And so many have
// withheld their vouch, for longer than one lives and a primary takes to isolate itself, that no
// majority is left, however small a cluster the primary believes in.
func leaseExpired(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	l, known := o.Cluster.Lease.Get()
	if !known || l.Holder != "" || l.Epoch != next || !vouchesExpired(o, holder, next) {
		return proven{}, false
	}
	silent, _ := receivePromises(o, holder.Name, next, core.VouchWithheld)
	return proven{core.ProofLeaseExpired, fmt.Sprintf("the lease of %s was not renewed for %s and is taken from it, "+
		"and %s do not vouch for it",
		holder.Name, core.LeaseTTL, names(silent)), latest(silent)}, true
}

// vouchesExpired reports whether too few are left that may vouch for the granted primary, and have
// been too few for long enough.
func vouchesExpired(o *core.Observation, holder *core.Instance, next int64) bool {
	_, may := receivePromises(o, holder.Name, next, core.VouchWithheld)
	return isMinority(o, 1+len(may))
}

// isMinority reports whether so many instances are no majority, by any count that the primary may
// go by. A cluster of one isolates itself by no lease.
func isMinority(o *core.Observation, n int) bool {
	size := o.Cluster.Status.Promotion.Size
	return goesByLease(o) && size > 1 && n < core.Majority(size)
}

// goesByLease reports whether the primary isolates itself without its lease, and
// knows that it has to.
func goesByLease(o *core.Observation) bool {
	return o.Cluster.PrimaryLease && o.Cluster.Status.Promotion.Leased
}

// receivePromise is an instance that surely acknowledges and vouches no more, and since when.
type receivePromise struct {
	name  string
	since time.Time
}

// receivePromises are those of the other members that said themselves that they have
// stopped, at least that long ago; all others may go on.
func receivePromises(o *core.Observation, holder string, next int64,
	age time.Duration) (silent []receivePromise, may []string) {
	for _, name := range draft.Without(o.Cluster.Status.Members, holder) {
		in := o.Instance(name)
		if in == nil {
			may = append(may, name)
			continue
		}
		since, ok := promisesNotToReceive(in, next, age)
		if !ok || len(unspokenFor(o, in)) > 0 {
			may = append(may, name)
			continue
		}
		silent = append(silent, receivePromise{name, since})
	}
	return silent, may
}

// promisesNotToReceive returns since when the instance has promised not to receive, and whether it
// has done so for that long. The promise is kept on the volume, so that the last word of a manager
// that is gone counts, while it is known that no other Pod has taken its place.
func promisesNotToReceive(in *core.Instance, next int64, age time.Duration) (time.Time, bool) {
	words := heard(in)
	if pod, known := in.Pod.Get(); !in.Report.Known() {
		last, heardOf := in.Latest.Get()
		if !heardOf || !known || pod.Exists && pod.UID != last.PodUID {
			return time.Time{}, false
		}
		words = []core.Fact[core.Report]{in.Latest}
	}
	var since time.Time
	for i, f := range words {
		r, known := f.Get()
		kept := known && r.Withholds(next)
		if i == 0 && (!kept || time.Duration(r.Withheld.Seconds)*time.Second < age) {
			return since, false
		}
		if !kept {
			break
		}
		since = f.Received()
	}
	return since, true
}

// witnesses are the Pods that the other members have now.
func witnesses(o *core.Observation) []string {
	var out []string
	otherMembers(o, o.Cluster.Status.Promotion.Instance, func(in *core.Instance) {
		if pod, known := in.Pod.Get(); known && pod.Exists {
			out = append(out, core.Witness{Instance: in.Name, PodUID: pod.UID, Node: pod.Node}.String())
		}
	})
	return out
}

// unspokenFor are the Pods that the instance had when the failover began and that may
// live on where nobody sees them, beside the primary: a Pod that was taken away by force
// promises nothing, whatever the one says that was made in its place on another volume.
func unspokenFor(o *core.Observation, in *core.Instance) []string {
	op := o.Cluster.Status.Operation
	if op == nil || op.Kind != core.OperationFailover {
		return nil
	}
	var out []string
	for _, text := range op.Witnesses {
		if w := core.ParseWitness(text); w.Instance == in.Name && !speaksFor(in, w) {
			out = append(out, w.PodUID)
		}
	}
	return out
}

// speaksFor reports whether what the instance says now binds the Pod that it had, too: the Pod is
// the same, or the instance holds the lock on the same volume, or the former has surely ended.
func speaksFor(in *core.Instance, w core.Witness) bool {
	return isSaidToHaveEnded(in, w.PodUID) || lastWord(in).Is(func(r core.Report) bool {
		return r.PodUID == w.PodUID ||
			w.Node != "" && r.Node == w.Node && r.VolumeLocked && r.Data == core.DataPopulated
	})
}

func names(silent []receivePromise) string {
	var all []string
	for _, w := range silent {
		all = append(all, w.name)
	}
	return strings.Join(all, ", ")
}

// latest is since when all of them have been silent.
func latest(silent []receivePromise) time.Time {
	var t time.Time
	for _, w := range silent {
		if w.since.After(t) {
			t = w.since
		}
	}
	return t
}
