package draft

import (
	"cmp"
	"slices"

	"cnmsql.co/internal/core"
)

// CountReady counts who is ready and stays so.
func (d *Draft) CountReady() {
	d.Status.Ready = 0
	for i := range d.Instances {
		if d.Instances[i].IsReady() {
			d.Status.Ready++
		}
	}
}

// Answering returns what an instance says of itself, or why it does nothing for the cluster at
// the moment, whatever its role is: its mysqld does not serve, or not for long.
func Answering(in *core.Instance) (r core.Report, absence string) {
	r, known := in.Report.Get()
	switch {
	case !known:
		return r, cmp.Or(in.Hangs(), in.NoAnswer())
	case in.IsStopping():
		return r, "is being stopped"
	case r.State != core.Running || r.Server == nil:
		return r, cmp.Or(string(r.State), "no state")
	}
	return r, ""
}

// Unready returns why an instance takes no traffic, by Kubernetes' word; "" when its Pod is ready.
func Unready(in *core.Instance) string {
	switch {
	case !in.Pod.Known():
		return "nothing is known of its Pod"
	case in.Pod.IsNot(func(pod core.Pod) bool { return pod.Ready }):
		return "not ready"
	}
	return ""
}

// IsJoining reports whether an instance is on its way to its first data.
func (d *Draft) IsJoining() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		r, known := in.Report.Get()
		return known && r.Data != core.DataPopulated && r.State != core.Failed
	})
}

// IsHeldUp reports whether somebody is missing whom neither a rollout nor a change of the size brings back by itself:
// its node is lost, a human has fenced it, or it cannot copy data.
func (d *Draft) IsHeldUp() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		r, known := in.Report.Get()
		switch {
		case d.IsSurplus(&in):
			return false
		case !known:
			return in.IsOnLostNode()
		}
		return r.State == core.Fenced || failsToCopy(r)
	})
}

// Outstanding names what is still to be done where every instance is as it should be.
func (d *Draft) Outstanding() (names []string) {
	for i := range d.Instances {
		in := &d.Instances[i]
		switch {
		case in.Pod.Is(isOutdated):
			names = append(names, in.Name+" (to be restarted from the changed spec)")
		case in.Report.Is(func(r core.Report) bool { return d.isOldManager(in, r) }):
			names = append(names, in.Name+" (its manager is to be replaced)")
		}
	}
	switch {
	case len(names) > 0:
		return names
	case len(d.Instances) > d.Cluster.Wanted:
		return []string{"the instances to be removed"}
	}
	return []string{"the instances to be made"}
}

// IsOutdated reports whether a Pod was not made from the present spec, or a
// manager is to be replaced.
func (d *Draft) IsOutdated() bool {
	return d.hasOutdated() || slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		return in.Report.Is(func(r core.Report) bool { return d.isOldManager(&in, r) })
	})
}
