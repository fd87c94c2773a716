package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

const (
	// A switchover waits catchUpShare times as long as writes would have to wait, before
	// it stops them: under a load that the target can just follow it never comes closer.
	catchUpShare = 10
	// rateSample is how long it is looked how fast the target applies.
	rateSample = time.Second
	// stallLimit is how long a promoted target may get nothing done.
	stallLimit = 5 * time.Second
	// progressPace is how often a promoted target is asked how it gets on.
	progressPace = 500 * time.Millisecond
)

// keepDeadline holds a switchover to the bounds of the present spec.
func (d *decision) keepDeadline(op *core.Operation) { d.KeepDeadline(op, d.pauseEnds) }

// pauseEnds is until when a switchover may stop writes; zero when there is no bound. Where
// the old primary cannot take them again, nothing is won by giving up.
func (d *decision) pauseEnds(op *core.Operation) time.Time {
	if op.PausedAt.IsZero() || d.Cluster.SwitchoverPause <= 0 || !d.canReturn(op) {
		return time.Time{}
	}
	return op.PausedAt.Add(d.Cluster.SwitchoverPause)
}

// canReturn reports whether the old primary answers, stays, and has all that the target was to get.
func (d *decision) canReturn(op *core.Operation) bool {
	if d.IsStopping(op.From) || slices.Contains(d.Status.Diverged, op.From) {
		return false
	}
	r, serves := serving(d.Instance(op.From))
	return serves && r.IsEligible() && r.Server.Holds().Contains(d.Status.Promotion.RequiredGTID)
}

// lateness tells which bound of the spec a switchover has passed; "" when none.
func (d *decision) lateness(op *core.Operation) string {
	switch d.PassedBound(op, d.pauseEnds(op)) {
	case draft.BoundDelay:
		return "spec.maxSwitchoverDelay has passed"
	case draft.BoundPause:
		return fmt.Sprintf("writes were stopped for spec.maxSwitchoverPause (%s)", d.Cluster.SwitchoverPause)
	default:
		return ""
	}
}

// letCatchUp has the target come close to the old primary, and reports whether it is: it is
// expected to take writes soon enough after the old primary has stopped to. What it lacks has to
// come: a replica may say that it lags nothing, and wait for what nobody will send it.
func (d *decision) letCatchUp(op *core.Operation) bool {
	from, to := d.Instance(op.From), d.Instance(op.To)
	source, answers := serving(from)
	target, answersToo := serving(to)
	switch {
	case !answers:
		d.Doing("waiting for " + op.From + " to say what it holds")
		return false
	case !answersToo:
		d.Doing("waiting for " + op.To + " to say what it holds")
		return false
	}
	// Another operator's clock may be ahead of ours.
	since := d.Now.Add(-draft.CatchUpPace)
	if op.StartedAt.Before(since) {
		since = op.StartedAt
	}
	if freshFrom, freshTo := d.fresh(from, since), d.fresh(to, since); !freshFrom || !freshTo {
		d.Doing("switching over from " + op.From + " to " + op.To)
		return false
	}
	has, most := target.Server.Executed, d.ForCatchUp(op)
	lacks := source.Server.Executed.Subtract(has).Count()
	takes, known := d.measureTimeToApply(op, has, to.Report.NotBefore(), source, lacks)
	if lacks == 0 || d.hasReached(to, has, from, min(catchUpAge, most/2)) ||
		known && takes <= min(d.Now.Sub(op.StartedAt)/catchUpShare, most) {
		return true
	}
	d.tellWhyNotClose(op, takes, known)
	d.LookAtBoth(op)
	return false
}

// measureTimeToApply returns how long the target, which had executed has when it was read, would take to
// execute so many transactions more, as fast as it has done of late, and keeps what it measured for the next
// look. It is not known before the target has executed all that the old primary had when this was first asked:
// who never gets that may be fast with what comes after it.
func (d *decision) measureTimeToApply(op *core.Operation, has gtid.Set, read time.Time, source core.Report,
	lacks uint64) (time.Duration, bool) {
	c, applied := d.Observation.Carried.CatchUp, has.Count()
	since := read.Sub(c.At)
	switch {
	case c.Target != op.To || !c.Began.Equal(op.StartedAt) || since < 0 || applied < c.Applied:
		c = core.CatchUp{Target: op.To, Began: op.StartedAt, Source: source.Server.Executed, Applied: applied,
			At: read}
	case since >= rateSample:
		c.Rate, c.Known = float64(applied-c.Applied)/since.Seconds(), true
		c.Applied, c.At = applied, read
	}
	d.Plan.Carried.CatchUp = c
	if !c.Known || c.Rate == 0 || !has.Contains(c.Source) {
		return 0, false
	}
	return time.Duration(float64(lacks) / c.Rate * float64(time.Second)), true
}

