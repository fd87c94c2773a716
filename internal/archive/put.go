package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// put stores a part, however often that has to be tried, while this instance may.
func (s *Shipper) put(ctx context.Context, part facts.Part, raw []byte) error {
	began := time.Now()
	key, err := s.key()
	if err != nil {
		return err
	}
	object, err := s.compress.object(&part, raw, key)
	if err != nil {
		return err
	}
	_, err = retried(ctx, s, len(object), func(ctx context.Context) (struct{}, error) {
		if err := s.askEnded(ctx); err != nil {
			return struct{}{}, err
		}
		return struct{}{}, s.create(ctx, part, object)
	})
	if err != nil {
		return err
	}
	s.took = time.Since(began)
	s.sequence++
	s.archived(part)
	s.note(ctx, part, int64(len(object)))
	return nil
}

// key is what the next part is encrypted with; the zero Key if nothing is.
func (s *Shipper) key() (seal.Key, error) {
	if s.c.Key == nil {
		return seal.Key{}, nil
	}
	return s.c.Key()
}

// create writes the object of a part, unless it was written before: an attempt of which no
// answer came may have succeeded.
func (s *Shipper) create(ctx context.Context, part facts.Part, object []byte) error {
	key := partKey(s.c.Prefix, part.Key())
	err := s.c.Store.Create(ctx, key, object)
	if !errors.Is(err, store.Exists) {
		return err
	}
	there, err := getFacts(ctx, s.c.Store, s.c.Prefix, part.Key())
	if err != nil {
		return err
	}
	if !there.IsSame(part) {
		return refuse(PartConflict, "%s holds %s of server %s", key, there.GTIDs.Abbreviate(4), there.ServerUUID)
	}
	return nil
}

// isFinal reports whether it does not help to try again: the error has a Reason.
func isFinal(err error) bool {
	var why *Reason
	return errors.As(err, &why)
}

// retried tries something with the store until it succeeds, with growing pauses, and asks
// for the permission before each attempt. An attempt, of which so many bytes of an object are to be
// written (0 where none is), may take as long as its line needs, and is given up when nothing moves.
func retried[T any](
	ctx context.Context, s *Shipper, bytes int, try func(context.Context) (T, error),
) (out T, err error) {
	stuck := fmt.Errorf("for %s nothing came from the store, and it took nothing", s.c.PutTimeout)
	if bytes > 0 {
		stuck = fmt.Errorf("%w of an object of %d bytes", stuck, bytes)
	}
	hasFailed := false
	for pause := facts.StoreRetryFirst; ; pause = min(2*pause, facts.StoreRetryMost) {
		if err := s.may(ctx); err != nil {
			return out, err
		}
		attempt, end := whileMoving(ctx, s.c.PutTimeout, stuck)
		out, err = try(attempt)
		if err != nil && attempt.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(attempt), err)
		}
		end()
		if err == nil && hasFailed {
			s.passes()
		}
		if err == nil || isFinal(err) {
			return out, err
		}
		hasFailed = true
		s.failed(err)
		if err := s.pause(ctx, pause); err != nil {
			return out, err
		}
	}
}

// whileMoving gives a context for a store, which ends with a cause when nothing has moved for so long.
func whileMoving(ctx context.Context, limit time.Duration, stuck error) (attempt context.Context, end func()) {
	attempt, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(stuck) })
	attempt = store.WithProgress(attempt, func() { timer.Reset(limit) })
	return attempt, func() {
		cancel(nil)
		timer.Stop()
	}
}

// pause, and end it when the permission ends.
func (s *Shipper) pause(ctx context.Context, d time.Duration) error {
	for ; d > 0; d -= longestSleep {
		if err := errors.Join(sleep(ctx, min(d, longestSleep)), s.may(ctx)); err != nil {
			return err
		}
	}
	return nil
}
