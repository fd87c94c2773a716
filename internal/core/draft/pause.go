package draft

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

const (
	// CatchUpPace is how often the positions of a switchover are held against each other.
	CatchUpPace = 200 * time.Millisecond
	// catchUpPause is how long writes may have to wait where the spec sets no bound.
	catchUpPause = 30 * time.Second
	// returnPatience is how long nobody hands over by itself after a target did not take over
	// in time. It doubles each time that comes again, up to returnPatienceMost.
	returnPatience     = time.Minute
	returnPatienceMost = time.Hour
	// givenUpTold is how long it is told that a switchover was given up.
	givenUpTold = time.Hour
)

// Bound is one of the two bounds that the spec sets to a switchover.
type Bound int

const (
	// BoundNone says that time is not up.
	BoundNone Bound = iota
	// BoundDelay is spec.maxSwitchoverDelay, of all of it.
	BoundDelay
	// BoundPause is spec.maxSwitchoverPause, of the time without writes.
	BoundPause
)

// KeepDeadline holds a switchover to the present spec, from when it began: a bound that is
// lowered meanwhile counts at once. pauseEnds tells when the time without writes is over; zero
// where there is no bound.
func (d *Draft) KeepDeadline(op *core.Operation, pauseEnds func(*core.Operation) time.Time) {
	op.Deadline = time.Time{}
	if op.Step == core.StepReturn { // the way back has no bound
		return
	}
	if limit := d.Cluster.SwitchoverLimit; limit > 0 {
		op.Deadline = op.StartedAt.Add(limit)
	}
	for _, until := range []time.Time{op.Deadline, pauseEnds(op)} {
		if d.Now.Before(until) {
			d.RecheckAt(until)
		}
	}
}

// PassedBound returns the bound that a switchover has passed.
func (d *Draft) PassedBound(op *core.Operation, pauseEnds time.Time) Bound {
	isPast := func(t time.Time) bool { return !t.IsZero() && !d.Now.Before(t) }
	switch {
	case isPast(op.Deadline):
		return BoundDelay
	case isPast(pauseEnds):
		return BoundPause
	default:
		return BoundNone
	}
}

// ForCatchUp is the part of the time without writes in which the target may apply what it
// lacks; the rest goes to the change itself. A primary that is being stopped goes in any case.
func (d *Draft) ForCatchUp(op *core.Operation) time.Duration {
	if d.Cluster.SwitchoverPause <= 0 || d.IsStopping(op.From) {
		return catchUpPause
	}
	return d.Cluster.SwitchoverPause * 6 / 10
}

// LookAtBoth asks both for what they hold, and comes back in a moment.
func (d *Draft) LookAtBoth(op *core.Operation) {
	d.Do(core.Refresh{Instance: op.From}, core.Refresh{Instance: op.To})
	d.RecheckAt(d.Now.Add(CatchUpPace))
}

// NoteReturn notes that a switchover stopped writes and was given up, for a reason. One that comes
// soon after the rest that followed the last one counts with it.
func (d *Draft) NoteReturn(target, why string) {
	now := &core.Return{Target: target, Why: why, At: d.Now, Times: 1}
	if was := d.Status.Return; was != nil && d.Now.Before(was.At.Add(2*patience(was))) {
		now.Times = max(was.Times, 1) + 1
	}
	d.Status.Return = now
}

// GiveUpLate tells that a switchover was given up because its time was over, before it stopped
// writes: once as an event, and for a while as a notice.
func (d *Draft) GiveUpLate(target, sentence string) {
	d.Warn(core.RefusalDeadline, sentence)
	d.tellGivenUp(core.Notice{Reason: core.ReasonGivenUp, Subject: target, Message: sentence})
}

// TellGivenUp goes on telling of a switchover that was given up, until the next one to the same target
// begins, or somebody else is primary, or givenUpTold has passed. So long another target is chosen first.
func (d *Draft) TellGivenUp() {
	for _, n := range d.Cluster.Status.Notices {
		until := n.Since.Add(givenUpTold)
		op := d.Status.Operation
		isOver := op != nil && op.To == n.Subject || d.Status.CurrentPrimaryAt.After(n.Since) || !d.Now.Before(until)
		if n.Reason == core.ReasonGivenUp && !isOver && !slices.ContainsFunc(d.notices, n.Is) {
			d.RecheckAt(until)
			d.tellGivenUp(n)
		}
	}
}

func (d *Draft) tellGivenUp(n core.Notice) {
	d.remarks = append(d.remarks, n.Message)
	d.note(n)
}

// patience is how long nobody hands over by itself after a return.
func patience(r *core.Return) time.Duration {
	rest := returnPatience
	for n := 1; n < r.Times && rest < returnPatienceMost; n++ {
		rest *= 2
	}
	return min(rest, returnPatienceMost)
}

// RestsUntil is until when the primary does not hand over by itself to the target, for a switchover was
// given up after writes had been stopped for it; zero when there is no such time, or the primary is being
// stopped. After the first one only its target rests: another may well take over. What has not helped
// twice helps nobody.
func (d *Draft) RestsUntil(primary, target string) time.Time {
	r := d.Status.Return
	if r == nil || r.Times <= 1 && r.Target != target || d.IsStopping(primary) {
		return time.Time{}
	}
	if until := r.At.Add(patience(r)); d.Now.Before(until) {
		return until
	}
	return time.Time{}
}
