package archive

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"
)

const (
	// aheadParts are read at a time: a store takes its time for each, however small it is, and
	// a day with a part each second has 86,400 of them.
	aheadParts = 8
	// aheadBytes are the most that they have together, unless one alone has more: each needs
	// memory and room on the volume.
	aheadBytes = 32 << 20
)

// ahead does what it is given, some at a time, and hands over in their order what became of each.
type ahead[T, R any] struct {
	ctx     context.Context
	cancel  context.CancelFunc
	results chan chan done[T, R]
	room    *semaphore.Weighted
	under   sync.WaitGroup
}

// done is what became of one.
type done[T, R any] struct {
	what   T
	result R
	err    error
	need   int64 // room that it holds until it is taken over
}

// newAhead begins to do all of these sizes in their order, up to the first that is an error, which
// is handed over then. Whoever takes them over ends it.
func newAhead[T, R any](ctx context.Context, all func(context.Context) iter.Seq2[T, error], size func(T) int64,
	do func(ctx context.Context, i int, what T) (R, error)) *ahead[T, R] {
	a := &ahead[T, R]{results: make(chan chan done[T, R], aheadParts), room: semaphore.NewWeighted(aheadBytes)}
	a.ctx, a.cancel = context.WithCancel(ctx)
	a.under.Go(func() {
		defer close(a.results)
		i := 0
		for what, err := range all(a.ctx) {
			need := min(max(size(what), aheadBytes/aheadParts), aheadBytes)
			if a.room.Acquire(a.ctx, need) != nil {
				return
			}
			one := make(chan done[T, R], 1)
			a.results <- one // there is room for as many as can be under way
			if err != nil {
				one <- done[T, R]{err: err, need: need}
				return
			}
			n := i
			a.under.Go(func() {
				result, err := do(a.ctx, n, what)
				one <- done[T, R]{what, result, err, need}
			})
			i++
		}
	})
	return a
}

// next waits for the next one; false if there is none any more.
func (a *ahead[T, R]) next() (what T, result R, ok bool, err error) {
	select {
	case one, more := <-a.results:
		if err := context.Cause(a.ctx); !more {
			return what, result, false, err
		}
		d := <-one
		a.room.Release(d.need)
		return d.what, d.result, d.err == nil, d.err
	case <-a.ctx.Done():
		return what, result, false, context.Cause(a.ctx)
	}
}

// end gives up what was not taken over, and waits until nothing is done any more.
func (a *ahead[T, R]) end() {
	a.cancel()
	a.under.Wait()
}
