package core

import "time"

const (
	// MeasureEvery is how often a manager's clock is held against that of whoever listens to it.
	MeasureEvery = 15 * time.Second
	// boundLife is how long such a measurement is good for. Between two machines' clocks no more
	// than one part in driftLimit is lost or won.
	boundLife  = 30 * time.Second
	driftLimit = 1000
	// standstill of a clock is told from one that runs a little slower than the manager's.
	standstill = 20 * time.Millisecond
)

// Moments are those of a report, in nanoseconds since its manager began, by its monotonic clock:
// when the oldest of its facts was read, when it was put together, and when it was asked for.
type Moments struct{ Taken, Made, Asked int64 }

// Hearing tells, of what one instance's manager says, when it can have been read, by the clock of
// whoever listens. No two machines' clocks are compared: who knows when it asked knows by the
// manager's own word how long ago it was asked, and so when the manager began at the earliest.
type Hearing struct {
	// boot is the manager that was heard last, began the earliest moment at which it can have
	// started, measured when that was found, and made when its last report was put together, by
	// its own clock.
	boot     string
	began    time.Time
	measured time.Time
	made     int64
	// stood is when it was noticed last that our own clock had stood still.
	stood time.Time
}

// IsMeasured reports whether the manager's clock was held against ours, and that is not void.
func (h *Hearing) IsMeasured() bool { return !h.began.IsZero() }

// Hear takes a report that was asked for at begun and arrived at now, and returns the earliest
// moment at which it can have been read. It returns false for one that was made earlier than the
// last: an answer and the stream may overtake each other.
//
// The manager was asked after we began to ask, so that it cannot have been started before this.
// The tightest of all bounds counts for all. It does not count for long: no two clocks run equally
// fast. Nor does what was asked for long ago measure anything, but where there is nothing else.
func (h *Hearing) Hear(boot string, m Moments, begun, now time.Time) (time.Time, bool) {
	if boot != h.boot {
		h.boot, h.began, h.made = boot, time.Time{}, 0
	}
	if m.Made < h.made {
		return time.Time{}, false
	}
	h.made = m.Made
	began := begun.Add(-time.Duration(m.Asked))
	isOld, isVoid := now.Sub(begun) > boundLife, begun.Before(h.stood)
	if !isVoid && (!h.IsMeasured() || !isOld && (began.After(h.began) || now.Sub(h.measured) > boundLife)) {
		h.began, h.measured = began, now
	}
	return h.readAt(m, begun, now), true
}

// readAt is the earliest moment, by our clock, in which the facts of a report can have been read.
// One that lies in the future tells that our clock stood still, with the whole machine, and the
// manager's did not: what was measured before that is void, and this report is as old as the
// question for it, until it is measured again.
func (h *Hearing) readAt(m Moments, begun, now time.Time) time.Time {
	if h.IsMeasured() {
		drift := now.Sub(h.measured).Truncate(time.Second) / driftLimit
		at := h.began.Add(time.Duration(m.Taken) - drift)
		switch ahead := at.Sub(now); {
		case ahead <= 0:
			return at
		case ahead <= standstill:
			return now
		}
		h.began, h.measured, h.stood = time.Time{}, time.Time{}, now
	}
	return begun.Add(min(0, time.Duration(m.Taken-m.Asked)))
}
