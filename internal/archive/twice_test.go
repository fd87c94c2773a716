package archive

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// lateNotice has a server archive 1-10, lose 8-10 with its disk, and begin a log.
func lateNotice(t *testing.T, l *logs, m *memory) (back *logs) {
	t.Helper()
	s := begin(t, marking(l, m))
	l.commit(1, 7)
	time.Sleep(time.Second)
	back = l.snapshot()
	l.commit(1, 3)
	settle()
	must(t, s.end())
	archivedOnce(t, m, ids(1, "1-10"))
	back.rotate()
	return back
}

// refusesAll holds that a shipper ships nothing, says of nothing that it is complete, and has no binary log purged.
func refusesAll(t *testing.T, c Config, m *memory) {
	t.Helper()
	writes := m.written()
	s := begin(t, c)
	settle()
	time.Sleep(time.Hour)
	if err := s.end(); !errors.Is(err, ServerSetBack) || m.written() != writes || s.Archived() != "" {
		t.Errorf("%v; %d writes were %d, and %q is needed", err, m.written(), writes, s.Archived())
	}
}

// TestAServerThatHasGivenTheLostNumbersAgain holds that it is noticed although the server lacks none of the numbers
// when it is asked.
func TestAServerThatHasGivenTheLostNumbersAgain(t *testing.T) {
	story("in its epoch", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		back.commit(1, 5)
		refusesAll(t, marking(back, m), m)
		c := marking(back, m)
		c.Epoch = 2 // as after a failover to itself that comes later
		refusesAll(t, c, m)
		elsewhere := newMemory() // as the message advises
		s := begin(t, marking(back, elsewhere))
		back.commit(1, 2)
		settle()
		must(t, s.end())
		archivedOnce(t, elsewhere, ids(1, "13-14"))
	})
	story("at the same place of a log of the same name", t, func(t *testing.T, l *logs, m *memory) {
		l.commit(1, 7)
		back := l.snapshot()
		s := begin(t, marking(l, m))
		l.rotate()
		l.commit(1, 3)
		settle()
		must(t, s.end())
		back.rotate()
		back.commit(1, 5)
		refusesAll(t, marking(back, m), m)
	})
	story("in the middle of a transaction of many pieces", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		m.before = func(_ context.Context, key string) error {
			if key == partKey(prefix, facts.Key{Epoch: 1, Sequence: 4}) {
				return store.Unavailable
			}
			return nil
		}
		s := begin(t, marking(l, m))
		l.executed = l.executed.Union(l.write(1, 1, 35000))
		settle()
		must(t, s.end())
		m.before = nil
		back.commit(1, 5)
		refusesAll(t, marking(back, m), m)
	})
	story("while it is archived, in logs that were reset", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.commit(1, 10)
		settle()
		writes := m.written()
		l.reset()
		l.commit(1, 12)
		settle()
		if err := s.end(); !errors.Is(err, ServerSetBack) || m.written() != writes {
			t.Errorf("%v; %d writes were %d", err, m.written(), writes)
		}
	})
}

// TestANewEpochOfAServerThatWasSetBack holds that its branch goes on from what the server had at its promotion, and
// is not begun where that is not known any more.
func TestANewEpochOfAServerThatWasSetBack(t *testing.T) {
	story("some numbers are given again before it is archived", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		back.commit(1, 2)
		c := marking(back, m)
		c.Epoch = 2
		refusesAll(t, c, m)
	})
	story("some are, and what is behind them stands in another part", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		s := begin(t, marking(l, m))
		for range 40 { // so many parts
			l.commit(1, 1)
			settle()
		}
		must(t, s.end())
		c := marking(back, m)
		c.Epoch = 2
		must(t, begin(t, c).end()) // nothing was given again; it is as if nobody had begun
		delete(m.objects, branchKey(prefix, 2))
		back.commit(1, 20)
		c = marking(back, m)
		c.Epoch = 2
		refusesAll(t, c, m)
	})
	story("none is", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		c := marking(back, m)
		c.Epoch = 2
		back.commit(1, 2) // later than the start was read
		s := begin(t, c)
		back.commit(1, 3)
		settle()
		must(t, s.end())
		a := loaded(t, m)
		plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, facts.Target{})
		must(t, err)
		if n := len(plan.Steps); n != 2 || !plan.Steps[0].Take.Equal(ids(1, "1-7")) ||
			!plan.Steps[1].Take.Equal(ids(1, "8-12")) || plan.Steps[1].Pieces[0].Epoch != 2 {
			t.Errorf("a restore takes %+v", plan.Steps)
		}
		if lost := lostOf(t, m, a); len(lost) != 1 || !lost[0].GTIDs.Equal(ids(1, "8-10")) {
			t.Errorf("lost are %+v", lost)
		}
		must(t, begin(t, c).end())
	})
	story("it was begun, and has no part yet", t, func(t *testing.T, l *logs, m *memory) {
		back := lateNotice(t, l, m)
		c := marking(l, m)
		c.Epoch = 2
		must(t, begin(t, c).end())
		back.commit(1, 5)
		c = marking(back, m)
		c.Epoch = 2
		refusesAll(t, c, m)
	})
}

// TestASoundServerIsNotTakenForOneThatWasSetBack holds that nothing but a number that was given twice is one.
func TestASoundServerIsNotTakenForOneThatWasSetBack(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, l, back *logs) *logs{
		"it is started again": func(_ *testing.T, l, _ *logs) *logs {
			l.rotate()
			return l
		},
		"its logs are purged": func(_ *testing.T, l, _ *logs) *logs {
			l.rotate()
			l.rotate()
			l.purge(2)
			return l
		},
		"its log is gone, and the index names it": func(t *testing.T, l, _ *logs) *logs {
			l.rotate()
			must(t, os.Remove(l.dir+"/"+l.names[0]))
			return l
		},
		"its logs were begun anew with its data, as of a copy": func(_ *testing.T, l, _ *logs) *logs {
			l.purge(len(l.names))
			l.number, l.written = 0, ids(1, "")
			l.rotate()
			return l
		},
		"it has received what it had lost": func(_ *testing.T, _, back *logs) *logs {
			back.origin = time.Now().Add(-15 * time.Second)
			back.commit(1, 3)
			back.origin = time.Time{}
			return back
		},
	} {
		for _, epoch := range []int64{1, 2} {
			story(name, t, func(t *testing.T, l *logs, m *memory) {
				l = change(t, l, lateNotice(t, l, m))
				c := marking(l, m)
				c.Epoch = epoch
				for range 2 {
					s := begin(t, c)
					l.commit(1, 2)
					settle()
					must(t, s.end())
				}
				archivedOnce(t, m, ids(1, "1-14"))
			})
		}
	}
}
