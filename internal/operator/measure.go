package operator

import (
	"context"
	"time"

	"cnmsql.co/internal/control"
)

// measure asks for a report, to hold the manager's clock against the operator's, when that was
// long ago, or is void: a stream that was asked for long ago cannot. It goes on beside the stream.
func (st *stream) measure(ctx context.Context) {
	if time.Since(st.asked) < measureEvery && st.isMeasured() || !st.asking.CompareAndSwap(false, true) {
		return
	}
	st.asked = time.Now()
	go func() {
		defer st.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, refreshDeadline)
		defer cancel()
		begun := time.Now()
		if snap, err := st.client.Status(ctx); err == nil {
			st.hear(snap, begun)
		}
	}()
}

// readAt is the earliest moment, by our clock, in which the facts of a snapshot can have been
// read. One that lies in the future tells that our clock stood still, with the whole machine,
// and the manager's did not: what was measured before that is void, and this snapshot is as old
// as the question for it, until it is measured again. The lock is held.
func (st *stream) readAt(snap control.Snapshot, begun, now time.Time) time.Time {
	if !st.began.IsZero() {
		drift := now.Sub(st.measured).Truncate(time.Second) / driftLimit
		at := st.began.Add(time.Duration(snap.Taken) - drift)
		switch ahead := at.Sub(now); {
		case ahead <= 0:
			return at
		case ahead <= standstill:
			return now
		}
		st.began, st.measured, st.stood = time.Time{}, time.Time{}, now
	}
	return begun.Add(min(0, time.Duration(snap.Taken-snap.Asked)))
}

// standstill of a clock is told from one that runs a little slower than the manager's.
const standstill = 20 * time.Millisecond

// isMeasured: the manager's clock was held against ours.
func (st *stream) isMeasured() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return !st.began.IsZero()
}
