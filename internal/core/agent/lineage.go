package agent

import "cnmsql.co/internal/core"

// lineage is what is to be remembered of the group that this member is online in. What was remembered stays
// while the Cluster's status tells nothing better: it is of before the last recovery that is known here, that
// recovery may not have come about, or the group went on without this instance. Where this member itself saw its
// group go on without a majority, and the status tells of no later recovery, what was remembered is doubted.
func (f *Facts) lineage(v core.GroupView) core.Lineage {
	g, known := f.Cluster.Group, f.Member.Of
	now := core.LineageOf(g.Name, g.Recoveries)
	isLess := g.Excluded || g.Undecided || !v.HasQuorum() || f.isPast()
	doubts := (known.Doubted || f.Member.WentOn) && (isLess || now.Recovery <= known.Recovery)
	switch isSame := known.Group == g.Name; {
	case !isLess && !(isSame && doubts):
		return now
	case isSame:
		known.Doubted = doubts
		return known
	}
	return core.Lineage{Group: g.Name}
}

// isPast reports whether the Cluster's status is of before what is known here of it.
func (f *Facts) isPast() bool { return f.Cluster.Epoch < max(f.Member.ViewEpoch, f.Member.Of.Recovery) }
