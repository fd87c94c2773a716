package agent

import "cnmsql.co/internal/core"

// hasGoneOn is GoneOn, isExcluded Excluded, isUndecided Undecided and recoveries Recoveries; all are
// false or nothing where there is no group.
func (g *Membership) hasGoneOn() bool   { return g != nil && g.GoneOn }
func (g *Membership) isExcluded() bool  { return g != nil && g.Excluded }
func (g *Membership) isUndecided() bool { return g != nil && g.Undecided }
func (g *Membership) recoveries() (all []core.GroupRecovery) {
	if g != nil {
		all = g.Recoveries
	}
	return all
}
