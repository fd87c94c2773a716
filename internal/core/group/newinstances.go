package group

import (
	"slices"

	"cnmsql.co/internal/core"
)

// An instance that is being made counts in no majority. Its volume claim may be bound long before its image
// is pulled, or its Pod runs at all, and until its manager answers nobody knows of it. A member it
// becomes only when the operator has it given data. So the operator lists whom it makes, and takes off
// the list whom it is about to have given data, in a write of the status before the order.

// noteNew lists those who are made in this decision; before are the names that there were. Who is to
// make the group makes data without an order, and is not new.
func (d *decision) noteNew(before []string) {
	d.g.New = slices.Clone(d.g.New)
	for _, name := range d.Status.InstanceNames {
		isMade := !slices.Contains(before, name) && d.Instance(name) == nil
		if isMade && (d.g.Bootstrapped || name != d.g.Bootstrapper) {
			d.g.New = append(d.g.New, name)
		}
	}
}

// forgetNew takes those off the list of whom nothing is left, who say that they have data, and who is
// to make the group.
func (d *decision) forgetNew() {
	d.g.New = slices.DeleteFunc(slices.Clone(d.g.New), func(name string) bool {
		in := d.Instance(name)
		return in == nil || !d.g.Bootstrapped && name == d.g.Bootstrapper ||
			in.Report.Is(func(r core.Report) bool { return r.Data == core.DataPopulated })
	})
}

// everMembers is how many instances may be members of the group, or have been.
func (d *decision) everMembers() int {
	return len(d.named(func(in *core.Instance) bool { return !d.g.IsNew(in.Name) }))
}

// isNew reports whether the instance is on the list, and nothing says otherwise. The list may be of the past: of
// one that is not heard, it counts only while no container of it has run since it was made.
func (d *decision) isNew(in *core.Instance) bool {
	return d.g.IsNew(in.Name) && (in.Report.Known() || in.Pod.Is(isUnstarted))
}

func isUnstarted(pod core.Pod) bool { return !pod.Exists || pod.NeverStarted }

// holdsNothing reports whether it is known that the instance holds nothing of the group: it says so, it
// was given nothing since it was made, or nothing ever ran on its volume.
func (d *decision) holdsNothing(in *core.Instance) bool {
	return in.SaysEmpty() || d.isNew(in) || !in.Report.Known() && neverRan(in)
}

func neverRan(in *core.Instance) bool {
	return in.Pod.Is(isUnstarted) && in.Volume.Is(func(vol core.Volume) bool { return !vol.Bound })
}
