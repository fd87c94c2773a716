package agent

import (
	"slices"

	"cnmsql.co/internal/core"
)

// TakeStatus takes from a Cluster's status what the instance me goes by. What the spec says has to be in c before.
func (c *Cluster) TakeStatus(s *core.Status, me string) {
	c.Established, c.Epoch, c.CurrentPrimary = !s.EstablishedAt.IsZero(), s.Epoch, s.CurrentPrimary
	c.Diverged, c.Fenced, c.Members = s.Diverged, s.Fenced, s.Members
	c.Names, c.Instances = s.InstanceNames, max(c.Instances, len(s.InstanceNames))
	if c.Promotion = s.Promotion; c.Promotion.FollowsServer() {
		c.Durability = core.DurabilityAsync // nobody here acknowledges what another server commits
	}
	if op := s.Operation; op != nil {
		c.takeOperation(op)
	}
	if c.Topology.RunsGroup() {
		c.Group = membershipOf(s, me)
	}
}

// takeOperation takes from an operation what its instances go by.
func (c *Cluster) takeOperation(op *core.Operation) {
	c.SwitchoverFrom, c.FailoverFrom = op.Leaving()
	if op.IsDelayed() {
		c.DelayedFrom = op.From
	}
	if op.Kind == core.OperationGiveData {
		c.GivesData = op.From
	}
}

// membershipOf is what a member needs to know of its group. Nobody counts on one that is fenced, or leaves.
func membershipOf(s *core.Status, me string) *Membership {
	g := s.Group
	if g == nil {
		return &Membership{}
	}
	out := &Membership{Name: g.Name, Bootstrapper: g.Bootstrapper, Bootstrapped: g.Bootstrapped,
		Recoveries: g.Recoveries, Undecided: g.IsUndecided(), HasQuorum: g.HasQuorum, ViewID: g.ViewID}
	for _, m := range g.Members {
		switch m.State {
		case core.MemberOnline:
			if !m.Leaving && !slices.Contains(s.Fenced, m.Instance) {
				out.Online = append(out.Online, m.Instance)
			}
		case core.MemberOffline, core.MemberError:
			out.Outside = append(out.Outside, m.Instance)
		case core.MemberUnknown:
			out.GoneOn = out.GoneOn || g.HasQuorum && m.Instance == me
		}
		if m.Address != "" && !g.Excludes(m.Instance) {
			out.Addresses = append(out.Addresses, m.Address)
		}
	}
	for _, l := range g.LeftOut {
		switch {
		case l.Admitted:
		case l.Instance == me:
			out.Excluded, out.Held = true, l.Held
		default:
			out.ExcludedOthers = append(out.ExcludedOthers, l.Instance)
		}
	}
	return out
}
