package draft

import "cnmsql.co/internal/core"

// ReplaceManagers has managers that are of another build replaced in place, where the
// user wishes it: one at a time, the primary's last, and none after one that failed. True
// while there is one to replace; call it only while all is well.
func (d *Draft) ReplaceManagers(primary string) bool {
	in := d.oldManager(primary)
	if in == nil {
		return false
	}
	r, _ := in.Report.Get()
	if why := d.managerRefused(r); why != "" {
		d.Announce(true, core.RefusalManager, in.Name, "the manager of "+in.Name+" is not replaced in place: "+why+
			"; it goes on as it is: delete its Pod to have it start with the new one, or set spec.inPlaceInstanceManagerUpdates to false to have all restarted")
		return false
	}
	d.Do(core.ReplaceManager{Instance: in.Name})
	d.Announce(false, core.ReasonManagerReplaced, in.Name, "replacing the manager of "+in.Name+
		" in place; its mysqld runs on")
	return true
}

// oldManager is the next instance whose manager is of another build. What is not told is
// not replaced: a manager that is older than the question does not know the order either.
func (d *Draft) oldManager(primary string) *core.Instance {
	var last *core.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		switch {
		case !d.hasOldManager(in):
		case in.Name != primary:
			return in
		default:
			last = in
		}
	}
	return last
}

// hasOldManager: what the same image holds for another platform is of the same build.
func (d *Draft) hasOldManager(in *core.Instance) bool {
	r, known := in.Report.Get()
	if wanted := d.Cluster.Manager.Digest; !known || wanted == "" || r.Manager.Digest == "" ||
		r.Manager.Digest == wanted {
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
