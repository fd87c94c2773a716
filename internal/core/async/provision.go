package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// provision makes what is missing, replaces what has ended, and takes away what
// is too much or out of date: Pods and volumes, not roles. While something outside the cluster
// hinders it, it only gives instances back what they have lost.
func (d *decision) provision() {
	if d.AdoptVolumes() {
		return
	}
	if d.Cluster.Problem == nil {
		d.grow()
	}
	for i := range d.Instances {
		if in := &d.Instances[i]; d.MayGiveBack(in) {
			d.keep(in)
		}
	}
	if d.Cluster.Problem != nil {
		return
	}
	d.dropUnused()
	if d.Status.Operation == nil && !d.shrink() {
		d.rollOut()
	}
}

// grow makes instances up to the wished number, at once; but not while nobody can
// give them data: they would only be more whose positions are not known.
func (d *decision) grow() {
	hasData := !d.Status.EstablishedAt.IsZero() || d.Status.AdoptedFrom != ""
	if hasData && !d.takesWrites() {
		return
	}
	d.MakeInstances()
}

// keep gives an instance its volume and Pod back when they are known to be gone.
func (d *decision) keep(in *core.Instance) {
	vol, volKnown := in.Volume.Get()
	pod, podKnown := in.Pod.Get()
	switch {
	case !volKnown || !podKnown || d.isEvidence(in):
	case pod.Exists:
		d.keepPod(in, pod, vol)
	case vol.Deleting || in.IsGone() && d.IsSurplus(in):
	case !vol.Exists:
		d.Do(core.CreateVolume{Instance: in.Name, Ordinal: in.Ordinal}, core.CreatePod{Instance: in.Name,
			Ordinal: in.Ordinal, Awaited: d.awaitPod(in), Image: d.ImageFor(in, d.givers())})
	default:
		d.Do(core.CreatePod{Instance: in.Name, Ordinal: in.Ordinal, Awaited: d.awaitPod(in),
			Image: d.ImageFor(in, d.givers())})
	}
}

// isEvidence reports whether the end of this Pod proves that somebody else may be promoted now. A
// new Pod of the same instance could become writable again and undo the proof. Where nobody else is
// promoted, whatever it is that forbids it, the new Pod is the remedy.
func (d *decision) isEvidence(in *core.Instance) bool {
	p := d.Status.Promotion
	if p == nil || p.Instance != in.Name || d.Status.EstablishedAt.IsZero() || d.takesWrites() ||
		d.diagnosis.name == core.PrimaryFenced {
		return false
	}
	since := d.Status.FailingSince
	if since.IsZero() {
		since = d.Now
	}
	if _, ended := podTerminated(d.Observation, in, 0); !ended || d.Now.Before(since.Add(d.Cluster.FailoverDelay)) {
		return false
	}
	return d.ballot(in.Name, "").elect().refusal == "" && !d.isRefused(in)
}

// keepPod clears a Pod out of the way that will not run again: one that ended,
// one whose volume is going, or one that does not run and was made from a spec
// that has been corrected since.
func (d *decision) keepPod(in *core.Instance, pod core.Pod, vol core.Volume) {
	switch {
	case pod.Terminating:
	case !vol.Exists && pod.NeverStarted && !pod.Terminated && !pod.Rejected:
		d.Do(core.CreateVolume{Instance: in.Name, Ordinal: in.Ordinal})
	case d.KeepData(in, d.holderWithData(), d.cannotSpare):
	case pod.Terminated || pod.Rejected || d.LosesItsPod(in) || d.IsCorrected(in, pod, d.givers()):
		d.Do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonInstanceRestarted})
	}
}

// cannotSpare tells why commits would wait for ever without an instance whose claim is gone or going; "" when
// they would not. Where they stop waiting after a time, nobody is held up for long.
func (d *decision) cannotSpare(in *core.Instance) string {
	p := d.Status.Promotion
	if !d.Cluster.Durability.CountsOnReplicas(p) || d.enoughWithout(in, p.RequiredAcks) {
		return ""
	}
	return fmt.Sprintf("because without %s, %s would receive from %s, and each commit needs %s. The operator deletes "+
		"the Pod when enough other replicas receive. To delete it now (commits will hang): kubectl delete pod %[1]s",
		in.Name, core.Plural(d.receiveBeside(in), "replica"), p.Instance, core.Acknowledgements(p.RequiredAcks))
}

