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

// AwaitsRoute: the deletion of the primary's Pod has just changed the endpoints. Writes
// that were stopped now would not reach the target before the next change is let
// through: true, and said, until then. A start that lies ahead is of another operator's
// clock.
func (d *Draft) AwaitsRoute(op *core.Operation) bool {
	since := d.Now.Sub(op.StartedAt)
	pod, _ := d.Instance(op.From).Pod.Get()
	if !pod.Terminating || pod.Grace < leisure || since < 0 || since >= routeQuiet {
		return false
	}
	d.Say(op.From + " still takes writes until writes can be led to " + op.To + " at once")
	d.RecheckAt(op.StartedAt.Add(routeQuiet))
	return true
}

// HoldsLabels: -rw has just been led to a new primary, at that moment, and the labels have
// to wait.
func (d *Draft) HoldsLabels(routedAt time.Time) bool {
	since := d.Now.Sub(routedAt)
	if since < 0 || since >= labelPause {
		return false
	}
	d.RecheckAt(routedAt.Add(labelPause))
	return true
}
