package instance

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// single has a question asked when the one before has been answered, however long that takes. mysqld
// keeps the session of a question that waits for a lock when nobody waits for the answer any more, so
// that to ask anew again and again would take all the sessions there are. It is used by one at a time.
type single struct {
	// asked is when the last question was; over is closed when it has an answer, or its mysqld has ended.
	asked time.Time
	over  chan struct{}
}

// ask has a question answered until ctx ends. The question itself goes on then, and its answer counts
// for nothing.
func (s *single) ask(ctx context.Context, question func(context.Context) (*core.Server, error)) (*core.Server, error) {
	if s.over != nil {
		select {
		case <-s.over:
		case <-ctx.Done():
			return nil, fmt.Errorf("mysqld owes an answer since %s: %w", s.asked.UTC().Format(time.RFC3339), ctx.Err())
		}
	}
	type answer struct {
		server *core.Server
		err    error
	}
	answers, over := make(chan answer, 1), make(chan struct{})
	s.asked, s.over = time.Now(), over
	go func() {
		defer close(over)
		server, err := question(context.WithoutCancel(ctx))
		answers <- answer{server, err}
	}()
	select {
	case a := <-answers:
		return a.server, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// owes reports whether the last question has no answer yet.
func (s *single) owes() bool {
	if s.over == nil {
		return false
	}
	select {
	case <-s.over:
		return false
	default:
		return true
	}
}
