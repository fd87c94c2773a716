package async

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// withheldLook is how often it is looked whether vouches have run out.
const withheldLook = 500 * time.Millisecond

// beginProof has a proof looked for from now on.
func (d *decision) beginProof(f *failure) {
	d.Status.Operation.Step, d.Status.Operation.Deadline = core.StepProve, time.Time{}
	if f.canPromise {
		d.Plan.Carried.Asking = d.asking(f.next)
	}
}

// seekPromise asks the primary's manager alone.
func (d *decision) seekPromise(f *failure) {
	d.beginProof(f)
	d.RecheckAt(f.promiseBy)
	d.askToDemote(f.next)
}

// seekLease waits until the primary's lease has run out and enough instances have withheld
// their vouch, and takes the lease record from it.
func (d *decision) seekLease(f *failure) {
	d.beginProof(f)
	d.askReceivePromises(f.next)
	d.awaitLease(f.next)
}

// seekQuorum asks whoever keeps the primary going to stop.
func (d *decision) seekQuorum(f *failure) {
	d.beginProof(f)
	d.askReceivePromises(f.next)
	d.Doing(fmt.Sprintf("the primary %s %s (%s); the replicas are asked to stop receiving from it",
		d.Status.Promotion.Instance, d.cannotPromise(), f.name))
	d.RecheckAt(f.podBy)
}

// seekAnything asks everybody for a promise when there is nothing left but the
// manager, or a new Pod's. A manager that has been asked in vain is asked on.
func (d *decision) seekAnything(f *failure) {
	d.beginProof(f)
	d.askReceivePromises(f.next)
	d.askToDemote(f.next)
	if d.holder().Report.Is(func(r core.Report) bool { return r.NoWritesBelow < f.next }) {
		d.Block(core.RefusalNoProof, d.noProof(true))
	}
}

// cannotPromise is why the word of the primary's manager is not waited for.
func (d *decision) cannotPromise() string {
	switch {
	case d.canPromise():
		return "has been asked for a promise, and has made none"
	case d.holder().Report.Known():
		return "cannot be asked for a promise"
	}
	return "cannot be reached"
}

// isAnyWithheld reports whether some replica has stopped receiving from the primary,
// for it was asked to.
func (d *decision) isAnyWithheld() bool {
	silent, _ := receivePromises(d.Observation, d.Status.Promotion.Instance, d.nextEpoch(), 0)
	return len(silent) > 0
}

// unasked are the replicas that can be asked to stop receiving and vouching, and have not yet.
func (d *decision) unasked(next int64) []string {
	var names []string
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		r, known := in.Report.Get()
		if known && r.VolumeLocked && !r.Withholds(next) {
			names = append(names, in.Name)
		}
	})
	return names
}

// askReceivePromises has every replica that can be asked stop receiving and vouching.
func (d *decision) askReceivePromises(next int64) {
	for _, name := range d.unasked(next) {
		d.again(core.ReceivePromise{Instance: name, Epoch: next})
	}
}

// leaseProves reports whether a proof follows when the lease has run out and all that can have
// withheld their vouch have done so.
func (d *decision) leaseProves(next int64) bool {
	_, may := receivePromises(d.Observation, d.Status.Promotion.Instance, next, 0)
	return d.Cluster.Lease.Known() && isMinority(d.Observation, 1+len(may))
}

func (d *decision) awaitLease(next int64) {
	holder := d.holder()
	l, known := d.Cluster.Lease.Get()
	if !known {
		return
	}
	expires := l.UnchangedSince.Add(core.LeaseTTL)
	switch {
	case l.Epoch == next && l.Holder == "":
	case d.Now.Before(expires):
		d.Doing(fmt.Sprintf("the primary %s %s (%s); waiting until its Lease runs out at %s, "+
			"unless the primary renews it", holder.Name, d.cannotPromise(), d.diagnosis.name, clock(expires)))
		d.RecheckAt(expires)
		return
	case vouchesExpired(d.Observation, holder, next):
		// Until its effect is seen it is repeated, in vain.
		d.Do(core.SeizeLease{Epoch: next, Version: l.Version})
		d.RecheckAt(d.Now.Add(receiveLook))
	}
	d.Doing(fmt.Sprintf("the primary %s %s (%s), and its Lease has run out; "+
		"waiting until no vouch for the primary can be valid any more",
		holder.Name, d.cannotPromise(), d.diagnosis.name))
	d.RecheckAt(d.Now.Add(withheldLook))
}

// askToDemote asks the holder's manager to promise that it is not writable below
// epoch next; without a manager to ask there is nothing to do but to wait.
func (d *decision) askToDemote(next int64) {
	holder, p := d.holder(), d.Status.Promotion
	r, known := holder.Report.Get()
	switch {
	case known && r.NoWritesBelow < next:
		d.again(core.Demote{Instance: holder.Name, Epoch: next})
		d.Doing("asking the manager of " + holder.Name + " to make mysqld read-only and to promise that it stays so")
	case known && p.IsOf(r.PodUID, r.Node) && r.Data == core.DataPopulated:
		d.Do(core.Demote{Instance: holder.Name, Epoch: next})
		d.Doing(fmt.Sprintf("waiting for %s to become read-only: %s", holder.Name, demotionProgress(r)))
	case !known && d.diagnosis.name == core.PodGone && d.Now.Before(d.podPatience()):
		d.Doing("waiting for the new Pod of " + holder.Name + ": its manager may be able to promise that the " +
			"former Pod takes no more writes" + besides(holder))
		d.RecheckAt(d.podPatience())
	case d.awaitNode(holder):
	default:
		d.Block(core.RefusalNoProof, d.noProof(known))
	}
}

// awaitNode waits for a lease that was renewed lately on a node that is said to be gone, and reports whether it
// does: the node may live, or have gone this moment.
func (d *decision) awaitNode(holder *core.Instance) bool {
	expires := leaseRunsOut(d.Observation)
	if !d.Now.Before(expires) || !isNodeSaidToEnd(d.Observation, holder) {
		return false
	}
	d.Doing(fmt.Sprintf("the node of %s is gone or out of service, but its Lease was renewed a short time ago; "+
		"waiting until %s to see whether it is renewed again", holder.Name, clock(expires)))
	d.RecheckAt(expires)
	return true
}

// podPatience is until when a new Pod of a primary whose Pod is gone is waited for
// before it is called a problem.
func (d *decision) podPatience() time.Time {
	return d.Status.FailingSince.Add(d.Cluster.FailoverDelay + newPodPatience)
}

func demotionProgress(r core.Report) string {
	switch {
	case !r.VolumeLocked:
		return "its manager waits for the lock on the volume"
	case r.ClientSessions > 0:
		return fmt.Sprintf("%d client sessions are still open", r.ClientSessions)
	default:
		return string(r.State)
	}
}
