package group

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// keepDeadline holds a switchover to the bounds of the present spec.
func (d *decision) keepDeadline(op *core.Operation) { d.KeepDeadline(op, d.pauseEnds) }

// pauseEnds is until when the group may be asked once it was; zero when there is no bound. It
// outlasts the bound of transactions in progress, at which the group elects. From a primary
// that is being stopped nothing is won by giving up.
func (d *decision) pauseEnds(op *core.Operation) time.Time {
	if op.PausedAt.IsZero() || d.Cluster.SwitchoverPause <= 0 || d.IsStopping(op.From) {
		return time.Time{}
	}
	return op.PausedAt.Add(max(d.Cluster.SwitchoverPause, d.transactionsTake()+time.Second))
}

// lateness names the bound of the spec that a switchover has passed; "" when none.
func (d *decision) lateness(op *core.Operation) string {
	switch d.PassedBound(op, d.pauseEnds(op)) {
	case draft.BoundDelay:
		return "spec.maxSwitchoverDelay"
	case draft.BoundPause:
		return fmt.Sprintf("spec.maxSwitchoverPause (%s)", d.Cluster.SwitchoverPause)
	default:
		return ""
	}
}

// letCatchUp has the target come close to the primary, and reports whether it is: it is expected
// to take writes soon after the group has elected it. It has applied all that the old primary had
// a moment ago, so that it applies as fast as that writes, and what it still lacks was written
// since. From the election on nobody takes writes until the target has applied that: what it lags
// behind by is the pause. A primary that is being stopped leaves the group before long, and is not
// waited for.
func (d *decision) letCatchUp(op *core.Operation) bool {
	if d.IsStopping(op.From) {
		return true
	}
	source, has := d.position(op.From)
	target, answers := d.position(op.To)
	if !has || !answers {
		if says := d.hungPrimary(); says != "" { // its manager ends that, or the deadline of the switchover does
			d.Doing(fmt.Sprintf("%s cannot hand over to %s, because its commits hang: %s", op.From, op.To, says))
		}
		d.Doing(fmt.Sprintf("%s still takes writes until it and %s say what they hold", op.From, op.To))
		d.LookAtBoth(op)
		return false
	}
	c, most := d.Observation.Carried.CatchUp, d.ForCatchUp(op)
	isOurs := c.Target == op.To && c.Began.Equal(op.StartedAt)
	if !isOurs || target.Contains(c.Source) && d.Now.Sub(c.At) > most {
		at := d.Instance(op.From).Report.NotBefore()
		c = core.CatchUp{Target: op.To, Began: op.StartedAt, Source: source, At: at}
	}
	d.Plan.Carried.CatchUp = c
	if target.Contains(c.Source) && d.Now.Sub(c.At) <= most {
		return true
	}
	d.Doing(fmt.Sprintf("%s still takes writes until %s has applied what %s had %s ago; it lacks %s",
		op.From, op.To, op.From, most, core.Plural(source.Subtract(target).Count(), "transaction")))
	d.LookAtBoth(op)
	return false
}

// transactionsTake is how long the transactions that are in progress may hold up the group;
// zero when there is no bound. Meanwhile the old primary refuses clients' statements, and
// closes the sessions of those that are left in the end. MySQL takes whole seconds, and an hour
// of them at most.
func (d *decision) transactionsTake() time.Duration {
	if d.Cluster.SwitchoverPause <= 0 {
		return 0
	}
	take := (d.Cluster.SwitchoverPause * 4 / 10).Truncate(time.Second)
	return min(max(take, time.Second), time.Hour)
}

// position is what an instance has executed, by its own word.
func (d *decision) position(name string) (gtid.Set, bool) {
	in := d.Instance(name)
	if in == nil {
		return gtid.Set{}, false
	}
	r, known := in.Report.Get()
	if !known || r.Server == nil {
		return gtid.Set{}, false
	}
	return r.Server.Executed, true
}
