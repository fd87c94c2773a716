package archive

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// TestAnAttemptMayTakeAsLongAsTheLimitWants: 8 MiB that do not compress, at 4 MiB a second, where
// nothing may move for half a second.
func TestAnAttemptMayTakeAsLongAsTheLimitWants(t *testing.T) {
	m := newMemory()
	s, err := NewShipper(Config{Store: store.Limited(m, 4<<20), Prefix: prefix, Cluster: "uid", Epoch: 1,
		May: allowed, PutTimeout: 500 * time.Millisecond})
	must(t, err)
	s.sequence = 1
	raw := make([]byte, 8<<20)
	_, _ = rand.Read(raw)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must(t, s.put(ctx, facts.Part{Cluster: "uid", Epoch: 1, Sequence: 1}, raw))
	if m.written() == 0 || s.Status().Failure != nil {
		t.Errorf("%d objects; %v", m.written(), s.Status().Failure)
	}
}

// TestAStoreThatTakesNoBranchIsNoArchiveThatLacksNothing: what would be lost grows from when that
// was unknown first, and is told from the logs once the store takes it.
func TestAStoreThatTakesNoBranchIsNoArchiveThatLacksNothing(t *testing.T) {
	story("the store refuses from the beginning", t, func(t *testing.T, l *logs, m *memory) {
		var takes atomic.Bool
		m.before = func(context.Context, string) error {
			if takes.Load() {
				return nil
			}
			time.Sleep(40 * time.Second)
			return errFault
		}
		c := l.config(m, 1)
		c.Since = time.Now().Add(-time.Minute)
		s := begin(t, c)
		l.commit(1, 70)
		for range 600 {
			time.Sleep(time.Second)
			now := time.Now()
			if is := s.Status().RPO(now); is != now.Sub(c.Since) {
				t.Fatalf("an RPO of %s after %s", is, now.Sub(c.Since))
			}
		}
		takes.Store(true)
		time.Sleep(5 * time.Minute)
		if is := s.Status(); is.RPO(time.Now()) != 0 || !is.Sought.IsZero() {
			t.Errorf("when all is archived: %s, %+v", is.RPO(time.Now()), is)
		}
		must(t, s.end())
	})
}
