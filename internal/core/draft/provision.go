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
		if have[ordinal] || slices.Contains(d.Cluster.KeptVolumes, name) {
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

// RemoveInstance takes an instance away; true when that is new. It is told once: the name
// is taken out of the status for good. Its volume stays if that is wished, and there may
// be data on it. Nothing is taken away before it is known what there is.
func (d *Draft) RemoveInstance(victim *core.Instance) bool {
	if !victim.Pod.Known() || !victim.Volume.Known() {
		d.Doing(victim.Name + " is removed when it is known which Pod and volume it has")
		return false
	}
	keep := d.Cluster.KeepVolumes && !victim.SaysEmpty() &&
		victim.Volume.Is(func(vol core.Volume) bool { return vol.Bound && !vol.Deleting })
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

// KeepsData reports whether an instance's Pod stays although its claim is gone or going, and tells so: the
// data go with the Pod, and nobody else is known to have them. The primary is known to have all that was
// acknowledged, and "" when there is none: then nobody's go. In a switchover there is none for a moment.
func (d *Draft) KeepsData(in *core.Instance, primary string) bool {
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
	case primary == in.Name:
		d.Doing(fmt.Sprintf("the PersistentVolumeClaim of the primary %s %s: its data is gone when its Pod stops",
			in.Name, what))
	case primary == "" && d.Status.Operation != nil && d.Status.Operation.Kind == core.OperationSwitchover:
	case primary == "":
		d.Remark(core.ReasonVolumeHeld, in.Name, fmt.Sprintf("the PersistentVolumeClaim of %s %s, and its data is "+
			"gone when its Pod stops: the Pod is kept, for no primary is known that has the data, and this may be the "+
			"last copy. If its data is not needed: kubectl delete pod %s", in.Name, what, in.Name))
	default:
		return false
	}
	return true
}
