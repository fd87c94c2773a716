package async

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// countMembers sees to it that the status tells who is a member. One that was written
// before there were members has none: then all instances that it names may have
// acknowledged, or vouched.
func countMembers(o *core.Observation) {
	s := &o.Cluster.Status
	if s.Promotion == nil {
		return
	}
	names := slices.Clone(s.Members)
	if len(names) == 0 {
		names = slices.Clone(s.InstanceNames)
		for i := range o.Instances {
			if in := &o.Instances[i]; in.Exists() && !in.IsLeaving() {
				names = append(names, in.Name)
			}
		}
	}
	names = append(names, s.Promotion.Instance)
	slices.Sort(names)
	s.Members = slices.Compact(names)
}

// otherMembers calls each with every instance that may acknowledge or vouch, but the
// named one and those of which nothing is known.
func otherMembers(o *core.Observation, name string, each func(*core.Instance)) {
	others(o, name, func(in *core.Instance) {
		if slices.Contains(o.Cluster.Status.Members, in.Name) {
			each(in)
		}
	})
}

func (d *decision) isMember(name string) bool { return slices.Contains(d.Status.Members, name) }

// members is the number of those who hold the cluster's data, or may.
func (d *decision) members() int { return max(len(d.Status.Members), 1) }

// admit makes members of the instances that have received what the primary has by now:
// from here on they are counted, and, when they have read that they are, they
// acknowledge and vouch. One that has much to receive yet would have every commit wait.
// A primary that is closed to give its data opens when they do.
func (d *decision) admit() {
	holder := d.holder()
	if d.diagnosis.name != core.PrimaryHealthy && d.diagnosis.name != core.PrimaryClosed {
		return
	}
	source, serves := serving(holder)
	others(d.Observation, holder.Name, func(in *core.Instance) {
		r, ok := serving(in)
		if d.isMember(in.Name) || !ok || !serves || !streams(r, holder.Name) || r.Terminating ||
			in.IsLeaving() || d.IsSurplus(in) ||
			slices.Contains(d.Status.Diverged, in.Name) || !d.isAbreast(in, r.Server.Holds(), holder, source) {
			return
		}
		d.addMember(in.Name)
		d.Again = true
	})
}

func (d *decision) addMember(name string) {
	if !d.isMember(name) {
		d.Status.Members = append(d.Status.Members, name)
		slices.Sort(d.Status.Members)
	}
}

// dropUnused takes away at once, whatever becomes of the primary, what is too much and
// never held anything: nobody needs it for a proof or an election.
func (d *decision) dropUnused() {
	if d.Status.Promotion == nil {
		return
	}
	for i := len(d.Instances) - 1; i >= max(d.Cluster.Wanted, 1); i-- {
		in := &d.Instances[i]
		switch {
		case d.isMember(in.Name) || !holdsNothing(in), slices.Contains(d.Status.Diverged, in.Name) && !in.IsGone():
		case in.IsGone():
			d.Status.InstanceNames = draft.Without(d.Status.InstanceNames, in.Name)
		default:
			d.RemoveInstance(in)
		}
	}
}

// holdsNothing reports whether the instance has no data: the instance says so itself, or nothing of
// it is left, or no process of it ever ran on its volume.
func holdsNothing(in *core.Instance) bool {
	vol, known := in.Volume.Get()
	return in.SaysEmpty() || in.IsGone() || known && !vol.Bound && !in.Report.Known() && isUnstarted(in)
}
