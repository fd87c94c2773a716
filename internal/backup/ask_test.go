package backup

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/gtid"
)

// silentFrom is a donor that hangs from a question on: whoever asks waits as long as he may.
func silentFrom(question int, before func(context.Context) (gtid.Set, error)) func(context.Context) (gtid.Set, error) {
	asked := 0
	return func(ctx context.Context) (gtid.Set, error) {
		if asked++; asked >= question {
			<-ctx.Done()
			return gtid.Set{}, ctx.Err()
		}
		return before(ctx)
	}
}

func TestADonorThatHangsDoesNotHoldABackup(t *testing.T) {
	for question := 1; question <= 2; question++ {
		synctest.Test(t, func(t *testing.T) {
			s, o := newMemory(), options()
			o.Executed = silentFrom(question, o.Executed)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			_, err := take(ctx, from(scene(4), nil), s, o)
			var asking *askError
			if !errors.As(err, &asking) || ctx.Err() != nil || len(s.keys(dirBase)) > 0 {
				t.Errorf("silent from question %d on: %v; its time is over: %t; %q are left", question, err,
					ctx.Err() != nil, s.keys(dirBase))
			}
		})
	}
}

// All data are in the store when the second question is asked: a moment without an answer must not
// cost them.
func TestAQuestionThatFailsIsAskedAgain(t *testing.T) {
	for question := 1; question <= 2; question++ {
		synctest.Test(t, func(t *testing.T) {
			s, o, asked, snapshots := newMemory(), options(), 0, 0
			answers := o.Executed
			o.Executed = func(ctx context.Context) (gtid.Set, error) {
				if asked++; asked == question {
					return gtid.Set{}, errors.New("dial tcp 10.0.0.7:3306: connect: connection refused")
				}
				return answers(ctx)
			}
			m, err := take(t.Context(), from(scene(4), func(attempt, _ int) error {
				snapshots = attempt
				return nil
			}), s, o)
			must(t, err)
			if asked != 3 || snapshots != 1 {
				t.Errorf("asked %d times, in %d snapshots", asked, snapshots)
			}
			restorable(t, s, m)
		})
	}
}

func TestADonorThatDoesNotListenForAMomentIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, attempts := newMemory(), 0
		m, err := take(t.Context(), from(scene(4), func(attempt, record int) error {
			if attempts = attempt; attempt == 1 && record == 1 {
				return &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
			}
			return nil
		}), s, options())
		must(t, err)
		if attempts != 2 {
			t.Errorf("it took %d attempts", attempts)
		}
		restorable(t, s, m)
	})
}

func TestAQuestionEndsWithItsBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, why := options(), errors.New("the Pod is stopped")
		o.Executed = silentFrom(2, o.Executed)
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(5*time.Second, func() { cancel(why) })
		began := time.Now()
		_, err := take(ctx, from(scene(4), nil), newMemory(), o)
		if took := time.Since(began); !errors.Is(err, why) || took > askLimit {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
