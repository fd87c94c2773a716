package instance

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// roomInterval is between two looks at the room on a volume that is filled.
const roomInterval = time.Second

// whileThereIsRoom does what fills the volume, and ends it when there is less room than mysqld
// is started with: a server without any waits for it, for ever, and says so in its log alone.
func (r *restorer) whileThereIsRoom(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.awaitFull(ctx, cancel)
	}()
	err := do(ctx)
	cancel(nil)
	<-over
	if err == nil {
		return nil
	}
	return r.becauseFull(err, context.Cause(ctx))
}

// awaitFull ends a context with its cause when the volume is full.
func (r *restorer) awaitFull(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(roomInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if free, _, err := r.opt.Room(); err == nil && free < agent.SpaceNeeded {
			cancel(fullOfRestore(fmt.Sprintf("%d bytes are left", free)))
			return
		}
	}
}

// becauseFull gives what failed the name of its cause, where that is the volume. What failed may
// have given room back.
func (r *restorer) becauseFull(err, cause error) error {
	var named *namedError
	if errors.As(cause, &named) {
		return named
	}
	full := errors.Is(err, syscall.ENOSPC) || errors.As(err, &named) && named.Reason == core.InstanceDiskFull
	if proc := r.by.server(); !full && proc != nil {
		_, full = proc.log.last()
	}
	if full {
		return fullOfRestore(err.Error())
	}
	return err
}

func fullOfRestore(detail string) *namedError {
	return &namedError{core.Problem{Reason: core.InstanceDiskFull, Message: "the volume is too small for the data " +
		"that are restored (" + detail + "): raise spec.storage.size; the restore begins anew then"},
		restoreFullAgain}
}
