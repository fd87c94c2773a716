package group

import (
	"slices"

	"cnmsql.co/internal/core"
)

// isAdopting reports whether the Cluster goes on with the volumes of a deleted one, and nobody was chosen yet who
// makes the group from one of them.
func (d *decision) isAdopting() bool {
	return d.Status.AdoptedFrom != "" && !d.g.Bootstrapped && d.g.Bootstrapper == ""
}

// chooseAdopted has one of those make the group whose volumes were kept. It is a new group, of another name: what
// may be left of the former one neither finds this group nor gives the same GTIDs as it.
func (d *decision) chooseAdopted() {
	lead, accepted, others := d.ChooseAdopted(func(r core.Report) bool { return r.MayLack })
	if lead == nil {
		return
	}
	if accepted {
		d.Warn(core.ReasonOverride, lead.Name+" makes the group because a human chose it; transactions that it lacks "+
			"stay on the volumes of the others")
	}
	d.Status.Diverged = slices.Concat(d.Status.Diverged, others)
	d.beginGroup(lead.Name, "from the data that it holds")
}
