package draft

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// successorTold is for how long it has to fail, more than once, until it is told that a manager
	// does not take its successor, and nothing waits for that any more. One that is busy is not told.
	successorTold = time.Minute
	// successorPause is the pause after it was sent, and doubles with each failure up to successorPauseMost:
	// what is sent is large.
	successorPause, successorPauseMost = 5 * time.Second, 5 * time.Minute
)

// ReplaceManagers has managers that are of another build replaced in place, where the
// user wishes it: one at a time, the primary's last, and none after one that failed. True
// while there is one to replace, and it may come about; call it only while all is well.
func (d *Draft) ReplaceManagers(primary string) bool {
	in, r := d.oldManager(primary)
	if in == nil {
		return false
	}
	if why := d.managerRefused(r); why != "" {
		d.tellNotReplaced(in, why+"; the old one runs on: ")
		return false
	}
	if s := in.Successor; s.Failed > 1 && !d.Now.Before(s.Since.Add(successorTold)) {
		again := !d.hasOutdated() // which brings the new manager
		if !s.Busy {
			d.tellNotReplaced(in, s.Why+
				"; the old one runs on, and the operator tries again from time to time: fix that, or ")
		} else if again {
			d.Doing("the manager of " + in.Name + " is replaced in place as soon as it can hand over: " + s.Why)
		}
		if again {
			d.sendSuccessor(in)
		}
		return false
	}
	d.sendSuccessor(in)
	d.Doing("replacing the manager of " + in.Name + " in place; its mysqld runs on")
	return true
}

// tellNotReplaced tells why, and what to do.
func (d *Draft) tellNotReplaced(in *core.Instance, why string) {
	d.Announce(true, core.RefusalManager, in.Name, "the manager of "+in.Name+" is not replaced in place: "+why+
		"delete its Pod to have it start with the new one, or set spec.inPlaceInstanceManagerUpdates to false to have "+
		"all restarted")
}

// sendSuccessor has the manager sent its successor, unless that was tried a moment ago.
func (d *Draft) sendSuccessor(in *core.Instance) {
	pod, known := in.Pod.Get()
	if !known || !pod.Exists {
		return
	}
	if again := in.Successor.Sent.Add(pauseAfter(in.Successor.Failed)); d.Now.Before(again) {
		d.RecheckAt(again)
	} else {
		d.Do(core.ReplaceManager{Instance: in.Name})
	}
	d.keepReplacing(pod)
}

func (d *Draft) keepReplacing(pod core.Pod) {
	if all := &d.Plan.Carried.Replacing; !slices.Contains(*all, pod.UID) {
		*all = append(*all, pod.UID)
	}
}

func pauseAfter(failed int) time.Duration {
	pause := successorPause
	for ; failed > 1 && pause < successorPauseMost; failed-- {
		pause *= 2
	}
	return min(pause, successorPauseMost)
}

// tellReplaced tells of each manager that was to be replaced in place that the new one has answered.
// Until then that is kept in mind. A Pod that was made again has the new one by that.
func (d *Draft) tellReplaced() {
	wanted := d.Cluster.Manager.Digest
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, known := in.Pod.Get()
		if wanted == "" || !known || !slices.Contains(d.Observation.Carried.Replacing, pod.UID) {
			continue
		}
		if in.Report.Is(func(r core.Report) bool { return r.Manager.Digest == wanted }) {
			d.Tell(core.ReasonManagerReplaced, "the manager of "+in.Name+" was replaced in place; its mysqld ran on")
		} else {
			d.keepReplacing(pod)
		}
	}
}

// hasOutdated reports whether a Pod was not made from the present spec.
func (d *Draft) hasOutdated() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		return in.Pod.Is(isOutdated)
	})
}

func isOutdated(pod core.Pod) bool { return pod.Exists && !pod.Current }

// oldManager is the next instance whose manager is of another build, with what that says. What is not told is
// not replaced: a manager that is older than the question does not know the order either.
func (d *Draft) oldManager(primary string) (last *core.Instance, said core.Report) {
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		switch {
		case !known || !d.isOldManager(in, r):
		case in.Name != primary:
			return in, r
		default:
			last, said = in, r
		}
	}
	return last, said
}

// isOldManager reports whether the manager of the instance, which says r, is of another build than is
// wanted. What the same image holds for another platform is of the same build.
func (d *Draft) isOldManager(in *core.Instance, r core.Report) bool {
	if wanted := d.Cluster.Manager.Digest; wanted == "" || r.Manager.Digest == "" || r.Manager.Digest == wanted {
		return false
	}
	return in.Pod.Is(func(pod core.Pod) bool { return pod.OldImage }) || d.isOfThisPlatform(r)
}

func (d *Draft) isOfThisPlatform(r core.Report) bool {
	return r.Manager.Platform == d.Cluster.Manager.Platform
}

func (d *Draft) managerRefused(r core.Report) string {
	switch refused := r.ManagerRefused; {
	case !d.isOfThisPlatform(r):
		return "it runs on " + r.Manager.Platform + ", and the operator on " + d.Cluster.Manager.Platform
	case refused != nil && refused.Digest == d.Cluster.Manager.Digest:
		return refused.Why
	}
	return ""
}
