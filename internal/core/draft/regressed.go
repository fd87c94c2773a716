package draft

import (
	"time"

	"cnmsql.co/internal/core"
)

// staleStatus is how long what an operator sees of its own Cluster may be behind what
// instances have seen of it.
const staleStatus = 5 * time.Second

// LastEpoch is the highest epoch that an instance saw the status have.
func (d *Draft) LastEpoch() (last int64) {
	for i := range d.Instances {
		for _, word := range []*core.Fact[core.Report]{&d.Instances[i].Report, &d.Instances[i].Latest} {
			if r, known := word.Get(); known {
				last = max(last, r.ViewEpoch)
			}
		}
	}
	return last
}

// AwaitStatus waits for the status of which instances have seen the epoch last, and reports whether it does:
// for a time, this operator's view of the status may only be behind theirs. After that, it was set back.
func (d *Draft) AwaitStatus(last int64) bool {
	d.Plan.Carried.Regressed = d.Observation.Carried.Regressed.Or(last, d.Now)
	until := d.Plan.Carried.Regressed.At.Add(staleStatus)
	if !d.Now.Before(until) {
		return false
	}
	d.RecheckAt(until)
	return true
}