// holderWithData is the primary while it is known to have all that was acknowledged: it takes writes, or is
// closed to give its data to others; "" while it is not. One that has lost transactions has not.
func (d *decision) holderWithData() string {
	hasAll := d.takesWrites() && d.diagnosis.name != core.PrimaryLostTransactions ||
		d.diagnosis.name == core.PrimaryClosed
	if p := d.Status.Promotion; p != nil && hasAll {
		return p.Instance
	}
	return ""
}

// settled reports whether the primary takes writes and stays, no operation is in progress, and
// every instance runs and follows. Only then is anything taken away on purpose.
func (d *decision) settled() bool {
	if d.diagnosis.name != core.PrimaryHealthy || d.Status.Operation != nil || d.switchoverWished() ||
		d.hasToGo() != "" || d.HasTried(d.holder()) {
		return false
	}
	ok := true
	others(d.Observation, d.holder().Name, func(in *core.Instance) {
		r, serves := serving(in)
		ok = ok && serves && streams(r, d.holder().Name) && in.IsReady() && !d.mayLack(r) && !d.IsEnding(in.Name) &&
			!d.HasTried(in)
	})
	return ok
}

// rollOut replaces managers, and restarts instances whose Pod is out of date, one at a time: replicas
// first, then the primary after handing over.
func (d *decision) rollOut() {
	if d.mendByRestart() || !d.settled() || d.ReplaceManagers(d.holder().Name) {
		return
	}
	holder := d.holder()
	for i := range d.Instances {
		in := &d.Instances[i]
		if pod, known := in.Pod.Get(); known && pod.Exists && !pod.Current && in.Name != holder.Name {
			d.Restart(in, pod)
			return
		}
	}
	pod, known := holder.Pod.Get()
	if !known || !pod.Exists || pod.Current {
		return
	}
	switch {
	case len(d.Instances) > 1:
		d.chooseSuccessor(core.ReasonRollout)
	case !d.IsOnlyCopy(holder):
		d.Restart(holder, pod)
	}
}

// mendByRestart restarts a replica whose replication is broken and whose Pod is out of date: the
// changed spec may be what mends it, and it must not wait until the replica is well. It does
// where commits need no acknowledgement of this one, or get none from it, and reports whether it did.
func (d *decision) mendByRestart() bool {
	if d.diagnosis.name != core.PrimaryHealthy || d.Status.Operation != nil || d.switchoverWished() {
		return false
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, known := in.Pod.Get()
		if !known || !pod.Exists || pod.Terminating || pod.Current || in.Name == d.holder().Name ||
			!slices.Contains(d.Status.Broken, in.Name) {
			continue
		}
		if _, serves := serving(in); serves && d.enoughWithout(in, d.Status.Promotion.RequiredAcks) {
			d.Restart(in, pod)
			return true
		}
	}
	return false
}

// shrink removes the instance with the highest ordinal when there are more than
// wished; true while it has something to do.
func (d *decision) shrink() bool {
	victim, holder := d.victim(), d.holder()
	switch {
	case victim == nil:
		return false
	case holder == nil || d.diagnosis.name != core.PrimaryHealthy:
		d.Doing("waiting for a healthy primary before " + victim.Name + " is removed")
	case victim.Name == holder.Name:
		d.chooseSuccessor(core.ReasonScaleDown)
	case victim.IsLeaving():
		d.Doing("removing " + victim.Name)
	case d.clearRemoval(victim, holder):
		d.RemoveInstance(victim)
	}
	return true
}

// victim is the last instance that is too much. Those of which nothing is left
// are forgotten on the way.
func (d *decision) victim() *core.Instance {
	for i := max(d.Cluster.Wanted, 1); i < len(d.Instances); i++ {
		in := &d.Instances[i]
		switch {
		case !d.isForgotten(in) || !slices.Contains(d.Status.InstanceNames, in.Name):
		case d.mayCountWithout(in):
			d.Forget(in.Name)
			d.Again = true
		default:
			d.askPrimarySince(in)
		}
	}
	return d.lastSurplus()
}

