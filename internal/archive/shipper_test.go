package archive

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

func (l *logs) config(m *memory, epoch int64) Config {
	return Config{Store: m, Prefix: prefix, Cluster: "uid", Epoch: epoch, Instance: "i",
		ServerUUID: uuidOf(epoch), Start: l.executed,
		Index: l.index(), May: allowed, TargetRPO: 10 * time.Second, MaxBytes: 10000,
		Executed: func(context.Context) (gtid.Set, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.asked++
			return l.executed, nil
		}}
}

// running is a Shipper that runs.
type running struct {
	*Shipper
	t      *testing.T
	cancel func()
	ended  chan error
}

func begin(t *testing.T, c Config) *running {
	t.Helper()
	s, err := NewShipper(c)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{s, t, cancel, make(chan error, 1)}
	go func() { r.ended <- s.Run(ctx) }()
	synctest.Wait()
	return r
}

// end it, and tell how it ended.
func (r *running) end() error {
	r.cancel()
	return <-r.ended
}

// settle waits until all is shipped that has to be.
func settle() {
	time.Sleep(15 * time.Second)
	synctest.Wait()
}

func story(name string, t *testing.T, tell func(t *testing.T, l *logs, m *memory)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { tell(t, newLogs(t), newMemory()) })
	})
}

// TestShipper holds that what is executed is archived, all of it, and each transaction once.
func TestShipper(t *testing.T) {
	story("ships what is executed, across logs, each once", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		for range 5 {
			l.commit(1, 70)
			l.rotate()
			time.Sleep(time.Second)
		}
		l.commit(1, 3)
		settle()
		must(t, s.end())
		a := archivedOnce(t, m, l.executed)
		if len(a.Parts) < 6 || s.Archived() != "binlog.000006" || s.Status().Pending.Bytes != 0 {
			t.Errorf("%d parts, %+v", len(a.Parts), s.Status())
		}
	})
	story("what is not executed stays", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		held := l.commit(1, 3)
		l.write(1, 2, 100)
		settle()
		archivedOnce(t, m, held)
		if !s.Status().Oldest.IsZero() || s.Status().Pending.Bytes == 0 {
			t.Errorf("%+v", s.Status())
		}
		l.execute()
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
	story("half an event is waited for", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.commit(1, 1)
		next := l.transaction(ids(1, "2"), 500)
		l.written = ids(1, "1-2")
		l.execute()
		for _, b := range [][]byte{next[:10], next[10:50], next[50:300], next[300:]} {
			l.append(b)
			settle()
		}
		must(t, s.end())
		archivedOnce(t, m, ids(1, "1-2"))
	})
	story("the archive begins with the promotion", t, func(t *testing.T, l *logs, m *memory) {
		old := l.commit(1, 5)
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		settle()
		must(t, s.end())
		a := archivedOnce(t, m, l.executed.Subtract(old))
		if !a.Branches[0].Held.Equal(old) || !a.Parts[0].Before.Equal(old) {
			t.Errorf("%+v", a)
		}
	})
}

// TestShipperAndTime holds when a transaction leaves: neither too late, nor one by one.
func TestShipperAndTime(t *testing.T) {
	story("writes nothing and asks nothing while nothing is written", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.commit(1, 1)
		settle()
		writes, asked := m.written(), l.questions()
		time.Sleep(time.Hour)
		l.rotate()
		time.Sleep(time.Hour)
		must(t, s.end())
		if m.written() != writes || writes != 2 || l.questions() != asked {
			t.Errorf("%d writes and %d questions became %d and %d", writes, asked, m.written(), l.questions())
		}
	})
	story("a transaction leaves before it is too old, and not at once", t, func(t *testing.T, l *logs, m *memory) {
		c := l.config(m, 1)
		c.TargetRPO = 300 * time.Second
		s := begin(t, c)
		l.commit(1, 1)
		time.Sleep(290 * time.Second)
		if m.written() != 1 || s.Status().RPO(time.Now()) < 289*time.Second {
			t.Errorf("after 290 s there are %d objects, %+v", m.written(), s.Status())
		}
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if m.written() != 2 || s.Status().RPO(time.Now()) != 0 {
			t.Errorf("after 299 s there are %d objects, %+v", m.written(), s.Status())
		}
		must(t, s.end())
	})
	story("a clock that went back delays nothing", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.ahead = time.Hour
		l.commit(1, 1)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
	})
}