func (d *decision) tellWhyNotClose(op *core.Operation, takes time.Duration, known bool) {
	how := "it has not yet applied what " + op.From + " had when the operator first compared them"
	if known {
		how = "it would take about " + roughly(takes).String()
	}
	limit := "within a tenth of the time waited so far"
	if d.Cluster.SwitchoverPause > 0 && !d.IsStopping(op.From) {
		limit += fmt.Sprintf(", and well within spec.maxSwitchoverPause (%s)", d.Cluster.SwitchoverPause)
	}
	d.Doing(fmt.Sprintf("%s still takes writes until %s can apply what it lacks %s; %s", op.From, op.To, limit, how))
}

// roughly rounds up so coarsely that the sentence seldom changes.
func roughly(t time.Duration) time.Duration {
	for _, step := range []time.Duration{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800} {
		if t <= step*time.Second {
			return step * time.Second
		}
	}
	return t.Truncate(time.Hour) + time.Hour
}

// turnBack gives a switchover up of which the target was promoted and does not become
// writable: when time is up, when it gets nothing done, or when the old primary is wished
// for again. The target has to promise first that it takes no writes.
func (d *decision) turnBack(op *core.Operation) bool {
	reason, why := core.RefusalDeadline, d.lateness(op)
	switch {
	case d.Status.TargetPrimary == op.From && d.canReturn(op):
		reason, why = core.ReasonRequested, "status.targetPrimary was set back to "+op.From
	case why != "":
		why += " (" + d.promotionProgress() + ")"
	case d.diagnosis.name.IsFailing():
		return false
	case d.noteProgress(op) && d.canReturn(op):
		why = fmt.Sprintf("it made no progress for %s (%s)", stallLimit, d.promotionProgress())
	default:
		return false
	}
	d.Warn(reason, fmt.Sprintf("switchover to %s given up: %s; %s takes writes again as soon as %s has promised to "+
		"take none",
		op.To, why, op.From, op.To))
	if reason != core.ReasonRequested {
		d.NoteReturn(op.To, why)
	}
	if d.Status.FailingSince.IsZero() {
		d.Status.FailingSince = d.Now
	}
	d.Status.Operation = &core.Operation{Kind: core.OperationFailover, Step: core.StepProve, From: op.To, To: op.From,
		Reason: core.ReasonReturn, StartedAt: op.StartedAt, PausedAt: op.PausedAt, Witnesses: witnesses(d.Observation)}
	d.failOver()
	return true
}

// noteProgress keeps what the promoted target has got done, and reports whether that was nothing
// for long, while it answers.
func (d *decision) noteProgress(op *core.Operation) bool {
	until, serves := d.stallsAt()
	if serves && d.Now.Before(until) {
		d.Do(core.Refresh{Instance: op.To})
		d.RecheckAt(d.Now.Add(progressPace))
		return false
	}
	return serves
}

// stallsAt keeps what the promoted instance has got done, and returns when that will have been nothing for
// long, unless it does not serve.
func (d *decision) stallsAt() (time.Time, bool) {
	p := d.Status.Promotion
	r, serves := serving(d.holder())
	if !serves {
		return time.Time{}, false
	}
	now := core.Progress{Epoch: p.Epoch, At: d.Now, Seen: r.SeenEpoch >= p.Epoch, Held: r.Server.Holds().Count(),
		Executed: r.Server.Executed.Count()}
	before := d.Observation.Carried.Progress
	if then := before; before.Epoch == p.Epoch {
		then.At = now.At
		if then == now {
			now.At = before.At
		}
	}
	d.Plan.Carried.Progress = now
	return now.At.Add(stallLimit), true
}
