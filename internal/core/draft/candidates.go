package draft

import (
	"cmp"
	"time"

	"cnmsql.co/internal/core"
)

// Candidate is an instance that could take over, and its report.
type Candidate struct {
	In     *core.Instance
	Report core.Report
}

// ByFitness compares two instances that could take over from a primary that has to go. Who was not given
// up lately for not coming close, who stays and is not about to be drained, whom all others can follow, who
// hears the primary, is not about to be restarted, takes traffic and lags least goes first. A node of which
// nothing is known does not count as drained, nor such a Pod as one that is current and ready.
func (d *Draft) ByFitness(a, b Candidate) int {
	goes := func(in *core.Instance) int {
		return 4*btoi(LosesVolume(in)) + 2*btoi(d.IsSurplus(in)) +
			btoi(in.Node.Is(func(n core.Node) bool { return n.Draining }))
	}
	penalty := func(c Candidate) int {
		r := c.Report.Server.Replication
		return 4*btoi(r != nil && !r.Hears()) +
			2*btoi(!c.In.Pod.Is(func(pod core.Pod) bool { return pod.Current })) +
			btoi(!c.In.Pod.Is(func(pod core.Pod) bool { return pod.Ready }))
	}
	lagA, _ := a.Report.Server.Lag()
	lagB, _ := b.Report.Server.Lag()
	return cmp.Or(d.gaveUp(a.In.Name).Compare(d.gaveUp(b.In.Name)),
		cmp.Compare(goes(a.In), goes(b.In)), core.CompareSeries(a.Report.Version, b.Report.Version),
		cmp.Compare(penalty(a), penalty(b)), cmp.Compare(lagA, lagB))
}

// WhyCalledOff tells why the primary need not hand over any more: what a human wanted is taken back. It is "" while
// it need, and where that is not known.
func (d *Draft) WhyCalledOff(op *core.Operation) string {
	from := d.Instance(op.From)
	if from == nil {
		return ""
	}
	pod, known := from.Pod.Get()
	switch {
	case op.Reason == core.ReasonScaleDown && !d.IsSurplus(from):
		return "spec.instances was raised, and " + op.From + " stays"
	case !known || !pod.Exists:
		return ""
	case op.Reason == core.ReasonRollout && pod.Current:
		return "the Pod of " + op.From + " is as the spec has it now"
	case op.Reason == core.ReasonDemoteRequested && !pod.DemoteRequested:
		return "the annotation cnmsql.cnmsql.co/demote of " + op.From + " was removed"
	}
	return ""
}

// gaveUp is when a switchover to the instance was given up, as the status still tells: it did not come close
// in time, and another may. It is zero for all others, so that all have their turn.
func (d *Draft) gaveUp(name string) time.Time {
	for _, n := range d.Cluster.Status.Notices {
		if n.Reason == core.ReasonGivenUp && n.Subject == name {
			return n.Since
		}
	}
	return time.Time{}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
