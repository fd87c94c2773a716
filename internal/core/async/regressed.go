package async

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// regressed decides when instances have seen a later epoch of the status than it has, and reports
// whether that is so. Either this operator's view of the status is behind, which passes, or the
// status was set back, as when etcd is restored from a backup: it names a primary of the past.
// Nothing is decided by such a status, and who takes writes goes on.
func (d *decision) regressed() bool {
	last := d.LastEpoch()
	if last <= d.Status.Epoch {
		return false
	}
	if d.AwaitStatus(last) {
		return true
	}
	d.keepPods()
	d.diagnosis = finding{core.PrimaryUnreachable, "the status is of the past, and does not tell who is the primary"}
	primary, said, why := d.primaryOf(last)
	switch {
	case d.overrides():
	case primary != nil:
		d.restoreStatus(primary, said, last)
	default:
		d.blockRegressed(last, why)
	}
	d.GrowVolumes()
	d.PruneServices()
	d.publish()
	return true
}

// keepPods makes Pods for the volumes that there are, so that all can be heard. A volume
// that seems to be missing may only be missing in what was restored.
func (d *decision) keepPods() {
	d.keepEvidence()
	for i := range d.Instances {
		in := &d.Instances[i]
		vol, volKnown := in.Volume.Get()
		pod, podKnown := in.Pod.Get()
		switch {
		case !volKnown || !podKnown || !vol.Exists || vol.Deleting:
		case pod.Exists:
			d.keepPod(in, pod, vol)
		default:
			d.Do(core.CreatePod{Instance: in.Name, Ordinal: in.Ordinal, Awaited: d.awaitPod(in)})
		}
	}
}

// primaryOf is the primary of an epoch by its own word, with that word, if that can be gone by: who
// is not heard may know of a later one. If nobody takes writes, it is who did, and comes back as
// after a crash: its data has all that was acknowledged.
func (d *decision) primaryOf(epoch int64) (primary *core.Instance, said core.Report, why string) {
	var silent []string
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		switch {
		case !known && !in.IsGone():
			silent = append(silent, in.Name)
		case !known, !isOf(r, in):
		case r.WritableEpoch == epoch, primary == nil && r.LastWritable == epoch && r.Data == core.DataPopulated:
			primary, said = in, r
		}
	}
	switch {
	case len(silent) > 0:
		return nil, said, "no answer from " + strings.Join(silent, ", ")
	case primary == nil:
		return nil, said, fmt.Sprintf("no instance has taken writes in epoch %d", epoch)
	case !said.IsPrimary() && (said.Follows != "" || d.followsServer()):
		return nil, said, fmt.Sprintf("%s was the primary of epoch %d, and it is not known whether it had taken over "+
			"from the external server by then", primary.Name, epoch)
	}
	return primary, said, ""
}

// restoreStatus has the primary, which says r, go on in an epoch that nobody has heard of.
func (d *decision) restoreStatus(primary *core.Instance, r core.Report, last int64) {
	d.Status.Epoch, d.Status.Operation, d.Status.FailingSince = last+1, nil, time.Time{}
	for i := range d.Instances {
		d.restoreInstance(&d.Instances[i])
	}
	d.Status.Diverged = draft.Without(d.Status.Diverged, primary.Name)
	if d.Status.EstablishedAt.IsZero() {
		d.Status.EstablishedAt = d.Now
	}
	evidence := fmt.Sprintf("all instances answer: %s is the primary of epoch %d, and none has seen a later epoch",
		primary.Name, last)
	p := &core.Promotion{
		Epoch: d.Status.Epoch, Instance: primary.Name, Proof: core.ProofStatusRestored,
		Evidence: evidence, GrantedAt: d.Now,
		PodUID: r.PodUID, Node: r.Node, Pods: []string{r.PodUID},
		Size: min(r.ClusterSize, d.members()), Leased: d.Cluster.PrimaryLease && r.Leased, Follows: r.Follows,
	}
	if before := d.Status.Promotion; before != nil {
		p.From, p.Awaited = before.Instance, before.Awaited
	}
	if r.Server != nil {
		p.RequiredGTID = r.Server.Executed
	}
	d.Status.Promotion = p
	p.RequiredAcks = d.promotionAcks()
	if r.WritableEpoch != 0 { // as many as at present, so that it is not interrupted
		p.RequiredAcks = acksOf(r)
	}
	d.diagnosis = finding{core.PrimaryPromoting, "it goes on in a new epoch"}
	d.setTarget(primary.Name)
	d.Tell(core.ReasonStatusRestored, fmt.Sprintf("the Cluster's status had been set back: %s. The primary continues "+
		"in epoch %d",
		evidence, d.Status.Epoch))
	d.Doing(primary.Name + " goes on as the primary")
	d.Again = true
}

// restoreInstance takes an instance into the status. Whoever has data may acknowledge.
func (d *decision) restoreInstance(in *core.Instance) {
	if in.IsGone() {
		return
	}
	if r, known := in.Report.Get(); known {
		d.Status.Epoch = max(d.Status.Epoch, r.SeenEpoch, r.NoWritesBelow, r.NoReceivingBelow)
	}
	d.addName(in)
	if !in.SaysEmpty() {
		d.addMember(in.Name)
	}
}

// acksOf is how many acknowledgements a commit waits for, by the primary's own word.
func acksOf(r core.Report) int {
	if r.Server == nil || !r.Server.SemiSync.SourceEnabled {
		return 0
	}
	return r.Server.SemiSync.Acks
}

func (d *decision) blockRegressed(last int64, why string) {
	otherwise := "kubectl cnmsql failover " + d.Cluster.Name + " --to INSTANCE --accept-data-loss"
	if d.Status.Promotion == nil {
		otherwise = "restore the status, or create a Cluster with another name"
	}
	d.Block(core.RefusalStatusRegressed, fmt.Sprintf("the Cluster's status is of epoch %[1]d, and instances have "+
		"seen epoch %[2]d of it: it was set back, as when etcd is restored from a backup. The operator decides "+
		"nothing by it; an instance that takes writes continues. The operator repairs it when all instances answer "+
		"and one of them was the primary of epoch %[2]d; still in the way: %[3]s. If that is impossible: %[4]s",
		d.Status.Epoch, last, why, otherwise))
}
