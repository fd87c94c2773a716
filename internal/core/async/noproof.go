package async

import (
	"cmp"
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// noProof tells why nobody is promoted, and what a human can do. Where Kubernetes says why the
// primary's new Pod does not run, that is to be mended first: its manager can promise what
// nobody proves.
func (d *decision) noProof(answers bool) string {
	f, p := d.diagnosis, d.Status.Promotion
	why := "its manager does not answer, and its kubelet has not reported that its container ended"
	switch asked := d.askedInVain(); {
	case asked != "":
		why = asked
	case answers:
		why = "another Pod answers, and nobody has reported that the Pod that took writes has ended"
	}
	otherMembers(d.Observation, p.Instance, func(in *core.Instance) {
		pod, known := in.Pod.Get()
		gone := draft.Without(unspokenFor(d.Observation, in), pod.UID)
		switch {
		case !known || len(gone) == 0:
		case pod.Exists:
			why += fmt.Sprintf("; %s was recreated since, and its former Pod %s may still run beside the primary and "+
				"vouch for it", in.Name, strings.Join(gone, ", "))
		default:
			why += fmt.Sprintf("; the Pod of %s was deleted since, and %s may still run beside the primary and vouch "+
				"for it", in.Name, strings.Join(gone, ", "))
		}
	})
	where := ""
	if p.Node != "" {
		where = " on " + p.Node
	}
	return fmt.Sprintf("%s may still take writes%s (%s: %s): %s%s. So the operator promotes nobody. %s", p.Instance,
		where, f.name,
		f.says, why, d.withoutLease(), d.proofAdvice())
}

// askedInVain tells of a manager of the very Pod that took writes that it answers and has not promised; "" when
// it does not answer, or has.
func (d *decision) askedInVain() string {
	r, known := d.holder().Report.Get()
	if !known || !d.Status.Promotion.IsOf(r.PodUID, r.Node) || r.NoWritesBelow >= d.nextEpoch() {
		return ""
	}
	return fmt.Sprintf("its manager answers (%s), but has not yet promised to take no writes: check its log, and its "+
		"volume, where it must write the promise", r.State)
}

// proofAdvice returns what a human can do when there is no proof. A taint evicts all that runs on a
// node and detaches its volumes, so that it is named only where the node may be what fails.
func (d *decision) proofAdvice() string {
	hindered, isNode := d.newPodWaits()
	var ways []string
	if hindered != "" {
		ways = append(ways, "Get its new Pod running, because the manager in it can promise that the former Pod "+
			"takes no writes: "+hindered)
	}
	if isNode && d.askedInVain() == "" {
		node := cmp.Or(d.Status.Promotion.Node, "NODE")
		ways = append(ways, "Bring "+node+" or its network back", fmt.Sprintf("Only if %s is powered off, not merely "+
			"cut off: kubectl taint node %[1]s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", node))
	}
	if len(d.Instances) > 1 {
		ways = append(ways, fmt.Sprintf("Accept the loss of writes that the promoted instance lacks: kubectl cnmsql "+
			"failover %s --to INSTANCE --accept-data-loss", d.Cluster.Name))
	}
	return numbered(ways)
}

// numbered numbers what can be done, so that nobody takes it for steps one after the other.
func numbered(ways []string) string {
	if len(ways) < 2 {
		return strings.Join(ways, "")
	}
	text := "Do one:"
	for i, way := range ways {
		text += fmt.Sprintf(" (%d) %s.", i+1, way)
	}
	return strings.TrimSuffix(text, ".")
}

// newPodWaits is what hinders a Pod that was made since for the primary, "" when nothing is known
// to; isNode tells whether the former Pod's node may be dead all the same. A Pod that is on a node
// waits for something else; one that finds none may wait for that very node.
func (d *decision) newPodWaits() (hindered string, isNode bool) {
	pod, known := d.holder().Pod.Get()
	why := d.holder().CannotRun()
	if !known || !pod.Exists || pod.UID == d.Status.Promotion.PodUID || why == nil {
		return "", true
	}
	return why.String(), pod.Node == "" && len(d.Instances) > 1
}

// withoutLease tells that the lease proves nothing, and that switching it on is no remedy.
func (d *decision) withoutLease() string {
	switch {
	case goesByLease(d.Observation) || d.Status.Promotion.Size < 2:
		return ""
	case d.Cluster.PrimaryLease:
		return "; the primary has not confirmed that it obeys its Lease (spec.enablePrimaryLease), so an expired " +
			"Lease proves nothing"
	}
	return "; enabling spec.enablePrimaryLease now does not help: the primary would have to confirm it first, but is " +
		"unreachable"
}
