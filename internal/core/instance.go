package core

import (
	"slices"
	"strings"
)

func podExists(p Pod) bool       { return p.Exists }
func volumeExists(v Volume) bool { return v.Exists }

// Exists reports whether a Pod or a volume of the instance is known to be there.
func (in *Instance) Exists() bool { return in.Pod.Is(podExists) || in.Volume.Is(volumeExists) }

// IsLeaving reports whether nothing of the instance is known to stay.
func (in *Instance) IsLeaving() bool {
	return !in.Pod.Is(func(p Pod) bool { return p.Exists && !p.Terminating }) &&
		!in.Volume.Is(func(v Volume) bool { return v.Exists && !v.Deleting })
}

// IsGone reports whether it is known that neither Pod nor volume are left.
func (in *Instance) IsGone() bool { return in.Pod.IsNot(podExists) && in.Volume.IsNot(volumeExists) }

// SaysEmpty reports whether the instance's own manager says that it has none of the cluster's data.
func (in *Instance) SaysEmpty() bool {
	r, known := in.Report.Get()
	return known && (r.Data == DataEmpty || r.Data == DataScratch || r.Server != nil && r.Server.DataRemoved)
}

// Owned is what is known to belong to the instance now. What is not known has no UID here, so that
// nothing of it is taken away.
func (in *Instance) Owned() (o Owned) {
	if pod, known := in.Pod.Get(); known {
		o.PodUID = pod.UID
	}
	if vol, known := in.Volume.Get(); known {
		o.VolumeUID = vol.UID
	}
	return o
}

// NodeName is the name of the node that its Pod is on; "" when none is known to be.
func (in *Instance) NodeName() string {
	if pod, known := in.Pod.Get(); known {
		return pod.Node
	}
	return ""
}

// IsHostOf reports whether host is the instance's DNS name (or the bare name).
func IsHostOf(host, instance string) bool {
	return host == instance || strings.HasPrefix(host, instance+".")
}

// InstanceIn is the instance of which host is the DNS name (or the bare name).
func InstanceIn(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}

// IsStopping reports whether it is being stopped, by the word of its Pod or of its manager; of
// what is not known, nothing is.
func (in *Instance) IsStopping() bool {
	return in.Pod.Is(func(p Pod) bool { return p.Terminating }) ||
		in.Report.Is(func(r Report) bool { return r.Terminating })
}

// IsReady reports whether its Pod is known to be ready, and to stay so.
func (in *Instance) IsReady() bool {
	return in.Pod.Is(func(p Pod) bool { return p.Exists && p.Ready && !p.Terminating })
}

// Hangs tells that its Pod or its volume claim is over and is not removed, and who holds it; "" when
// that is not known.
func (in *Instance) Hangs() string {
	pod, podKnown := in.Pod.Get()
	vol, volKnown := in.Volume.Get()
	switch {
	case !podKnown:
		return ""
	case pod.Terminating && pod.Terminated && in.HeldBy == "":
		return "its Pod has ended and is not removed yet"
	case pod.Terminating && pod.Terminated:
		return "its Pod has ended and is not removed: it waits for its metadata.finalizers " + in.HeldBy
	case volKnown && vol.Deleting && !pod.Exists && in.HeldBy != "":
		return "its PersistentVolumeClaim is being deleted and is not removed: it waits for its metadata.finalizers " +
			in.HeldBy
	case volKnown && vol.Deleting && !pod.Exists:
		return "its PersistentVolumeClaim is being deleted"
	}
	return ""
}

// Serving returns its report, and whether its mysqld answers and holds the cluster's data.
func (in *Instance) Serving() (Report, bool) {
	r, known := in.Report.Get()
	return r, known && r.State == Running && r.Data == DataPopulated && r.Server != nil
}

// IsEligible reports whether nothing but its position hinders the instance, whose mysqld answers, from being promoted.
func (r Report) IsEligible() bool {
	return !r.Terminating && (r.Server.Replication == nil || r.Server.Replication.SQLError == "")
}

// WhyUnheard is Unheard, and what Kubernetes says of its node, as it is put behind a sentence that says that its
// manager cannot be reached; "" when there is nothing to put.
func (in *Instance) WhyUnheard() string {
	if why := in.silence(); why != "" {
		return " (" + why + ")"
	}
	return ""
}

// NoAnswer says that its manager gives none, and why.
func (in *Instance) NoAnswer() string {
	return strings.TrimSuffix("no answer: "+in.silence(), ": ")
}

func (in *Instance) silence() string {
	if in == nil {
		return ""
	}
	why := []string{in.Unheard, in.lostNode()}
	return strings.Join(slices.DeleteFunc(why, func(text string) bool { return text == "" }), "; ")
}

// IsOnLostNode reports whether Kubernetes says that its node is gone, or not ready.
func (in *Instance) IsOnLostNode() bool { return in.lostNode() != "" }

// lostNode says what is wrong with its node; "" where nothing is known to be.
func (in *Instance) lostNode() string {
	node, known := in.Node.Get()
	name := "its node"
	if pod, isKnown := in.Pod.Get(); isKnown && pod.Node != "" {
		name += " " + pod.Node
	}
	switch {
	case !known:
		return ""
	case !node.Exists:
		return name + " is gone"
	case node.NotReady:
		return name + " is not ready"
	}
	return ""
}

// CannotRun is what hinders it, by Kubernetes' word; nil when nothing is known to.
func (in *Instance) CannotRun() *Problem {
	if vol, known := in.Volume.Get(); known && vol.Problem != nil {
		return vol.Problem
	}
	if pod, known := in.Pod.Get(); known {
		return pod.Waiting
	}
	return nil
}
