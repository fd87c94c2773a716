package sim

import "time"

// hasBounds reports whether the user bounds failovers by spec.failoverPolicy. No such run meets a
// standing fault, from which a bound may keep the cluster.
func hasBounds(seed uint64) bool { return seed%16 == 13 }

// bound sets one bound. It throws no dice, so that what else happens in a run does not depend on it.
func (s *scenario) bound(seed uint64) {
	switch n := seed / 16; n % 3 {
	case 0:
		most := n / 3 % 16
		s.policy.MaxTransactionsBehind = &most
	case 1:
		s.policy.MaxReplicationLag = 2 * time.Second
	default:
		s.policy.MinTimeBetweenFailover = 5 * time.Minute
	}
}
