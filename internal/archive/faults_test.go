package archive

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
)

// TestShipperAndAStoreThatFails holds that what did not arrive is written again, and once.
func TestShipperAndAStoreThatFails(t *testing.T) {
	story("a store that fails is tried again", t, func(t *testing.T, l *logs, m *memory) {
		n := 0
		m.before = func(context.Context, string) error {
			if n++; n%4 != 0 {
				return errFault
			}
			return nil
		}
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		settle()
		l.commit(1, 5)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
		if !errors.Is(s.Status().Failure, errFault) {
			t.Errorf("%+v", s.Status())
		}
	})
	story("a store that stalls is given up, told, and tried again", t, func(t *testing.T, l *logs, m *memory) {
		stalls := 2
		m.before = func(ctx context.Context, key string) error {
			if strings.HasSuffix(key, partSuffix) && stalls > 0 {
				stalls--
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		time.Sleep(3 * time.Minute)
		if got := s.Status(); got.RPO(time.Now()) < 170*time.Second || got.Failure == nil ||
			!strings.HasPrefix(got.Failure.Error(), "for 2m0s nothing came from the store, and it took nothing of an") {
			t.Errorf("%+v", got)
		}
		time.Sleep(2 * time.Minute)
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
	story("an answer that does not come is no conflict", t, func(t *testing.T, l *logs, m *memory) {
		lost := 2
		m.after = func(string) error {
			if lost > 0 {
				lost--
				return errFault
			}
			return nil
		}
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		settle()
		l.commit(1, 5)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
}

// TestShipperAndAFaultThatEnds holds that shipping goes on once the other side answers again.
func TestShipperAndAFaultThatEnds(t *testing.T) {
	story("what a store did not say at first is over once it does", t, func(t *testing.T, l *logs, m *memory) {
		var back atomic.Bool
		m.before = func(context.Context, string) error {
			if !back.Load() {
				return errFault
			}
			return nil
		}
		c := l.config(m, 1)
		c.TargetRPO = time.Hour
		s := begin(t, c)
		time.Sleep(time.Minute)
		if got := s.Status(); got.Failure == nil || !got.PassedAt.IsZero() {
			t.Errorf("while it is away: %+v", got)
		}
		back.Store(true)
		time.Sleep(time.Minute)
		l.commit(1, 3) // which wait for an hour
		settle()
		if got := s.Status(); got.Oldest.IsZero() || !got.PassedAt.After(got.FailedAt) {
			t.Errorf("once it is back: %+v", got)
		}
		must(t, s.end())
	})
	story("a server that does not answer is asked again", t, func(t *testing.T, l *logs, m *memory) {
		c := l.config(m, 1)
		var up atomic.Bool
		c.Executed = func(context.Context) (gtid.Set, error) {
			if !up.Load() {
				return gtid.Set{}, errors.New("gone away")
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.executed, nil
		}
		s := begin(t, c)
		l.commit(1, 5)
		settle()
		up.Store(true)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
}

// TestShipperAndOtherWriters holds that shipping ends before it mixes what others write.
func TestShipperAndOtherWriters(t *testing.T) {
	story("another content under its name is", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		c, err := newCompressor()
		must(t, err)
		foreign := facts.Part{Format: facts.Format, Epoch: 1, Sequence: 1, Cluster: "uid", ServerUUID: "somebody"}
		object, err := c.object(&foreign, []byte("x"), seal.Key{})
		must(t, err)
		must(t, m.Put(t.Context(), partKey(prefix, foreign.Key()), object))
		l.commit(1, 5)
		settle()
		if err := s.end(); !errors.Is(err, PartConflict) {
			t.Errorf("got %v", err)
		}
	})
	story("who loses the promotion between cut and write does not write", t, func(t *testing.T, l *logs, m *memory) {
		held := true
		c := l.config(m, 1)
		c.May = func(context.Context) error {
			if !held {
				return errors.New("no")
			}
			return nil
		}
		m.before = func(_ context.Context, key string) error {
			if strings.HasSuffix(key, partSuffix) {
				held = false // and then this attempt fails
				return errFault
			}
			return nil
		}
		s := begin(t, c)
		l.commit(1, 5)
		settle()
		m.before = nil
		settle()
		if err := s.end(); !errors.Is(err, PromotionNotHeld) || m.written() != 1 {
			t.Errorf("%d writes, %v", m.written(), err)
		}
	})
	story("another cluster's archive, and another server's branch", t, func(t *testing.T, l *logs, m *memory) {
		must(t, begin(t, l.config(m, 1)).end())
		other, later := l.config(m, 1), l.config(m, 2)
		other.ServerUUID, later.Cluster = "x", "y"
		if err := begin(t, other).end(); !errors.Is(err, BranchTaken) {
			t.Errorf("got %v", err)
		}
		if err := begin(t, later).end(); !errors.Is(err, ForeignArchive) {
			t.Errorf("got %v", err)
		}
		must(t, begin(t, l.config(m, 4)).end())
		if err := begin(t, l.config(m, 3)).end(); !errors.Is(err, PromotionNotHeld) {
			t.Errorf("got %v", err)
		}
	})
}

// TestADamagedLogIsToldByName holds that shipping ends at a log that cannot be read, and says which.
func TestADamagedLogIsToldByName(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		bad := l.transaction(ids(1, "1"), 500)
		bad[200] ^= 1
		l.append(bad)
		l.written = ids(1, "1")
		l.execute()
		settle()
		if err := s.end(); !errors.Is(err, LogUnreadable) || m.written() != 1 {
			t.Errorf("%d writes, %v", m.written(), err)
		}
	})
}
