package archive

import (
	"context"
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

// ahead does the steps of a plan, some at a time, and hands over in their order what became of each.
type ahead struct {
	ctx     context.Context
	cancel  context.CancelFunc
	results chan chan done
	room    *semaphore.Weighted
	under   sync.WaitGroup
}

// done is what became of a step.
type done struct {
	size int64
	err  error
	need int64 // room that it holds until it is taken over
}

// newAhead begins n steps of these sizes in their order. Whoever takes them over ends it.
func newAhead(ctx context.Context, n int, size func(i int) int64,
	do func(ctx context.Context, i int) (int64, error)) *ahead {
	a := &ahead{results: make(chan chan done, aheadParts), room: semaphore.NewWeighted(aheadBytes)}
	a.ctx, a.cancel = context.WithCancel(ctx)
	a.under.Go(func() {
		for i := range n {
			need := min(max(size(i), aheadBytes/aheadParts), aheadBytes)
			if a.room.Acquire(a.ctx, need) != nil {
				return
			}
			one := make(chan done, 1)
			a.results <- one // there is room for as many as can be under way
			a.under.Go(func() {
				size, err := do(a.ctx, i)
				one <- done{size, err, need}
			})
		}
	})
	return a
}

// next waits for the next step.
func (a *ahead) next() (size int64, err error) {
	select {
	case one := <-a.results:
		d := <-one
		a.room.Release(d.need)
		return d.size, d.err
	case <-a.ctx.Done():
		return 0, context.Cause(a.ctx)
	}
}

// end gives up what was not taken over, and waits until nothing is done any more.
func (a *ahead) end() {
	a.cancel()
	a.under.Wait()
}
