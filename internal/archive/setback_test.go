package archive

import (
	"errors"
	"os"
	"testing"
	"time"
)

// reset is what RESET BINARY LOGS AND GTIDS does to a server's logs.
func (l *logs) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.purge(len(l.names))
	l.number, l.next = 0, map[int64]int{}
	l.written, l.executed = ids(1, ""), ids(1, "")
	l.rotate()
}

// TestAServerThatWasSetBackIsNotArchived holds that who lacks what the archive has of its own epoch ships nothing,
// says of nothing that it is complete, and has no binary log purged.
func TestAServerThatWasSetBackIsNotArchived(t *testing.T) {
	story("from a snapshot, while nobody looked", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.commit(1, 10)
		settle()
		must(t, s.end())
		writes, said := m.written(), marked(t, m)

		back := newLogs(t)
		back.commit(1, 9)
		s = begin(t, marking(back, m))
		settle()
		back.commit(1, 3) // 10 once more, and more
		time.Sleep(time.Hour)
		if err := s.end(); !errors.Is(err, ServerSetBack) || m.written() != writes || s.Archived() != "" {
			t.Errorf("%v; %d writes were %d, and %q is needed", err, m.written(), writes, s.Archived())
		}
		if now := marked(t, m); said == nil || !now.Until.Equal(said.Until) {
			t.Errorf("it said %+v, and says %+v", said, now)
		}
		elsewhere := newMemory() // as its message advises
		s = begin(t, marking(back, elsewhere))
		back.commit(1, 2)
		settle()
		must(t, s.end())
		a, err := Load(t.Context(), elsewhere, prefix)
		if err != nil || len(a.Parts) != 1 || !a.Parts[0].GTIDs.Equal(ids(1, "13-14")) {
			t.Errorf("elsewhere are %+v (%v)", a.Parts, err)
		}
	})
}

// TestAServerThatIsSetBackWhileItIsArchived holds that the same is noticed of a server that is archived.
func TestAServerThatIsSetBackWhileItIsArchived(t *testing.T) {
	story("while it is archived: it writes on in logs that were reset", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.rotate()
		l.commit(1, 10)
		settle()
		writes := m.written()
		l.reset()
		l.commit(1, 3)
		settle()
		if err := s.end(); !errors.Is(err, ServerSetBack) || m.written() != writes || s.Archived() == l.names[0] {
			t.Errorf("%v; %d writes were %d, and %q is needed", err, m.written(), writes, s.Archived())
		}
	})
	story("its logs were reset, and the new one has the name of the old one", t,
		func(t *testing.T, l *logs, m *memory) {
			s := begin(t, l.config(m, 1))
			l.commit(1, 10)
			settle()
			writes := m.written()
			l.reset()
			l.commit(1, 3)
			settle()
			if err := s.end(); !errors.Is(err, ServerSetBack) || m.written() != writes {
				t.Errorf("%v; %d writes were %d", err, m.written(), writes)
			}
		})
}

// TestALaterLookAtASoundServer holds that what a server lacks is noticed within minutes, and that a log that was
// purged is no reset.
func TestALaterLookAtASoundServer(t *testing.T) {
	story("its executed set alone tells it", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.commit(1, 10)
		settle()
		l.mu.Lock()
		l.executed = ids(1, "1-9")
		l.mu.Unlock()
		time.Sleep(2 * time.Minute)
		if err := s.end(); !errors.Is(err, ServerSetBack) {
			t.Errorf("got %v", err)
		}
	})
	story("a log that was purged meanwhile is none", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, marking(l, m))
		l.commit(1, 10)
		settle()
		l.rotate()
		must(t, os.Remove(l.dir+"/"+l.names[0])) // the index names it still
		l.commit(1, 3)
		settle()
		l.purge(0)
		l.names = l.names[1:]
		l.writeIndex()
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
}
