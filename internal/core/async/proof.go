package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
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
	if p, ok := managerFenced(o, holder, next); ok {
		return p, true
	}
	return podTerminated(o, holder)
}

// managerFenced: the manager of the Pod that may be writable gave its word, or
// that of another Pod which has the same data on the same node and holds the
// lock on it. The word is kept on the volume, so that the last one heard of a
// manager that is gone counts.
func managerFenced(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	words := heard(holder)
	if !holder.Report.Known() {
		words = []core.Fact[core.Report]{holder.LastWord}
	}
	r, _ := words[0].Get()
	if !promises(words[0], o.Cluster.Status.Promotion, next) {
		return proven{}, false
	}
	since := words[0].Received()
	for _, earlier := range words[1:] {
		if !promises(earlier, o.Cluster.Status.Promotion, next) {
			break
		}
		since = earlier.Received()
	}
	return proven{core.ProofManagerFenced,
		fmt.Sprintf("the manager of %s promises that it is not writable below epoch %d; mysqld: %s", holder.Name, r.FencedBelow, r.State), since}, true
}

// promises: a manager's word that the holder is not writable below epoch next.
// A volume without the cluster's data is not the one that was written to, and
// its lock tells nothing about the other.
func promises(word core.Fact[core.Report], p *core.Promotion, next int64) bool {
	r, known := word.Get()
	if !known || r.FencedBelow < next || r.WritableEpoch != 0 || r.ClientSessions != 0 {
		return false
	}
	return r.PodUID == p.PodUID || r.VolumeLocked && r.Data == core.DataPopulated && p.Node != "" && r.Node == p.Node
}

// podTerminated: the kubelet's word, or the node's end. A manager of that very Pod
// that answers gives them the lie.
func podTerminated(o *core.Observation, holder *core.Instance) (proven, bool) {
	p := o.Cluster.Status.Promotion
	if r, answers := holder.Report.Get(); answers && (r.PodUID == p.PodUID || r.WritableEpoch != 0) {
		return proven{}, false
	}
	if node, known := holder.Node.Get(); known && p.Node != "" && (!node.Exists || node.OutOfService) {
		return proven{core.ProofPodTerminated, "node " + p.Node + " is gone or out of service", holder.Node.Received()}, true
	}
	pod, known := holder.Pod.Get()
	switch {
	case !known || p.PodUID == "":
		return proven{}, false
	case pod.Exists && pod.UID == p.PodUID && pod.Terminated:
		return proven{core.ProofPodTerminated, "the kubelet of " + pod.Node + " reported the containers of Pod " + pod.UID + " terminated", holder.Pod.Received()}, true
	case slices.Contains(holder.EndedPods, p.PodUID) && (!mayTakeOver(pod, p) || saysEmpty(holder)):
		return proven{core.ProofPodTerminated, "the kubelet reported the containers of Pod " + p.PodUID + " terminated before it was deleted", holder.Pod.Received()}, true
	}
	return proven{}, false
}

// mayTakeOver: another Pod of the holder may become writable in the same epoch,
// because it runs on the same node; one without data may not. The end of the
// former proves nothing then.
func mayTakeOver(pod core.Pod, p *core.Promotion) bool {
	return pod.Exists && pod.Node != "" && (p.Node == "" || pod.Node == p.Node)
}
