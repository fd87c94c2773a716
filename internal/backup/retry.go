package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cnmsql.co/internal/store"
)

// A store has tried again by itself what it may refuse for a moment. These are for more
// than a moment: with its five pauses an upload is given up after half a minute. The donor
// waits as long.
const (
	tries      = 6
	firstPause = time.Second
)

// retry does something until it succeeds, at most so many times, with pauses that double.
// Whatever the error is: a store that refuses for good was told when the archive was
// claimed, and credentials that are replaced meanwhile are refused for a moment.
func retry(ctx context.Context, tries int, do func(context.Context) error) error {
	pause := firstPause
	for n := 1; ; n++ {
		err := do(ctx)
		if err == nil || n >= tries || final(err) {
			return err
		}
		if waitErr := wait(ctx, pause); waitErr != nil {
			return waitErr
		}
		pause *= 2
	}
}

// finalError is one that another try would not change.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

func final(err error) bool {
	var last *finalError
	return errors.As(err, &last) || errors.Is(err, store.NotFound) || errors.Is(err, store.Exists)
}

// wait returns after a pause, or with the reason why ctx ended.
func wait(ctx context.Context, pause time.Duration) error {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// read reads a small object whole.
func read(ctx context.Context, s store.Store, key string, limit int64) (data []byte, err error) {
	err = retry(ctx, 3, func(ctx context.Context) error {
		body, err := s.Get(ctx, key)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()
		data, err = io.ReadAll(io.LimitReader(body, limit+1))
		return err
	})
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return data, wrap(err, "reading %s", key)
}
