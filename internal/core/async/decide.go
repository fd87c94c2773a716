package async

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// Decide says what to do about a cluster with the async topology.
func Decide(o core.Observation) core.Plan {
	countMembers(&o)
	d := newDecision(&o)
	if o.Cluster.Deleting {
		return d.Plan
	}
	if d.regressed() {
		return d.Plan
	}
	d.names()
	d.fence()
	d.keepEvidence()
	d.diagnosis = diagnose(&o)
	d.reached()
	d.judgeReplicas()
	d.admit()
	d.provision()
	d.reinit()
	d.operate()
	d.join()
	d.resume()
	d.acknowledge()
	d.tellTurnedAway()
	d.keepSize()
	d.keepLeased()
	d.route()
	d.TellForeign()
	d.publish()
	return d.Plan
}

// decision is a draft, and what this topology knows beside it.
type decision struct {
	draft.Draft

	diagnosis finding
	// hangs: commits wait for more acknowledgements than replicas can give.
	hangs bool
	// starving: and those who could give them wait for the primary's data.
	starving bool
}

func newDecision(o *core.Observation) *decision {
	d := &decision{Draft: draft.New(o)}
	d.includeHolder()
	return d
}

// includeHolder: an instance that holds the promotion and is not observed is one
// of which nothing is known.
func (d *decision) includeHolder() {
	p := d.Status.Promotion
	if p != nil && d.Instance(p.Instance) == nil {
		d.Instances = append(slices.Clone(d.Instances), core.Instance{Name: p.Instance})
	}
}

// names keeps every instance that was ever made in status, until it is removed:
// one whose Pod and volume are both gone is made again under its name. Before
// there is a primary, an instance that the status does not know is adopted only
// when it says that it has no data: the status may have been lost.
func (d *decision) names() {
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Exists() && !in.IsLeaving() && (d.Status.Promotion != nil || in.SaysEmpty()) {
			d.addName(in)
		}
	}
}

// addName takes an instance into the status, if it is not there.
func (d *decision) addName(in *core.Instance) {
	if slices.Contains(d.Status.InstanceNames, in.Name) {
		return
	}
	d.Status.InstanceNames = append(d.Status.InstanceNames, in.Name)
	d.Status.LatestOrdinal = max(d.Status.LatestOrdinal, in.Ordinal)
}

// again does something and looks again at once.
func (d *decision) again(e ...core.Effect) {
	d.Do(e...)
	d.Again = true
}

// holder is the instance that may be writable, by what is decided so far, or nil.
func (d *decision) holder() *core.Instance {
	if d.Status.Promotion == nil {
		return nil
	}
	return d.Instance(d.Status.Promotion.Instance)
}
