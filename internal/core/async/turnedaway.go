package async

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// refusedPatience is how long a primary may turn replicas away before that is told: a
// password that has just changed is followed within seconds.
const refusedPatience = 5 * time.Second

// isTurnedAway reports whether the replica reaches its source, which does not let it in. Another
// primary is asked by the same account, and is no remedy. Certificates are each instance's own, so
// that they may be the primary's fault alone: they do not count here.
func isTurnedAway(c *core.Replication) bool {
	return !c.IORunning && (c.Refused == core.RefusedLogin || c.Refused == core.RefusedTooMany)
}

// tellTurnedAway names the replicas that the primary has refused for a while, and why.
func (d *decision) tellTurnedAway() {
	if !d.takesWrites() {
		return
	}
	holder := d.holder().Name
	why, names := "", map[core.Refused][]string{}
	others(d.Observation, holder, func(in *core.Instance) {
		if r, known := in.Report.Get(); known && d.isTurnedAwayFor(in, holder, refusedPatience) {
			c := r.Server.Replication
			names[c.Refused] = append(names[c.Refused], in.Name)
			why = c.IOError
		}
	})
	for _, kind := range []core.Refused{core.RefusedLogin, core.RefusedTooMany} {
		if len(names[kind]) > 0 {
			d.Announce(true, core.RefusalLogin, strings.Join(names[kind], ","),
				fmt.Sprintf("%s refuses to send to %s: %s; %s", holder, strings.Join(names[kind], ", "), why,
					remedy(kind, holder)))
		}
	}
}

func remedy(kind core.Refused, holder string) string {
	if kind == core.RefusedTooMany {
		return "close connections on " + holder +
			", or lift the limits of the replication account. The operator promotes nobody for this: the next " +
			"primary would refuse as well"
	}
	return "the manager of " + holder +
		" restores the replication account within half a minute, and its log says so if it cannot. The operator " +
		"promotes nobody for this: the next primary would refuse as well"
}

// isTurnedAwayFor reports whether the replica has said each time that it was heard, for that long,
// that it is turned away.
func (d *decision) isTurnedAwayFor(in *core.Instance, holder string, patience time.Duration) bool {
	for _, f := range heard(in) {
		r, known := f.Get()
		if !known || r.Server == nil || !follows(r, holder) || !isTurnedAway(r.Server.Replication) {
			return false
		}
		if in.Report.Received().Sub(f.Received()) >= patience {
			return true
		}
	}
	return false
}

// Pauses before a primary is replaced as isolated that was itself promoted in place of an
// isolated one, and was never reached by its replicas.
const (
	dampedFirst = 30 * time.Second
	dampedMost  = 10 * time.Minute
)

// patience is how long the replicas of a primary may take to reach it. What hinders them
// all alike hinders them with the next one, too: it is tried ever less often.
func (d *decision) patience() time.Duration {
	patience := isolationPatience
	if n := d.Status.Promotion.Isolations; n > 0 {
		patience = min(dampedFirst<<min(n-1, 10), dampedMost)
	}
	return max(d.Cluster.FailoverDelay, patience)
}

// reached forgets the isolations that were counted once so many replicas receive from the present
// primary that commits go on. That it was promoted has helped.
func (d *decision) reached() {
	p := d.Status.Promotion
	if p == nil || p.Isolations == 0 {
		return
	}
	if s := viewPrimary(d.Observation); isWritable(s) && receivers(d.Observation) >= max(p.RequiredAcks, 1) {
		p.Isolations = 0
	}
}

// isolations of the next promotion.
func (d *decision) isolations() int {
	op := d.Status.Operation
	if op == nil || op.Kind != core.OperationFailover || op.Reason != core.Reason(core.PrimaryIsolated) ||
		d.Status.Promotion == nil {
		return 0
	}
	return d.Status.Promotion.Isolations + 1
}

// tellDamped tells that the primary would have been replaced by now if the last time had helped.
func (d *decision) tellDamped(until time.Time) {
	p := d.Status.Promotion
	if p.Isolations == 0 {
		return
	}
	d.Announce(true, core.RefusalDamped, p.Instance, fmt.Sprintf("replicas cannot reach the primary %s "+
		"either. It was promoted because they could not reach %s, so the cause is not the primary: check what the "+
		"replicas have in common (network, DNS, certificates). What each says: kubectl cnmsql status %s. If this "+
		"lasts, the operator promotes another at %s", p.Instance, p.From, d.Cluster.Name, clock(until)))
}
