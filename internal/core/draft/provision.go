package draft

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// MakeInstances makes instances up to the wished number, at once.
func (d *Draft) MakeInstances() {
	have := map[int]bool{}
	for i := range d.Instances {
		have[d.Instances[i].Ordinal] = true
	}
	for ordinal := 1; len(have) < d.Cluster.Wanted; ordinal++ {
		name := fmt.Sprintf("%s-%d", d.Cluster.Name, ordinal)
		if have[ordinal] || d.HasKeptVolume(name) {
			continue
		}
		have[ordinal] = true
		d.Do(core.CreateVolume{Instance: name, Ordinal: ordinal}, core.CreatePod{Instance: name, Ordinal: ordinal})
		if !slices.Contains(d.Status.InstanceNames, name) {
			d.Tell(core.ReasonInstanceCreated, "making "+name)
			d.Status.InstanceNames = append(d.Status.InstanceNames, name)
		}
		d.Status.LatestOrdinal = max(d.Status.LatestOrdinal, ordinal)
	}
}

// IsSurplus reports whether there are more instances than wished, and this is one of those that go:
// the ones with the highest ordinals.
func (d *Draft) IsSurplus(in *core.Instance) bool {
	for i := d.Cluster.Wanted; i < len(d.Instances); i++ {
		if d.Instances[i].Name == in.Name {
			return true
		}
	}
	return false
}

// HasKeptVolume reports whether the instance of a name was removed, and its volume kept. Where there still is a Pod
// of it, the removal has only come so far: the name stays out of the status.
func (d *Draft) HasKeptVolume(name string) bool { return slices.Contains(d.Cluster.KeptVolumes, name) }

// RemoveInstance takes an instance away; true when that is new. It is told once: the name
// is taken out of the status for good. Its volume stays if that is wished, and there may
// be data on it, and in any case if it was kept already. Nothing is taken away before it is known what there is.
func (d *Draft) RemoveInstance(victim *core.Instance) bool {
	if !isKnown(victim) {
		d.Doing(victim.Name + " is removed when the operator can read its Pod and volume")
		return false
	}
	mayHaveData := d.Cluster.KeepVolumes && !victim.SaysEmpty() &&
		victim.Volume.Is(func(vol core.Volume) bool { return vol.Bound && !vol.Deleting })
	keep := mayHaveData || d.HasKeptVolume(victim.Name)
	d.Do(core.DeleteInstance{Instance: victim.Name, Owned: victim.Owned(), KeepVolume: keep,
		Reason: core.ReasonScaleDown})
	d.Doing("removing " + victim.Name)
	isNew := slices.Contains(d.Cluster.Status.InstanceNames, victim.Name)
	switch {
	case isNew && keep:
		d.Tell(core.ReasonInstanceRemoved, "removing "+victim.Name+": spec.instances was lowered; its "+
			"PersistentVolumeClaim is kept (spec.storage.whenScaled): delete it when its data is not needed")
	case isNew:
		d.Tell(core.ReasonInstanceRemoved, "removing "+victim.Name+" and its volume: spec.instances was lowered")
	}
	d.Forget(victim.Name)
	return isNew
}

// isKnown reports whether it is known which Pod and volume an instance has.
func isKnown(in *core.Instance) bool { return in.Pod.Known() && in.Volume.Known() }

// Forget takes an instance out of the status.
func (d *Draft) Forget(name string) {
	d.Status.InstanceNames = Without(d.Status.InstanceNames, name)
	d.Status.Members = Without(d.Status.Members, name)
}

// Restart deletes a Pod that is out of date, for another to be made.
func (d *Draft) Restart(in *core.Instance, pod core.Pod) {
	d.Do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonRollout})
	d.Announce(false, core.ReasonInstanceRestarted, in.Name, "restarting "+in.Name+": its Pod is recreated from the "+
		"changed spec")
}

// IsEnding reports whether this plan deletes the instance's Pod.
func (d *Draft) IsEnding(name string) bool {
	return slices.ContainsFunc(d.Effects, func(e core.Effect) bool {
		pod, isPod := e.(core.DeletePod)
		all, isAll := e.(core.DeleteInstance)
		anew, isAnew := e.(core.ReinitInstance)
		return isPod && pod.Instance == name || isAll && all.Instance == name || isAnew && anew.Instance == name
	})
}

// LosesVolume reports whether the instance's claim is gone or going, so that its data is gone when its Pod
// stops.
func LosesVolume(in *core.Instance) bool {
	return in.Volume.Is(func(vol core.Volume) bool { return !vol.Exists || vol.Deleting })
}

// MayGiveBack reports whether an instance is given its volume and Pod back when they are gone. Of a cluster
// that was established it is, although something outside hinders the cluster: whoever makes the Pod looks
// whether what this one needs is there. Where the API server does not keep the status, nothing is made.
func (d *Draft) MayGiveBack(in *core.Instance) bool {
	p := d.Cluster.Problem
	return p == nil || p.Reason != core.ProblemCRDOutdated && !d.Status.EstablishedAt.IsZero() &&
		slices.Contains(d.Status.InstanceNames, in.Name)
}

