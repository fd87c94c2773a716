package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// provision makes what is missing, replaces what has ended, and takes away what
// is too much or out of date: Pods and volumes, not roles.
func (d *decision) provision() {
	if p := d.o.Cluster.Problem; p != nil {
		d.block(core.Reason(p.Reason), p.Message)
		return
	}
	d.grow()
	for i := range d.o.Instances {
		d.keep(&d.o.Instances[i])
	}
	if d.s.Operation == nil && !d.shrink() {
		d.rollOut()
	}
}

// grow makes instances up to the wished number, at once.
func (d *decision) grow() {
	have := map[int]bool{}
	for i := range d.o.Instances {
		have[d.o.Instances[i].Ordinal] = true
	}
	for ordinal := 1; len(have) < d.o.Cluster.Wanted; ordinal++ {
		if have[ordinal] {
			continue
		}
		have[ordinal] = true
		name := fmt.Sprintf("%s-%d", d.o.Cluster.Name, ordinal)
		d.do(core.CreateVolume{Instance: name, Ordinal: ordinal}, core.CreatePod{Instance: name, Ordinal: ordinal})
		d.tell(core.ReasonInstanceCreated, "making "+name)
		d.s.InstanceNames = append(d.s.InstanceNames, name)
		d.s.LatestOrdinal = max(d.s.LatestOrdinal, ordinal)
	}
}

// keep gives an instance its volume and Pod back when they are known to be gone.
func (d *decision) keep(in *core.Instance) {
	vol, volKnown := in.Volume.Get()
	pod, podKnown := in.Pod.Get()
	if !volKnown || !podKnown {
		return
	}
	if pod.Exists {
		d.keepPod(in, pod, vol)
		return
	}
	if vol.Deleting {
		return
	}
	if !vol.Exists {
		d.do(core.CreateVolume{Instance: in.Name, Ordinal: in.Ordinal})
	}
	d.do(core.CreatePod{Instance: in.Name, Ordinal: in.Ordinal})
}

// keepPod clears a Pod out of the way that will not run again: one that ended,
// one whose volume is going, or one that never started and was made from a spec
// that has been corrected since.
func (d *decision) keepPod(in *core.Instance, pod core.Pod, vol core.Volume) {
	if pod.Terminating {
		return
	}
	ended := pod.Terminated
	volumeLost := !vol.Exists || vol.Deleting
	corrected := !pod.Current && (pod.NeverStarted || d.isFailed(in))
	if ended || volumeLost || corrected {
		d.do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonInstanceRestarted})
	}
}

func (d *decision) isFailed(in *core.Instance) bool {
	r, known := in.Report.Get()
	return known && r.State == core.Failed
}

// settled: the primary takes writes, no operation is in progress, and every
// instance runs and follows. Only then is anything taken away on purpose.
func (d *decision) settled() bool {
	if d.diagnosis.name != core.PrimaryHealthy || d.s.Operation != nil || d.switchoverWished() {
		return false
	}
	ok := true
	others(d.o, d.holder().Name, func(in *core.Instance) {
		r, serves := serving(in)
		pod, _ := in.Pod.Get()
		ok = ok && serves && streams(r, d.holder().Name) && pod.Ready && !pod.Terminating
	})
	return ok
}

// rollOut restarts instances whose Pod is out of date, one at a time: replicas
// first, then the primary after handing over.
func (d *decision) rollOut() {
	if !d.settled() {
		return
	}
	holder := d.holder()
	for i := range d.o.Instances {
		in := &d.o.Instances[i]
		if pod, known := in.Pod.Get(); known && pod.Exists && !pod.Current && in.Name != holder.Name {
			d.restart(in, pod)
			return
		}
	}
	pod, known := holder.Pod.Get()
	if !known || !pod.Exists || pod.Current {
		return
	}
	if len(d.o.Instances) > 1 {
		d.handOver(core.ReasonRollout)
		return
	}
	d.restart(holder, pod)
}

func (d *decision) restart(in *core.Instance, pod core.Pod) {
	d.do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonRollout})
	d.tell(core.ReasonInstanceRestarted, "restarting "+in.Name+": its Pod is made anew from the changed spec")
	d.say("restarting " + in.Name + " with the changed spec")
}

// shrink removes the instance with the highest ordinal when there are more than
// wished; true while it has something to do.
func (d *decision) shrink() bool {
	if len(d.o.Instances) <= d.o.Cluster.Wanted {
		return false
	}
	victim := &d.o.Instances[len(d.o.Instances)-1]
	d.say("removing " + victim.Name)
	holder := d.holder()
	if holder == nil || d.diagnosis.name != core.PrimaryHealthy {
		d.say("waiting for a healthy primary before an instance is removed")
		return true
	}
	if victim.Name == holder.Name {
		d.handOver(core.ReasonScaleDown)
		return true
	}
	if d.mayRemove(victim, holder) {
		d.do(core.DeleteInstance{Instance: victim.Name, Reason: core.ReasonScaleDown})
		d.tell(core.ReasonInstanceRemoved, "removing "+victim.Name+" and its volume: spec.instances was lowered")
		d.s.InstanceNames = slices.DeleteFunc(d.s.InstanceNames, func(n string) bool { return n == victim.Name })
	}
	return true
}

// mayRemove: the victim holds nothing, or it has stopped acknowledging and the
// primary holds all that it holds.
func (d *decision) mayRemove(victim, holder *core.Instance) bool {
	r, known := victim.Report.Get()
	pod, podKnown := victim.Pod.Get()
	if podKnown && pod.Exists && pod.NeverStarted || known && (r.Data == core.DataEmpty || r.Data == core.DataScratch) {
		return true
	}
	if slices.Contains(d.s.Diverged, victim.Name) {
		d.block(core.ReasonDiverged, victim.Name+" is to be removed, but holds transactions that no other instance has; delete its Pod and PersistentVolumeClaim yourself if they do not matter")
		return false
	}
	if _, ok := serving(victim); !ok {
		d.say("waiting to hear from " + victim.Name + " before it is removed: it is not known what it holds")
		return false
	}
	if r.FrozenBelow <= d.s.Promotion.Epoch {
		d.again(core.FreezeIO{Instance: victim.Name, Epoch: d.s.Promotion.Epoch + 1})
		return false
	}
	if !holder.Report.ReadAfter(victim.Report) {
		d.again(core.Refresh{Instance: holder.Name})
		return false
	}
	primary, _ := holder.Report.Get()
	return primary.Server != nil && primary.Server.Executed.Contains(r.Server.Holds())
}
