package archive

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// counted are the first numbers.
func counted(n int) func(context.Context) iter.Seq2[int, error] {
	return func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			for i := range n {
				if !yield(i, nil) {
					return
				}
			}
		}
	}
}

// TestWhatCannotBeGivenEndsTheRest: what comes before is done, and then the error handed over.
func TestWhatCannotBeGivenEndsTheRest(t *testing.T) {
	broken := errors.New("broken")
	all := func(context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) { _ = yield(0, nil) && yield(0, broken) && yield(1, nil) }
	}
	a := newAhead(t.Context(), all, func(int) int64 { return 1 }, func(_ context.Context, i, _ int) (int, error) {
		return i, nil
	})
	defer a.end()
	if _, _, more, err := a.next(); !more || err != nil {
		t.Errorf("the first one: %t, %v", more, err)
	}
	if _, _, _, err := a.next(); !errors.Is(err, broken) {
		t.Errorf("the one that is none: %v", err)
	}
	if _, _, more, err := a.next(); more || err != nil {
		t.Errorf("behind it: %t, %v", more, err)
	}
}

// TestStepsAreDoneAheadAndTakenOverInOrder: of small ones eight at a time, of large ones as many as
// have room; and each takes its time.
func TestStepsAreDoneAheadAndTakenOverInOrder(t *testing.T) {
	for size, want := range map[int64]time.Duration{1000: 8, 4 << 20: 8, 16 << 20: 2, 100 << 20: 1} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			a := newAhead(t.Context(), counted(40), func(int) int64 { return size },
				func(_ context.Context, i, _ int) (int64, error) {
					time.Sleep(time.Second + time.Duration(i%3)*time.Millisecond)
					return int64(i), nil
				})
			defer a.end()
			for i := range 40 {
				if _, got, _, err := a.next(); err != nil || got != int64(i) {
					t.Fatalf("%d comes as %d: %v", i, got, err)
				}
			}
			if took := time.Since(began).Round(time.Second); took != 40*time.Second/want {
				t.Errorf("40 steps of a second and %d bytes each took %s", size, took)
			}
		})
	}
}

func TestAStepThatFailsEndsThoseBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var begun, under atomic.Int64
		one := func(int) int64 { return 1 }
		a := newAhead(t.Context(), counted(100), one, func(ctx context.Context, i, _ int) (int64, error) {
			begun.Add(1)
			under.Add(1)
			defer under.Add(-1)
			if i == 3 {
				return 0, broken
			}
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(time.Duration(i+1) * time.Second):
			}
			return int64(i), nil
		})
		for i := range 3 {
			if _, got, _, err := a.next(); err != nil || got != int64(i) {
				t.Fatalf("%d comes as %d: %v", i, got, err)
			}
		}
		if _, _, _, err := a.next(); !errors.Is(err, broken) {
			t.Errorf("the one that failed: %v", err)
		}
		a.end()
		if under.Load() != 0 || begun.Load() > 12 {
			t.Errorf("%d are still under way, of %d that were begun", under.Load(), begun.Load())
		}
	})
}

func TestNothingIsWaitedForOnceItIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		one := func(int) int64 { return 1 }
		a := newAhead(ctx, counted(1), one, func(ctx context.Context, _, _ int) (int64, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		go func() { time.Sleep(time.Second); cancel() }()
		if _, _, _, err := a.next(); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		a.end()
	})
}
