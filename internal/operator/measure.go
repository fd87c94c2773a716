package operator

import (
	"context"
	"time"

	"cnmsql.co/internal/core"
)

// measure asks for a report, to hold the manager's clock against the operator's, when that was
// long ago, or is void: a stream that was asked for long ago cannot. It goes on beside the stream.
func (st *stream) measure(ctx context.Context) {
	if time.Since(st.asked) < core.MeasureEvery && st.isMeasured() || !st.asking.CompareAndSwap(false, true) {
		return
	}
	st.asked = time.Now()
	go func() {
		defer st.asking.Store(false)
		ctx, cancel := context.WithTimeout(ctx, core.ReportLimit)
		defer cancel()
		begun := time.Now()
		if snap, err := st.client.Status(ctx); err == nil {
			st.hear(snap, begun)
		}
	}()
}

// isMeasured reports whether the manager's clock was held against ours.
func (st *stream) isMeasured() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.hearing.IsMeasured()
}
