package operator

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// bucket lets so many through at once, and so many a second after that. The first always
// goes through at once: what is rare is never held back.
type bucket struct {
	most, perSecond float64

	mu   sync.Mutex
	used float64
	at   time.Time
}

// take is 0 when one more may go through, else how long to wait before asking again.
func (b *bucket) take(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.at.IsZero() {
		b.used = max(0, b.used-now.Sub(b.at).Seconds()*b.perSecond)
	}
	b.at = now
	if over := b.used + 1 - b.most; over > 0 {
		return max(time.Millisecond, time.Duration(over/b.perSecond*float64(time.Second)))
	}
	b.used++
	return 0
}

// Limits of what one instance, or one cluster, may cost all the others.
const (
	// heardAtOnce and heardPerSecond bound the reading of an instance's stream, which
	// holds one snapshot for every change, and one a second.
	heardAtOnce, heardPerSecond = 100, 50
	// wakesAtOnce and wakesPerSecond bound how often an instance wakes its cluster.
	wakesAtOnce, wakesPerSecond = 20, 20
	// writesAtOnce and writesPerSecond bound the status writes of a cluster. A failover
	// takes some ten.
	writesAtOnce, writesPerSecond = 40, 5
)

// streamLimits are those of one instance's stream.
type streamLimits struct {
	heard, wakes *bucket
	// later: it will be woken already.
	later *atomic.Bool
}

func newStreamLimits() streamLimits {
	return streamLimits{heard: &bucket{most: heardAtOnce, perSecond: heardPerSecond}, wakes: &bucket{most: wakesAtOnce,
		perSecond: wakesPerSecond}, later: &atomic.Bool{}}
}

// read returns when another snapshot may be read. What is not read waits with whoever sends it.
func (l streamLimits) read(ctx context.Context) {
	if wait := l.heard.take(time.Now()); wait > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// wake wakes now, or once, later.
func (l streamLimits) wake(ctx context.Context, wake func()) {
	wait := l.wakes.take(time.Now())
	switch {
	case wait == 0:
		wake()
	case l.later.CompareAndSwap(false, true):
		time.AfterFunc(wait, func() {
			l.later.Store(false)
			if ctx.Err() == nil {
				l.wake(ctx, wake)
			}
		})
	}
}

// tooManyWritesError is the error when the status of a cluster changes too often to be written
// each time.
type tooManyWritesError struct{ wait time.Duration }

func (e *tooManyWritesError) Error() string {
	return "the status changes too often; it is written again in " + e.wait.String()
}

// statusWrites bounds how often the status of each cluster is written.
type statusWrites struct {
	mu sync.Mutex
	by map[types.NamespacedName]*bucket
}

func newStatusWrites() *statusWrites {
	return &statusWrites{by: map[types.NamespacedName]*bucket{}}
}

func (w *statusWrites) take(cluster types.NamespacedName) error {
	w.mu.Lock()
	b := w.by[cluster]
	if b == nil {
		b = &bucket{most: writesAtOnce, perSecond: writesPerSecond}
		w.by[cluster] = b
	}
	w.mu.Unlock()
	if wait := b.take(time.Now()); wait > 0 {
		return &tooManyWritesError{wait}
	}
	return nil
}

func (w *statusWrites) forget(cluster types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.by, cluster)
}
