package instance

import (
	"context"
	"log/slog"
	"sync"

	"cnmsql.co/internal/core/agent"
)

// activities are what takes long and goes on beside the worker, one at a time: making data, copying,
// stopping. It keeps which one that is.
type activities struct {
	log *slog.Logger
	by  occupied

	mu  sync.Mutex
	now agent.Activity // NoActivity when there is none
	// abort ends it; nil when there is none.
	abort context.CancelFunc
	over  chan struct{} // closed when it is over
}

// occupied is what activities ask of their manager.
type occupied interface {
	// setProblem takes note of why one has failed.
	setProblem(err error)
	// retell has the report made again, and the worker look.
	retell()
}

func newActivities(m *manager) *activities { return &activities{log: m.log, by: m} }

// current is the one that goes on; NoActivity when none does.
func (a *activities) current() agent.Activity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *activities) change(f func()) {
	a.mu.Lock()
	f()
	a.mu.Unlock()
	a.by.retell()
}

// begin starts an activity, which goes on beside the worker.
func (a *activities) begin(what agent.Activity, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	a.change(func() { a.now, a.abort, a.over = what, cancel, over })
	go func() {
		defer close(over)
		defer cancel()
		err := do(ctx)
		if err != nil && ctx.Err() == nil {
			a.log.Error("failed", "activity", what, "error", err)
			a.by.setProblem(err)
		}
		a.change(func() { a.now, a.abort = agent.NoActivity, nil })
	}()
	return nil
}

// cancel ends what can be ended; data that was being made stays unfinished. What is returned is
// closed when it is over; nil when nothing goes on.
func (a *activities) cancel() (over <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abort == nil {
		return nil
	}
	a.abort()
	return a.over
}
