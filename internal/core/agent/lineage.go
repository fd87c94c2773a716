package agent

import "cnmsql.co/internal/core"

// lineage is what is to be remembered of the group that this member is online in. What was remembered stays
// while the Cluster's status tells nothing better: it is of before the last recovery that is known here, that
// recovery may not have come about, or the group went on without this instance.
func (f *Facts) lineage(v core.GroupView) core.Lineage {
	g, known := f.Cluster.Group, f.Member.Of
	now := core.LineageOf(g.Name, g.Recoveries)
	switch isLess := g.Excluded || g.Undecided || !v.HasQuorum() || f.isPast(); {
	case !isLess:
		return now
	case known.Group == g.Name:
		return known
	}
	return core.Lineage{Group: g.Name}
}

// isPast reports whether the Cluster's status is of before what is known here of it.
func (f *Facts) isPast() bool { return f.Cluster.Epoch < max(f.Member.ViewEpoch, f.Member.Of.Recovery) }