// mayCountWithout reports whether what was acknowledged by an instance of which nothing is left is
// held by as many of those who stay as a commit waits for. Until then an election has to count with
// that instance, or one of two who are left could seem to be enough.
func (d *decision) mayCountWithout(gone *core.Instance) bool {
	p := d.Status.Promotion
	if !d.Cluster.Durability.CountsOnReplicas(p) || p == nil || !d.isMember(gone.Name) {
		return true
	}
	stay := 0
	for i := range d.Instances {
		if in := &d.Instances[i]; d.isMember(in.Name) && in.Name != gone.Name && !d.isForgotten(in) {
			stay++
		}
	}
	wished := d.Cluster.Durability.Wished(stay)
	return d.diagnosis.name == core.PrimaryHealthy && (wished == 0 || d.isHeldBy(wished) || d.isHeldSince(gone, wished))
}

// isHeldSince reports whether that many replicas hold all that the primary had in its binary log when the
// instance had said already that it has no data. The instance has acknowledged nothing since.
func (d *decision) isHeldSince(gone *core.Instance, count int) bool {
	holder := d.holder()
	r, ok := serving(holder)
	return ok && gone.SaysEmpty() && holder.Report.ReadAfter(gone.Report) && d.replicasWith(r.Server.Logged()) >= count
}

// askPrimarySince asks the primary what it has executed, where what it said is of before the
// instance had said that it has no data.
func (d *decision) askPrimarySince(gone *core.Instance) {
	holder := d.holder()
	if d.diagnosis.name != core.PrimaryHealthy || !gone.SaysEmpty() || holder.Report.ReadAfter(gone.Report) {
		return
	}
	if _, ok := serving(holder); ok {
		d.again(core.Refresh{Instance: holder.Name})
	}
}

// goneForGood counts the members of which nothing is left, and which are not made again.
func (d *decision) goneForGood() (n int) {
	for i := range d.Instances {
		if in := &d.Instances[i]; d.isMember(in.Name) && d.isForgotten(in) && d.IsSurplus(in) {
			n++
		}
	}
	return n
}

func (d *decision) isForgotten(in *core.Instance) bool {
	return in.IsGone() && (d.Status.Promotion == nil || d.Status.Promotion.Instance != in.Name)
}

// lastSurplus is who is to be removed next: the last of them, but first those that have no data. Commits may wait for
// acknowledgements that nobody gives while they are counted, and the others cannot be removed then.
func (d *decision) lastSurplus() (last *core.Instance) {
	for i := max(d.Cluster.Wanted, 1); i < len(d.Instances); i++ {
		in := &d.Instances[i]
		if !d.isForgotten(in) && (last == nil || holdsNothing(in) || !holdsNothing(last)) {
			last = in
		}
	}
	return last
}

// clearRemoval has the victim stop acknowledging, and reports whether it may be removed: it
// holds nothing, or the others hold all that it holds. It says itself what it holds: a Pod that cannot
// start may have a volume full of data.
func (d *decision) clearRemoval(victim, holder *core.Instance) bool {
	r, serves := serving(victim)
	switch {
	case slices.Contains(d.Status.Diverged, victim.Name):
		d.Block(core.ReasonDiverged, victim.Name+" is to be removed, but holds transactions that no other instance "+
			"has; if they do not matter: kubectl cnmsql reinit "+d.Cluster.Name+" "+victim.Name)
	case d.mayVouch(victim):
		d.again(core.ReceivePromise{Instance: victim.Name, Epoch: d.Status.Promotion.Epoch + 1})
		d.Doing("removing " + victim.Name + ": it stops vouching for this primary")
	case holdsNothing(victim) && d.mayCountWithout(victim):
		return true
	case holdsNothing(victim):
		d.askPrimarySince(victim)
		d.Doing("removing " + victim.Name +
			": waiting until enough replicas for a commit hold what it may have acknowledged before it lost its data")
	case !serves && d.IsFenced(victim.Name): // so that somebody can look at what it holds
		d.Doing(fmt.Sprintf("%[2]s is to be removed, but is fenced, so it does not report what it holds; unfence it "+
			"(kubectl cnmsql fence off %[1]s %[2]s), or raise spec.instances again", d.Cluster.Name, victim.Name))
	case !serves:
		d.Doing("waiting for " + victim.Name + " to report what it holds before it is removed; if its data " +
			"does not matter, delete its PersistentVolumeClaim, then its Pod")
	case r.NoReceivingBelow <= d.Status.Promotion.Epoch:
		d.beginRemoval(victim, holder)
	case receives(r):
		d.again(core.Refresh{Instance: victim.Name})
		d.Doing("removing " + victim.Name + ": it stops receiving")
	case !holder.Report.ReadAfter(victim.Report):
		d.again(core.Refresh{Instance: holder.Name})
		d.Doing("removing " + victim.Name + ": comparing what it holds with what " + holder.Name + " holds")
	default:
		why := d.notHeldElsewhere(r, victim, holder)
		d.doingUnless(why)
		return why == ""
	}
	return false
}

