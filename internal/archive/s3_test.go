package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// filled is a store that takes nothing more until it is freed.
func filled(t *testing.T, s store.Store) (free func()) {
	t.Helper()
	var keys []string
	for size := 1 << 20; size > 0; size /= 4 {
		for {
			key := fmt.Sprintf("filler/%d", len(keys))
			if err := s.Put(t.Context(), key, make([]byte, size)); err != nil {
				break
			}
			keys = append(keys, key)
		}
	}
	return func() {
		for _, key := range keys {
			must(t, s.Delete(t.Context(), key))
		}
	}
}

// copied is what a store has of the archive.
func copied(t *testing.T, s store.Store) *memory {
	t.Helper()
	m := newMemory()
	for o, err := range s.List(t.Context(), prefix) {
		must(t, err)
		body, err := s.Get(t.Context(), o.Key)
		must(t, err)
		text, err := io.ReadAll(body)
		must(t, errors.Join(err, body.Close()))
		must(t, m.Create(t.Context(), o.Key, text))
	}
	return m
}

// TestAnS3StoreThatTakesNothingIsToldAndLosesNothing has the Shipper say why by the right name, and go on by
// itself when the store takes something again.
func TestAnS3StoreThatTakesNothingIsToldAndLosesNothing(t *testing.T) {
	for why, stop := range map[*store.Reason]func(dir string, s store.Store) (again func()){
		store.Full:         func(_ string, s store.Store) func() { return filled(t, s) },
		store.AccessDenied: func(dir string, _ store.Store) func() { return storetest.Deny(t, dir) },
	} {
		t.Run(why.Name, func(t *testing.T) {
			dir := storetest.SmallS3(t, "4m")
			s, err := store.Open(dir)
			must(t, err)
			l := newLogs(t)
			c := l.config(nil, 1)
			c.Store, c.TargetRPO = s, 200*time.Millisecond
			ship, err := NewShipper(c)
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- ship.Run(ctx) }()
			l.commit(1, 5)
			reaches(t, "the first are archived", func() bool { return ship.Status().Archived.Contains(l.executed) })
			again := stop(dir, s)
			before := l.executed
			l.commit(1, 50)
			reaches(t, "it says "+why.Name, func() bool { return errors.Is(ship.Status().Failure, why) })
			if now := ship.Status(); !now.Archived.Equal(before) || now.Oldest.IsZero() {
				t.Errorf("it takes nothing, and archived are %s: %+v", now.Archived, now)
			}
			l.rotate()
			l.commit(1, 50)
			again()
			reaches(t, "all is archived", func() bool { return ship.Status().Archived.Contains(l.executed) })
			cancel()
			must(t, <-ended)
			archivedOnce(t, copied(t, s), l.executed)
		})
	}
}

// reaches waits for what a Shipper comes to within a quarter of a minute.
func reaches(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(15 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within 15 s: %s", what)
		}
	}
}
