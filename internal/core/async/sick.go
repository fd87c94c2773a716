package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// skipPatience is how long a replica may lack what others hold and it has skipped, before
// it counts as what it will never be sent.
const skipPatience = 10 * time.Second

// sickness tells what is wrong with the replication of an instance although its threads
// may run; "" when nothing is known to be.
func (d *decision) sickness(in *core.Instance, r core.Report) string {
	if text := replicationError(r); text != "" {
		return text
	}
	if r.Server == nil || r.Server.Replication == nil {
		return ""
	}
	if n := r.Server.Replication.DelaySeconds; n > 0 {
		return fmt.Sprintf(
			"it applies each transaction %d s late (SOURCE_DELAY), and could not take over in time; on %s: "+
				"STOP REPLICA SQL_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0; START REPLICA SQL_THREAD", n,
			in.Name)
	}
	if skipped := d.skipped(in, r); !skipped.IsEmpty() {
		return fmt.Sprintf("it lacks %s that the primary does not send (%s), because its gtid_executed was reset or "+
			"changed; to clone it again: kubectl cnmsql reinit %s %s",
			core.Plural(skipped.Count(), "transaction"), skipped.Abbreviate(4), d.Cluster.Name, in.Name)
	}
	return ""
}

// skipped is what others hold and a replica does not, although it has executed later ones
// of the same server: they are sent and applied in order, so that nobody sends them any
// more. It is empty until that has lasted.
func (d *decision) skipped(in *core.Instance, r core.Report) gtid.Set {
	lacks := r.Server.Executed.Holes()
	isReset := r.Server.Executed.IsEmpty() && receives(r) && r.Server.Replication.SQLRunning &&
		r.Server.Replication.LagSeconds == 0
	if lacks.IsEmpty() && !isReset {
		return gtid.Set{}
	}
	var executed gtid.Set
	others(d.Observation, in.Name, func(other *core.Instance) {
		if o, serves := serving(other); serves && !slices.Contains(d.Status.Diverged, other.Name) {
			executed = executed.Union(o.Server.Executed)
		}
	})
	if lacks = lacks.Intersect(executed); isReset {
		lacks = executed
	}
	if lacks.IsEmpty() {
		return lacks
	}
	until := d.sinceSkipped(in.Name).Add(skipPatience)
	if d.Now.Before(until) && !slices.Contains(d.Status.Broken, in.Name) {
		d.RecheckAt(until)
		return gtid.Set{}
	}
	return lacks
}

// sinceSkipped remembers since when a replica has lacked what it skipped.
func (d *decision) sinceSkipped(name string) time.Time {
	since, known := d.Observation.Carried.Skipped[name]
	if !known {
		since = d.Now
	}
	if d.Plan.Carried.Skipped == nil {
		d.Plan.Carried.Skipped = map[string]time.Time{}
	}
	d.Plan.Carried.Skipped[name] = since
	return since
}