// mayVouch reports whether an empty member could still vouch for a primary that has not read yet that it is
// removed, and which would count it: it answers, and has not promised to vouch no more.
func (d *decision) mayVouch(empty *core.Instance) bool {
	return d.isMember(empty.Name) && empty.SaysEmpty() &&
		empty.Report.Is(func(r core.Report) bool { return !r.Withholds(d.Status.Promotion.Epoch + 1) })
}

// beginRemoval has the victim stop receiving, if commits go on without it once it is removed. That it
// does not receive at this moment is no reason to have it promise that: it may be about to follow. A
// primary that was promoted a moment ago is given time: a victim that stops too early, and is
// missed, makes it be promoted once more.
func (d *decision) beginRemoval(victim, holder *core.Instance) {
	p := d.Status.Promotion
	need, settled := d.wishedWithout(victim, holder), p.WritableSince.Add(attachTime)
	if p.WritableSince.IsZero() { // this is the first decision that sees it writable
		settled = d.Now.Add(attachTime)
	}
	switch {
	case d.receiveBeside(victim) < need:
		d.Doing(fmt.Sprintf("%s stays for now: without it, each commit needs %s, and %s would receive from %s: "+
			"bring another replica back first", victim.Name, core.Acknowledgements(need),
			core.Plural(d.receiveBeside(victim), "replica"), holder.Name))
	case d.Now.Before(settled):
		d.RecheckAt(settled)
		d.Doing(fmt.Sprintf("removing %s in a moment: replicas are given %s to follow %s first", victim.Name,
			attachTime, holder.Name))
	default:
		d.again(core.ReceivePromise{Instance: victim.Name, Epoch: p.Epoch + 1})
		d.Doing("removing " + victim.Name + ": it stops receiving")
	}
}

// wishedWithout is the number of acknowledgements that commits should wait for once the victim
// is removed. Who has no data yet may be given what was copied before the victim's last
// acknowledgement, and counts; who is to be removed as well is given none.
func (d *decision) wishedWithout(victim, holder *core.Instance) int {
	members := 1
	others(d.Observation, holder.Name, func(in *core.Instance) {
		isLeft := !in.IsGone() && !(in.SaysEmpty() && d.IsSurplus(in))
		if in.Name != victim.Name && d.isMember(in.Name) && isLeft {
			members++
		}
	})
	return d.Cluster.Durability.Wished(members)
}

func isUnstarted(in *core.Instance) bool {
	pod, known := in.Pod.Get()
	return known && (!pod.Exists || pod.NeverStarted)
}

// notHeldElsewhere tells what is missing; "" where the primary holds all that the victim holds,
// and so do as many replicas as a commit waits for, or a write that only the victim acknowledged
// would not survive the primary. Of a victim that may lack what it acknowledged, that may be
// anything that the primary has in its log, now that the victim acknowledges nothing more.
func (d *decision) notHeldElsewhere(r core.Report, victim, holder *core.Instance) string {
	holds := r.Server.Holds()
	primary, ok := serving(holder)
	if !ok || !primary.Server.Executed.Contains(holds) {
		return fmt.Sprintf("%s is to be removed, but %s is not known to hold all its transactions", victim.Name,
			holder.Name)
	}
	if d.mayLack(r) {
		holds = holds.Union(primary.Server.Logged())
	}
	have := 0
	others(d.Observation, holder.Name, func(in *core.Instance) {
		if in.Name == victim.Name || !d.isMember(in.Name) {
			return
		}
		if other, ok := serving(in); ok && !slices.Contains(d.Status.Diverged, in.Name) &&
			other.Server.Holds().Contains(holds) {
			have++
		}
	})
	if need := d.wishedWithout(victim, holder); have < need {
		return fmt.Sprintf("%s is to be removed, but only %d of %d required replicas hold all its transactions",
			victim.Name, have, need)
	}
	return ""
}

// doingUnless says why something waits, if there is a reason.
func (d *decision) doingUnless(why string) {
	if why != "" {
		d.Doing(why)
	}
}