// LosesItsPod reports whether an instance's Pod goes because its claim is gone or going. One that may run
// stays while something outside hinders the cluster: its next one might be refused.
func (d *Draft) LosesItsPod(in *core.Instance) bool {
	return d.Cluster.Problem == nil && LosesVolume(in)
}

// VolumeGoes is why such an instance does not become primary.
const VolumeGoes = "its PersistentVolumeClaim is gone or being deleted, so its data is lost when its Pod stops"

// KeepData has an instance's Pod stay although its claim is gone or going, and tells why: the data go with the
// Pod. It reports whether the Pod stays. The primary is known to have all that was acknowledged, and "" when there
// is none: then nobody's go. In a switchover there is none for a moment. cannotSpare tells why a running instance
// cannot be missed; "" when it can.
func (d *Draft) KeepData(in *core.Instance, primary string, cannotSpare func(*core.Instance) string) bool {
	vol, volKnown := in.Volume.Get()
	pod, podKnown := in.Pod.Get()
	isEmpty := in.SaysEmpty() || pod.NeverStarted && !vol.Bound
	isOver := !vol.Exists && (pod.Terminated || pod.Rejected)
	what := "is being deleted"
	if !vol.Exists {
		what = "is gone"
	}
	switch {
	case !volKnown || !podKnown || !LosesVolume(in) || isEmpty || isOver:
		return false
	case primary == in.Name && d.IsOnlyCopy(in):
		d.Remark(core.ReasonVolumeHeld, in.Name, fmt.Sprintf("the PersistentVolumeClaim of %s %s, and its data is "+
			"gone when its Pod stops: the Pod is kept, also when the spec changes, because this is the only instance. "+
			"Raise spec.instances: another one then copies the data and takes over, and %[1]s gets a new volume",
			in.Name, what))
		return true
	case primary == in.Name:
		d.Doing(fmt.Sprintf("the PersistentVolumeClaim of the primary %s %s: its data is gone when its Pod stops",
			in.Name, what))
		return true
	case !d.keepsVolume(primary) && d.Status.Operation != nil &&
		d.Status.Operation.Kind == core.OperationSwitchover:
		return true
	}
	why := d.whyKept(in, pod, primary, cannotSpare)
	if why != "" {
		d.Remark(core.ReasonVolumeHeld, in.Name, fmt.Sprintf("the PersistentVolumeClaim of %s %s, and its data is "+
			"gone when its Pod stops: the Pod is kept, %s", in.Name, what, why))
	}
	return why != ""
}

// IsOnlyCopy reports whether an instance is the only one, and its volume is not known to outlive its Pod: the
// last copy of the data may go with it.
func (d *Draft) IsOnlyCopy(in *core.Instance) bool {
	return len(d.Instances) == 1 && !in.Volume.Is(func(vol core.Volume) bool { return vol.Exists && !vol.Deleting })
}

// keepsVolume reports whether there is a primary, and its data stay whatever becomes of its Pod.
func (d *Draft) keepsVolume(primary string) bool {
	in := d.Instance(primary)
	return in != nil && !LosesVolume(in)
}

// whyKept tells why the Pod of an instance that is not the primary is kept for its data or its service; "" when
// it is not. One that has ended serves nobody.
func (d *Draft) whyKept(in *core.Instance, pod core.Pod, primary string, cannotSpare func(*core.Instance) string,
) string {
	switch {
	case primary == "":
		return "because no primary with the data is known, and this may be the last copy. If its data is not needed: " +
			"kubectl delete pod " + in.Name
	case !d.keepsVolume(primary):
		return fmt.Sprintf("because the primary %s loses its volume as well, and no copy would remain. If its data "+
			"is not needed: kubectl delete pod %s; it then gets a new volume and a copy, and can take over", primary,
			in.Name)
	case pod.Terminated || pod.Rejected:
		return ""
	}
	if why := cannotSpare(in); why != "" {
		return why
	}
	if other := d.withoutData(in); other != "" {
		return fmt.Sprintf("until %s is known to have a copy of the data, so that not all copies are recreated at "+
			"the same time. If that does not matter: kubectl delete pod %s", other, in.Name)
	}
	return ""
}

// withoutData names an instance that stays and has no data yet, or loses them at this moment; "" when there is
// none. One that is not heard may have none, but two that are not heard do not wait for each other.
func (d *Draft) withoutData(but *core.Instance) string {
	for i := range d.Instances {
		in := &d.Instances[i]
		isNew := in.Volume.Is(func(vol core.Volume) bool { return vol.Exists && !vol.Bound })
		isUnheard := but.Report.Known() && !in.Report.Known()
		if in.Name != but.Name && !d.IsSurplus(in) &&
			(in.SaysEmpty() || in.IsLeaving() || d.IsEnding(in.Name) || isNew || isUnheard) {
			return in.Name
		}
	}
	return ""
}
