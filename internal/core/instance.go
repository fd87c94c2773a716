package core

import "strings"

// Exists: a Pod or a volume of the instance is known to be there.
func (in *Instance) Exists() bool {
	pod, _ := in.Pod.Get()
	vol, _ := in.Volume.Get()
	return pod.Exists || vol.Exists
}

// IsLeaving: all that is left of the instance is being deleted.
func (in *Instance) IsLeaving() bool {
	pod, _ := in.Pod.Get()
	vol, _ := in.Volume.Get()
	return (!pod.Exists || pod.Terminating) && (!vol.Exists || vol.Deleting)
}

// IsGone: it is known that neither Pod nor volume are left.
func (in *Instance) IsGone() bool {
	return in.Pod.Known() && in.Volume.Known() && !in.Exists()
}

// SaysEmpty: the instance's own manager says that it has none of the cluster's data.
func (in *Instance) SaysEmpty() bool {
	r, known := in.Report.Get()
	return known && (r.Data == DataEmpty || r.Data == DataScratch || r.Server != nil && r.Server.DataRemoved)
}

// Owned is what is known to belong to the instance now.
func (in *Instance) Owned() Owned {
	pod, _ := in.Pod.Get()
	vol, _ := in.Volume.Get()
	return Owned{PodUID: pod.UID, VolumeUID: vol.UID}
}

// IsHostOf: host is the instance's DNS name (or the bare name).
func IsHostOf(host, instance string) bool {
	return host == instance || strings.HasPrefix(host, instance+".")
}

// IsStopping reports whether it is being stopped, by the word of its Pod or of its manager; of
// what is not known, nothing is.
func (in *Instance) IsStopping() bool {
	pod, known := in.Pod.Get()
	r, heard := in.Report.Get()
	return known && pod.Terminating || heard && r.Terminating
}
