package draft

import (
	"time"

	"cnmsql.co/internal/core"
)

const (
	// routeQuiet is how long kube-proxy is busy with the deletion of a Pod: it lets the
	// first change of endpoints through at once and those beside it a second later, and
	// holds back for another second what comes then. The Pod is served meanwhile, as long
	// as it is ready.
	routeQuiet = 2500 * time.Millisecond
	// leisure is how much time a Pod must be given to stop for that to be waited for.
	leisure = 10 * time.Second
	// labelPause is kept between a change of -rw and those of labels, which would
	// overtake it on their way to kube-proxy otherwise.
	labelPause = 250 * time.Millisecond
)

// IsRouteBusy reports whether the deletion of the primary's Pod has just changed the endpoints.
// Writes that were stopped now would not reach the target before the next change is let through. A
// start that lies ahead is of another operator's clock, and does not count.
func (d *Draft) IsRouteBusy(op *core.Operation) bool {
	since := d.Now.Sub(op.StartedAt)
	return since >= 0 && since < routeQuiet && d.Instance(op.From).Pod.Is(func(pod core.Pod) bool {
		return pod.Terminating && pod.Grace >= leisure
	})
}

// AwaitRoute waits until that is over.
func (d *Draft) AwaitRoute(op *core.Operation) {
	d.Doing(op.From + " still takes writes until the Service can switch to " + op.To + " without delay")
	d.RecheckAt(op.StartedAt.Add(routeQuiet))
}

// LabelsRestUntil is until when labels have to wait, for -rw was led to a new primary at that
// moment; zero when they need not.
func (d *Draft) LabelsRestUntil(routedAt time.Time) time.Time {
	if since := d.Now.Sub(routedAt); since < 0 || since >= labelPause {
		return time.Time{}
	}
	return routedAt.Add(labelPause)
}
