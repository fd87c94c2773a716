package backup

import (
	"context"
	"errors"
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
