package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// exceedsPolicy tells which bound of the user's forbids the winner of an election,
// "" when none does. What the failed primary had is known from its last word.
func (d *decision) exceedsPolicy(e election) (core.Reason, string) {
	policy := d.Cluster.Policy
	if d.Status.Promotion.Instance == e.winner {
		return "", ""
	}
	if most := policy.MaxReplicationLag; most > 0 && e.lag > most.Seconds() {
		return core.RefusalLag, fmt.Sprintf("%s lags %.0f s, more than spec.failoverPolicy.maxReplicationLag (%s)",
			e.winner, e.lag, most)
	}
	if policy.MaxTransactionsBehind == nil {
		return "", ""
	}
	return d.exceedsTransactions(e, *policy.MaxTransactionsBehind)
}

// exceedsTransactions tells that the winner of an election lacks more transactions of the failed primary
// than the user accepts, or that nobody knows how many; "" when neither is so. What was acknowledged on
// replicas the winner holds in any case.
func (d *decision) exceedsTransactions(e election, most uint64) (core.Reason, string) {
	primary := d.Status.Promotion.Instance
	last, known := d.holder().LastExecuted.Get()
	if !known && !d.Cluster.Durability.Mode.IsOnReplicas() {
		return core.RefusalBehind, fmt.Sprintf("spec.failoverPolicy.maxTransactionsBehind is %[3]d, but it is not "+
			"known how many transactions of %[2]s %[1]s lacks: this operator has not heard from mysqld of %[2]s "+
			"since it started. Bring %[2]s back, or remove the bound", e.winner,
			primary, most)
	}
	if lacks := last.Subtract(e.holds).Count(); known && lacks > most {
		return core.RefusalBehind, fmt.Sprintf("%s lacks %d transactions that %s had, more than "+
			"spec.failoverPolicy.maxTransactionsBehind (%d)", e.winner, lacks, primary, most)
	}
	return "", ""
}

// tooSoon tells why no failover may begin yet, "" when it may, or has.
func (d *decision) tooSoon() string {
	least := d.Cluster.Policy.MinTimeBetweenFailover
	until := d.Status.LastFailover.Add(least)
	if least == 0 || d.Status.LastFailover.IsZero() || !d.Now.Before(until) ||
		d.Status.Operation != nil && d.Status.Operation.IsPastDelay() {
		return ""
	}
	return fmt.Sprintf("spec.failoverPolicy.minTimeBetweenFailovers is %s, and the last failover was at %s",
		least, d.Status.LastFailover.UTC().Format("15:04:05 MST"))
}

// rank of an instance among the preferred ones, the best first; those that are not
// named come last, all alike.
func rank(policy core.FailoverPolicy, name string) int {
	if i := slices.Index(policy.Preferred, name); i >= 0 {
		return i
	}
	return len(policy.Preferred)
}

// failBack hands over to an instance that the user prefers, once the primary has
// been stable for as long as the user said; in the middle of an upgrade, once all can follow it.
func (d *decision) failBack() {
	policy, p := d.Cluster.Policy, d.Status.Promotion
	if len(policy.Preferred) == 0 || d.Status.Operation != nil || p.WritableSince.IsZero() || !d.settled() {
		return
	}
	best := ""
	others(d.Observation, p.Instance, func(in *core.Instance) {
		isBetter := rank(policy, in.Name) < rank(policy, p.Instance) &&
			(best == "" || rank(policy, in.Name) < rank(policy, best))
		switch until := d.RestsUntil(d.Status.Promotion.Instance, in.Name); {
		case !isBetter || d.refusesTarget(in.Name) != nil || d.earlier(in) != "":
		case !until.IsZero():
			d.RecheckAt(until)
		case !d.IsSurplus(in):
			best = in.Name
		}
	})
	if best == "" {
		return
	}
	if until := latestOf(p.WritableSince, d.Status.TargetPrimaryAt).Add(policy.StabilityWindow); d.Now.Before(until) {
		d.RecheckAt(until)
		return
	}
	d.setTarget(best)
	d.begin(core.ReasonPreferred)
}

func latestOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
