package group

import (
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// carryOut does what a plan says.
func (w *world) carryOut(e core.Effect) {
	switch e := e.(type) {
	case core.AdoptVolume:
		w.adoptVolume(e)
	case core.CreateVolume:
		w.make(e.Instance, e.Ordinal).vol = core.Volume{Exists: true, UID: "volume-" + e.Instance, Bound: true,
			Asks: w.cluster.VolumeSize.Bytes}
	case core.CreatePod:
		in := w.make(e.Instance, e.Ordinal)
		in.version, in.m = w.mysql, manager{}
		if e.Image != "" {
			in.version = strings.TrimPrefix(e.Image, "mysql:")
		}
		in.pod = core.Pod{Exists: true, UID: "uid-" + e.Instance, Current: in.version == w.mysql, CurrentButImage: true,
			Image: "mysql:" + in.version, NeverStarted: w.pulls(e.Instance),
			Address: fmt.Sprintf("10.0.0.%d", e.Ordinal)}
	case core.DeletePod:
		w.deletePod(e.Instance, podDoomed)
	case core.DeleteInstance:
		w.deleteOwned(e.Instance, e.Owned, allDoomed)
	case core.ReinitInstance:
		w.deleteOwned(e.Instance, e.Owned, dataDoomed)
	case core.ReceivePromise:
		if in, heard := w.order(e.Instance, e.Epoch); heard {
			in.frozen = max(in.frozen, e.Epoch)
		}
	case core.CloneFrom:
		if in, heard := w.order(e.Instance, e.Epoch); heard {
			in.m.donor = e.Donor
		}
	case core.ReplaceManager:
		w.get(e.Instance).manager = w.cluster.Manager
	case core.SetGroupPrimary:
		if in, heard := w.order(e.Instance, e.Epoch); heard && in.answers() && !w.slow &&
			w.isOldest(e.Primary) && w.isMember(e.Primary) {
			w.learn([]string{e.Primary}) // it applies what it has received first
			w.primary = e.Primary
			w.changes++
		}
	case core.ForceMembers:
		w.forceMembers(e)
	case core.RebootGroup:
		w.reboot(e)
	default:
		w.note(e)
	}
}

// note carries out what changes Kubernetes objects only.
func (w *world) note(e core.Effect) {
	switch e := e.(type) {
	case core.LabelPod:
		in := w.get(e.Instance)
		in.pod.Role, in.pod.Routable = e.Role, e.Routable
	case core.GrowVolume:
		w.get(e.Instance).vol.Asks = w.cluster.VolumeSize.Bytes
	case core.RouteWrites:
		w.cluster.Routed = core.Known(e.Instance, w.now, w.now)
	case core.BindReinit:
		w.cluster.Reinit = core.BoundReinit(w.cluster.Reinit, e.Request)
	case core.ClearReinit:
		w.cluster.Reinit = core.WithoutReinit(w.cluster.Reinit, e.Instance)
	case core.ClearForceQuorum:
		w.cluster.Group.ForceQuorum = false
	case core.ClearOverride:
		w.cluster.Override = nil
	case core.ClearDemote:
		w.get(e.Instance).pod.DemoteRequested = false
	}
}

// deleteOwned takes an instance's Pod away, and more, if what it has is what was meant.
func (w *world) deleteOwned(name string, meant core.Owned, what doom) {
	if in := w.get(name); in != nil && in.pod.UID == meant.PodUID && in.vol.UID == meant.VolumeUID {
		w.deletePod(name, what)
	}
}

func (w *world) make(name string, ordinal int) *instance {
	if in := w.get(name); in != nil {
		return in
	}
	w.all = append(w.all, &instance{name: name, ordinal: ordinal, data: core.DataEmpty})
	slices.SortFunc(w.all, func(a, b *instance) int { return a.ordinal - b.ordinal })
	return w.get(name)
}

// isOldest: nobody in the group runs an older version, which here are of equal length.
func (w *world) isOldest(name string) bool {
	return !slices.ContainsFunc(w.view, func(other string) bool { return w.versionOf(other) < w.versionOf(name) })
}

func (w *world) versionOf(name string) string {
	if in := w.get(name); in != nil {
		return in.version
	}
	return w.mysql // it is gone, and the view does not know it yet
}

// image is everything that can change.
func (w *world) image() string {
	s := w.cluster.Status
	text := fmt.Sprint(w.view, w.primary, s.Fenced, s.Diverged, s.Group, s.Phase, s.Reason, s.Epoch, s.TargetPrimary,
		s.Operation, s.InstanceNames, w.cluster.Reinit)
	for _, in := range w.all {
		text += fmt.Sprint(in.name, in.pod, in.vol, in.up, in.data, in.frozen, in.stale, in.state)
	}
	return text
}
