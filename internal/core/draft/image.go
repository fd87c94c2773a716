package draft

import (
	"fmt"

	"cnmsql.co/internal/core"
)

// An instance without data is made from the spec as all others. Only its own mysqld tells
// which version that is; if MySQL copies to it from none of those that have the data, it is
// made once more, from the image of the primary, and restarted from the spec's as all others when it has
// the data. In the middle of an upgrade there is nobody else to copy from, and nothing is upgraded while
// an instance has no data.

// IsUnsuited reports whether MySQL copies data to the instance, which has none by its last word,
// from none of the givers: the primary, which is the first, and the others that have the data. Where
// a version is not known, the servers decide.
func IsUnsuited(in *core.Instance, givers []*core.Instance) bool {
	said, known := in.Latest.Get()
	if !known || said.Data != core.DataScratch || len(givers) == 0 {
		return false
	}
	for _, giver := range givers {
		if !giver.Report.Is(func(r core.Report) bool { return !core.CanClone(r.Version, said.Version) }) {
			return false
		}
	}
	return true
}

// ImageFor is the image from which the Pod of an instance is to be made; "" for the spec's.
func (d *Draft) ImageFor(in *core.Instance, givers []*core.Instance) string {
	if !IsUnsuited(in, givers) {
		return ""
	}
	if pod, known := givers[0].Pod.Get(); known && !pod.Current {
		return pod.Image
	}
	return ""
}

// IsCorrected reports whether the Pod does not run, and another would be made now: from a
// changed spec, or with another manager. One whose mysqld runs does run, whatever is said of
// its other containers.
func (d *Draft) IsCorrected(in *core.Instance, pod core.Pod, givers []*core.Instance) bool {
	r, known := in.Report.Get()
	if known && r.State == core.Running {
		return false
	}
	fails := known && (r.State == core.Failed || r.State == core.Stopped && r.Reason == core.InstanceCrashLoop)
	return (!d.isAsWished(in, pod, givers) || pod.OldImage) && (pod.NeverStarted || pod.Waiting != nil || fails)
}

// isAsWished reports whether a Pod that is made now would be the same. One that differs by its
// image alone stays as it is, if its instance has no data: while nobody is known who has it, and
// where it was started from the primary's image: mysqld may have to make its scratch data again,
// which another version had made.
func (d *Draft) isAsWished(in *core.Instance, pod core.Pod, givers []*core.Instance) bool {
	if image := d.ImageFor(in, givers); image != "" {
		return pod.CurrentButImage && pod.Image == image
	}
	hasNone := in.Latest.Is(func(r core.Report) bool { return r.Data == core.DataScratch })
	if pod.Current || !pod.CurrentButImage || !hasNone {
		return pod.Current
	}
	return len(givers) == 0 || !pod.NeverStarted && pod.Waiting == nil &&
		givers[0].Pod.Is(func(giver core.Pod) bool { return giver.Image == pod.Image })
}

// Suit has an instance that IsUnsuited made from another image. Where no other image is known it is a
// human's to name one.
func (d *Draft) Suit(in *core.Instance, givers []*core.Instance) {
	pod, known := in.Pod.Get()
	giver, giverKnown := givers[0].Pod.Get()
	if !known || !giverKnown || !pod.Exists || pod.Terminating || !giver.Current && giver.Image == "" {
		d.Doing(versionsDiffer(in, givers[0]))
		return
	}
	image, giverName := d.ImageFor(in, givers), givers[0].Name
	switch differ := versionsDiffer(in, givers[0]); {
	case image == "" && pod.Current, image != "" && image == pod.Image:
		d.Block(core.RefusalCloneVersions, fmt.Sprintf("%s, and both Pods have the image %s. Set spec.imageName to "+
			"an image with the version of %s, by a tag that does not move", differ, pod.Image, giverName))
	default:
		d.Do(core.DeletePod{Instance: in.Name, UID: pod.UID, Reason: core.ReasonInstanceRestarted})
		from := "the image of the spec"
		if image != "" {
			from = image + ", the image of " + giverName + ", and restarted from the changed spec when it has its data"
		}
		d.Announce(false, core.ReasonInstanceRestarted, in.Name, differ+": its Pod is made from "+from)
	}
}

// versionsDiffer says that MySQL would not copy from one to the other.
func versionsDiffer(in, giver *core.Instance) string {
	return fmt.Sprintf("%s has no data and runs MySQL %s, but MySQL cannot clone to it from %s, which runs another "+
		"series (%s)", in.Name, version(in), giver.Name, version(giver))
}

func version(in *core.Instance) string {
	if r, known := in.Report.Get(); known {
		return r.Version
	}
	return ""
}
