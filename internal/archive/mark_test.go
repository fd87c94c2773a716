package archive

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// marked is the mark that a restore finds.
func marked(t *testing.T, m *memory) *facts.Mark {
	t.Helper()
	a, err := Load(t.Context(), m, prefix)
	must(t, err)
	return a.Mark
}

func marking(l *logs, m *memory) Config {
	c := l.config(m, 1)
	c.Marks = true
	return c
}

func TestMarks(t *testing.T) {
	story("one object, written once a minute while nothing is", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.commit(1, 3)
		settle()
		writes, asked := m.written(), l.questions()
		time.Sleep(time.Hour)
		if n := m.written() - writes; n < 50 || n > 60 || l.questions()-asked > 60 {
			t.Errorf("%d writes and %d questions in an hour", n, l.questions()-asked)
		}
		said := s.Status().CompleteUntil
		must(t, s.end())
		got := marked(t, m)
		if got != nil && !got.Until.Equal(said) {
			t.Errorf("the store says %s, and the status %s", got.Until, said)
		}
		if got == nil || time.Since(got.Until) > 2*time.Minute || !got.Executed.Equal(l.executed) {
			t.Fatalf("it says %+v", got)
		}
		a := archivedOnce(t, m, l.executed)
		plan, err := NewPlace(m, prefix, seal.Key{}).Choose(t.Context(), &a,
			facts.Base{Epoch: 1}, facts.Target{Kind: facts.ToTime, Time: got.Until})
		must(t, err)
		if !plan.Set.Equal(l.executed) {
			t.Errorf("a restore to then holds %s", plan.Set)
		}
	})
	story("nothing is said of what is not archived", t, func(t *testing.T, l *logs, m *memory) {
		c := marking(l, m)
		c.TargetRPO = time.Hour
		s := begin(t, c)
		said := marked(t, m)
		time.Sleep(2 * time.Hour)
		l.commit(1, 3) // which waits for an hour
		time.Sleep(time.Minute)
		before := marked(t, m)
		time.Sleep(50 * time.Minute)
		if now := marked(t, m); said == nil || !now.Until.Equal(before.Until) {
			t.Errorf("at first %+v, and %+v became %+v", said, before, now)
		}
		must(t, s.end())
	})
}

func TestMarksThatAreNotWritten(t *testing.T) {
	story("a store that does not take it is told, and parts go on", t, func(t *testing.T, l *logs, m *memory) {
		var back atomic.Bool
		m.before = func(_ context.Context, key string) error {
			if key == markKey(prefix, 1) && !back.Load() {
				return store.AccessDenied
			}
			return nil
		}
		s := begin(t, marking(l, m))
		time.Sleep(5 * time.Minute)
		if is := s.Status(); is.Failure == nil || !is.CompleteUntil.IsZero() {
			t.Errorf("nobody hears of it: %+v", is)
		}
		back.Store(true)
		time.Sleep(2 * time.Minute)
		if err := s.Status().Failure; err != nil || marked(t, m) == nil {
			t.Errorf("the store takes it again, and it says %v", err)
		}
		back.Store(false)
		l.commit(1, 3)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
}

func TestAMarkIsKnown(t *testing.T) {
	for key, want := range map[string]bool{markKey(prefix, 3): true, prefix + "3/complete.json": false,
		prefix + "complete.json": false, markKey(prefix, 3) + ".bak": false} {
		if Known(prefix, key) != want {
			t.Errorf("%s is known: %t", key, !want)
		}
	}
}
