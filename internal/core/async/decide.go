package async

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// Decide says what to do about a cluster with the async topology. Each pass reads what is
// observed and what the passes before it put into the plan, so their order counts:
//
//   - countMembers and regressed come first. Every majority is one of the members, and a
//     status of the past decides nothing.
//   - names and fence put into the status what exists and what a human asks. keepEvidence
//     keeps what is known of the present promotion before operate can grant another.
//   - diagnose comes before judgeReplicas and admit: only a primary that can be trusted says
//     who has diverged and who has caught up. Both come before operate, which elects nobody
//     who has diverged and counts the members.
//   - provision goes by the operation that was under way before this decision: while one is,
//     it removes and restarts nothing that works.
//   - operate decides who may be writable. grant changes the promotion, the epoch and the
//     diagnosis, and all passes below go by those.
//   - resume takes a later epoch only if operate began nothing. It comes before acknowledge,
//     which gives no order in an epoch in which the primary is not writable yet.
//   - keepSize and keepLeased follow operate and resume: they adjust what the promotion says,
//     and must see the one that is written.
//   - mendLease sets back a record that hinders the present promotion, and nothing that was just
//     granted.
//   - route leads writes and labels by the promotion and the diagnosis that operate left.
//   - publish is last: it puts into words what the others have left.
func Decide(o core.Observation) core.Plan { return decide(&o).Plan }

func decide(o *core.Observation) *decision {
	countMembers(o)
	d := newDecision(o)
	if o.Cluster.Deleting || d.regressed() {
		return d
	}
	d.names()
	d.fence()
	d.keepEvidence()
	d.diagnosis = diagnose(o)
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
	d.tellFull()
	d.tellNotFollowing()
	d.keepSize()
	d.keepLeased()
	d.mendLease()
	d.route()
	d.TellForeign()
	d.tellStrangers()
	d.TellNearlyFull()
	d.TellParameters()
	d.TellTaintLeft()
	d.TellTokenRefused()
	d.TellGivenUp()
	d.GrowVolumes()
	d.PruneServices()
	d.publish()
	return d
}

// decision is a draft, and what this topology knows beside it.
type decision struct {
	draft.Draft

	diagnosis finding
	// asked is what the user asked for of commits. Cluster.Durability is what they do.
	asked core.Durability
	// starving tells whether those who could acknowledge commits wait for the primary's data.
	starving bool
	// took are the rows of failoverTable that were taken.
	took []*failoverRow
}

func newDecision(o *core.Observation) *decision {
	d := &decision{Draft: draft.New(o)}
	d.includeHolder()
	d.leaveDurability()
	return d
}

// includeHolder adds the granted primary to the instances when it is not observed, as one of
// which nothing is known.
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
		if in.Exists() && !in.IsLeaving() && !d.HasKeptVolume(in.Name) &&
			(d.Status.Promotion != nil || in.SaysEmpty()) {
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
