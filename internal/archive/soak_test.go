package archive

import (
	"context"
	"errors"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// TestAnythingThatHappens: whatever a random hour brings (writes of all sizes, rotation,
// faults of the store, lies of its listing, objects that it does not find for a moment, restarts,
// merges), all that was executed is archived,
// once and in order.
func TestAnythingThatHappens(t *testing.T) {
	inSmallPieces(t)
	merged := 0
	for seed := range int64(40) {
		story("", t, func(t *testing.T, l *logs, m *memory) {
			random, dice := rand.New(rand.NewSource(seed)), &dice{random: rand.New(rand.NewSource(seed))}
			unreliable(m, dice)
			c := l.config(m, 1)
			c.IndexEvery = 4
			s := begin(t, c)
			for range 60 {
				switch random.Intn(8) {
				case 0:
					l.rotate()
				case 1:
					must(t, s.end())
					s = begin(t, c)
				case 2:
					l.execute()
				case 3:
					time.Sleep(61 * time.Minute)
					merged += mergedUntil(t, m, time.Minute)
				case 4:
					l.write(1, 1, random.Intn(40000))
				default:
					l.write(1, 1+random.Intn(30), random.Intn(1000))
				}
				time.Sleep(time.Duration(random.Intn(20)) * time.Second)
			}
			dice.lay()
			l.execute()
			time.Sleep(10 * time.Minute)
			must(t, s.end())
			allInOrder(t, l, m)
			t.Logf("seed %d", seed)
		})
	}
	if merged == 0 {
		t.Error("no part was ever removed because a bundle holds it")
	}
}

// unreliable has a store fail, hang, and lie about what is there.
func unreliable(m *memory, dice *dice) {
	m.before = func(ctx context.Context, _ string) error {
		switch n := dice.throw(10); {
		case n == 0:
			<-ctx.Done()
			return ctx.Err()
		case n > 0 && n < 4:
			return errFault
		}
		return nil
	}
	m.after = func(string) error {
		if dice.throw(4) == 0 {
			return errFault
		}
		return nil
	}
	isNew := func(key string) bool { return time.Since(m.object(key).Modified) < time.Hour }
	m.hidden = func(key string) bool {
		_, isBundle := readBundleKey(prefix, key)
		return isNew(key) && (isBundle || strings.HasSuffix(key, partSuffix)) && dice.throw(3) == 0
	}
	m.absent = func(key string) bool { return !isNew(key) && dice.throw(8) == 0 }
}

// mergedUntil merges as far as the store, which may answer nothing, lets it for a time, and tells how
// many objects that removed.
func mergedUntil(t *testing.T, m *memory, limit time.Duration) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	done, err := Merge(ctx, m, prefix, time.Now())
	isOfStore := errors.Is(err, errFault) || errors.Is(err, store.NotFound) || ctx.Err() != nil
	if err != nil && !isOfStore || len(done.Damaged) > 0 {
		t.Errorf("%v, %v", err, done.Damaged)
	}
	return done.Removed
}

// allInOrder: what was written is archived, and replayed in the order of the log.
func allInOrder(t *testing.T, l *logs, m *memory) {
	t.Helper()
	a := archivedOnce(t, m, l.written)
	plan, err := place(m).Choose(t.Context(), &a, facts.Base{Epoch: 1}, facts.Target{})
	if err != nil || !plan.Set.Equal(l.written) {
		t.Errorf("%s, %v", plan.Set, err)
	}
	inOrder(t, m, plan)
}

// inOrder: the replay of a plan has the order of the log.
func inOrder(t *testing.T, m *memory, plan facts.Plan) {
	t.Helper()
	seen := ids(1, "")
	for _, step := range plan.Steps {
		list, err := place(m).transactions(t.Context(), step.Pieces)
		must(t, err)
		for _, x := range list {
			seen = seen.Union(x.ID)
			if !seen.Holes().IsEmpty() {
				t.Fatalf("%s comes too early", x.ID)
			}
		}
	}
}

// execute all that is written.
func (l *logs) execute() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executed = l.written
}

// dice are thrown by a store.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
	calm   bool
}

// throw a number below n; -1 when no more is thrown.
func (d *dice) throw(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calm {
		return -1
	}
	return d.random.Intn(n)
}

func (d *dice) lay() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calm = true
}