// TestShipperAndGaps holds that what a purge or a listing hides is read all the same, or told.
func TestShipperAndGaps(t *testing.T) {
	story("goes on after a restart, whatever a listing knows", t, func(t *testing.T, l *logs, m *memory) {
		m.hidden = func(key string) bool {
			return strings.HasSuffix(key, "2"+partSuffix) || strings.HasSuffix(key, "3"+partSuffix)
		}
		for range 4 {
			s := begin(t, l.config(m, 1))
			l.commit(1, 5)
			settle()
			must(t, s.end())
		}
		if a := archivedOnce(t, m, l.executed); len(a.Parts) != 4 {
			t.Errorf("%d parts", len(a.Parts))
		}
	})
	story("a log that is purged while it is read is read to its end", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		time.Sleep(2 * time.Second)
		l.commit(1, 5)
		l.rotate()
		l.purge(1)
		l.commit(1, 5)
		settle()
		must(t, s.end())
		archivedOnce(t, m, l.executed)
		if !s.Status().Missing.IsEmpty() {
			t.Errorf("%+v", s.Status())
		}
	})
	story("what was purged is told, and the branch goes on", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.commit(1, 5)
		settle()
		must(t, s.end())
		l.rotate()
		l.commit(1, 5)
		l.rotate()
		l.commit(1, 5)
		l.purge(2)
		s = begin(t, l.config(m, 1))
		settle()
		must(t, s.end())
		gap := ids(1, "6-10")
		a := archivedOnce(t, m, l.executed.Subtract(gap))
		if !s.Status().Missing.Equal(gap) || !a.Parts[1].Missing.Equal(gap) {
			t.Errorf("%+v, %+v", s.Status(), a.Parts)
		}
		var refusal *facts.Refusal
		_, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, facts.Target{})
		if !errors.As(err, &refusal) || refusal.Reason != facts.ArchiveGap || !refusal.GTIDs.Equal(gap) {
			t.Errorf("got %v", err)
		}
		plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1, End: ids(1, "1-12")}, facts.Target{})
		if err != nil || !plan.Set.Equal(l.executed) {
			t.Errorf("got %v, %v", plan, err)
		}
	})
}

func TestALargeTransactionIsCutIntoPieces(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		failing := false
		m.before = func(_ context.Context, key string) error {
			if failing && strings.HasSuffix(key, "4"+partSuffix) {
				return store.Unavailable
			}
			return nil
		}
		failing = true
		c := l.config(m, 1)
		s := begin(t, c)
		l.commit(1, 3)
		l.executed = l.executed.Union(l.write(1, 1, 35000))
		l.commit(1, 3)
		settle()
		must(t, s.end()) // in the middle of it; the pieces that there are remain
		failing = false
		s = begin(t, c)
		settle()
		must(t, s.end())
		a := archivedOnce(t, m, l.executed)
		plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1},
			facts.Target{Kind: facts.ToGTIDs, GTIDs: ids(1, "5")})
		must(t, err)
		if !plan.Set.Equal(ids(1, "1-5")) || len(plan.Steps) != 3 || len(plan.Steps[1].Pieces) != 4 {
			t.Fatalf("%+v", plan)
		}
		path := t.TempDir() + "/relay"
		r := Replay{Place: place(m)}
		size, _, err := r.write(t.Context(), path, plan.Steps[1])
		must(t, err)
		raw, err := os.ReadFile(path)
		must(t, err)
		if size != int64(len(raw)) || size < 35000 {
			t.Errorf("%d of %d bytes", len(raw), size)
		}
		must(t, check(raw, 1))
	})
}

func TestAPartThatIsDamagedIsRefused(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		s := begin(t, l.config(m, 1))
		l.commit(1, 50)
		settle()
		must(t, s.end())
		a := archivedOnce(t, m, l.executed)
		key := partKey(prefix, a.Parts[0].Key())
		whole := m.objects[key]
		for _, n := range []int{0, 5, 100, len(whole) / 2, len(whole) - 1} {
			m.objects[key] = whole[:n]
			if _, err := place(m).transactions(t.Context(), a.Parts[:1]); err == nil {
				t.Errorf("cut after %d bytes it is read", n)
			}
		}
		unused := 0 // bits of zstd's that mean nothing
		for n := range len(whole) {
			flipped := append([]byte{}, whole...)
			flipped[n] ^= 4
			m.objects[key] = flipped
			list, err := place(m).transactions(t.Context(), a.Parts[:1])
			if err == nil {
				unused++
			}
			if err == nil && len(list) != int(a.Parts[0].Transactions) {
				t.Errorf("with byte %d flipped it is read as %d transactions", n, len(list))
			}
		}
		if unused > 5 {
			t.Errorf("%d flipped bits are not noticed", unused)
		}
	})
}

// TestAFailover holds that the new primary archives what the former one had not, and that what it
// did not receive is kept apart.
func TestAFailover(t *testing.T) {
	story("", t, func(t *testing.T, former *logs, m *memory) {
		s := begin(t, former.config(m, 1))
		former.commit(1, 10)
		settle()
		former.commit(1, 2) // these are received, and not archived
		must(t, s.end())
		successor := newLogs(t)
		successor.commit(1, 12)
		s = begin(t, successor.config(m, 3))
		successor.commit(3, 5)
		settle()
		must(t, s.end())

		a, err := Load(t.Context(), m, prefix)
		must(t, err)
		plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, facts.Target{})
		if err != nil || !plan.Set.Equal(successor.executed) {
			t.Fatalf("%s, %v", plan.Set, err)
		}
		if lost := lostOf(t, m, a); len(lost) != 0 {
			t.Errorf("lost are %+v", lost)
		}
		third := newLogs(t)
		third.commit(1, 12)
		third.commit(3, 2)
		s = begin(t, third.config(m, 4))
		third.commit(4, 2)
		settle()
		must(t, s.end())
		a, err = Load(t.Context(), m, prefix)
		must(t, err)
		plan, err = place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, facts.Target{})
		if err != nil || !plan.Set.Equal(third.executed) {
			t.Fatalf("%s, %v", plan.Set, err)
		}
		if lost := lostOf(t, m, a); len(lost) != 1 || !lost[0].GTIDs.Equal(ids(3, "3-5")) {
			t.Errorf("lost are %+v", lost)
		}
	})
}
