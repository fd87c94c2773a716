package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"cnmsql.co/internal/core/agent"
)

// activities are what takes long and goes on beside the worker, one at a time: making data, copying,
// stopping. It keeps which one that is.
type activities struct {
	log  *slog.Logger
	data string // the data directory
	by   occupied

	mu  sync.Mutex
	now agent.Activity // NoActivity when there is none
	// moved is when it was last seen to get on.
	moved time.Time
	// abort ends it; nil when there is none.
	abort context.CancelCauseFunc
	over  chan struct{} // closed when it is over
}

// occupied is what activities ask of their manager.
type occupied interface {
	// setProblem takes note of why one has failed.
	setProblem(err error)
	// retell has the report made again, and the worker look.
	retell()
}

func newActivities(m *manager) *activities {
	return &activities{log: m.log, data: m.opt.Dirs.Data, by: m}
}

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
	ctx, cancel := context.WithCancelCause(context.Background())
	over := make(chan struct{})
	a.change(func() { a.now, a.moved, a.abort, a.over = what, time.Now(), cancel, over })
	if what.MakesData() {
		go a.watchFiles(ctx)
	}
	go func() {
		defer close(over)
		defer cancel(nil)
		if err := whyFailed(ctx, do(ctx)); err != nil {
			a.log.Error("an activity failed", "activity", what, "error", err)
			a.by.setProblem(err)
		}
		a.change(func() { a.now, a.abort = agent.NoActivity, nil })
	}()
	return nil
}

// whyFailed is why an activity failed that has ended with an error; nil when it was ended for a
// reason that is none of its own.
func whyFailed(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// cancel ends what can be ended; data that was being made stays unfinished. It has failed then if
// why is not nil. What is returned is closed when it is over; nil when nothing goes on.
func (a *activities) cancel(why error) (over <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.abort == nil {
		return nil
	}
	a.abort(why)
	return a.over
}

// end ends what goes on as cancel does, and mysqld by a function, and returns when both have ended: before
// that, nothing else can be decided.
func (a *activities) end(ctx context.Context, why error, kill func() error) error {
	over := a.cancel(why)
	if err := kill(); err != nil || over == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, agent.StatementLimit)
	defer cancel()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("what was begun does not end: %w", ctx.Err())
	}
}
