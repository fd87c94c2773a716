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

// managerFenced: the manager of the Pod that may be writable, or one that holds
// the lock on its volume on the same node, gave its word. The word is kept on
// the volume, so that the last one heard of a manager that is gone counts.
func managerFenced(o *core.Observation, holder *core.Instance, next int64) (proven, bool) {
	word := holder.Report
	if !word.Known() {
		word = holder.LastWord
	}
	r, known := word.Get()
	p := o.Cluster.Status.Promotion
	if !known || r.FencedBelow < next || r.WritableEpoch != 0 || r.ClientSessions != 0 {
		return proven{}, false
	}
	if r.PodUID != p.PodUID && !(r.VolumeLocked && r.Node == p.Node) {
		return proven{}, false
	}
	return proven{core.ProofManagerFenced,
		fmt.Sprintf("the manager of %s promises that it is not writable below epoch %d; mysqld: %s", holder.Name, r.FencedBelow, r.State),
		word.Received()}, true
}

// podTerminated: the kubelet's word, or the node's end.
func podTerminated(o *core.Observation, holder *core.Instance) (proven, bool) {
	p := o.Cluster.Status.Promotion
	if pod, known := holder.Pod.Get(); known && pod.Exists && pod.UID == p.PodUID && pod.Terminated {
		return proven{core.ProofPodTerminated, "the kubelet of " + pod.Node + " reported the containers of Pod " + pod.UID + " terminated", holder.Pod.Received()}, true
	}
	if slices.Contains(holder.EndedPods, p.PodUID) {
		return proven{core.ProofPodTerminated, "the kubelet reported the containers of Pod " + p.PodUID + " terminated before it was deleted", holder.Pod.Received()}, true
	}
	if node, known := holder.Node.Get(); known && (!node.Exists || node.OutOfService) {
		return proven{core.ProofPodTerminated, "node " + p.Node + " is gone or out of service", holder.Node.Received()}, true
	}
	return proven{}, false
}
