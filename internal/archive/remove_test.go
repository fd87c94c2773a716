package archive

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// shipped ships parts of one transaction each, and tells how many there are.
func shipped(t *testing.T, l *logs, m *memory, parts int) int64 {
	t.Helper()
	s := begin(t, l.config(m, 1))
	for range parts {
		l.commit(1, 1)
		settle()
	}
	must(t, s.end())
	return int64(len(loaded(t, m).Parts))
}

func keysTo(epoch, last int64) []facts.Span { return between(epoch, 1, last) }

// between are the parts from one to another.
func between(epoch, first, last int64) []facts.Span {
	return []facts.Span{{Epoch: epoch, First: first, Last: last}}
}

// TestABranchGoesOnWithoutItsBeginning: also while the listing does not have the last part,
// as long as it has the one before it.
func TestABranchGoesOnWithoutItsBeginning(t *testing.T) {
	story("with a listing that is behind", t, func(t *testing.T, l *logs, m *memory) {
		n := shipped(t, l, m, 5)
		removed, err := Remove(t.Context(), m, prefix, keysTo(1, n-2))
		must(t, err)
		if int64(removed) != n-2 || len(m.keys()) != 3 { // a branch and two parts
			t.Fatalf("%d removed, and left are %q", removed, m.keys())
		}
		m.hidden = func(key string) bool { return key == partKey(prefix, facts.Key{Epoch: 1, Sequence: n}) }
		before := l.executed
		s := begin(t, l.config(m, 1))
		l.commit(1, 1)
		settle()
		must(t, s.end())
		a := loaded(t, m)
		found := map[int64]gtid.Set{}
		for _, p := range a.Parts {
			found[p.Sequence] = p.GTIDs
		}
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []int64{n - 1, n, n + 1}) ||
			!found[n+1].Equal(l.executed.Subtract(before)) {
			t.Errorf("there are parts %v: %v", got, found)
		}
	})
}

func TestAPartThatCannotBeRemovedEndsTheRemoval(t *testing.T) {
	story("in order", t, func(t *testing.T, l *logs, m *memory) {
		n := shipped(t, l, m, 4)
		s := &stubborn{memory: m, key: partKey(prefix, facts.Key{Epoch: 1, Sequence: 3})}
		removed, err := Remove(t.Context(), s, prefix, keysTo(1, n))
		if removed != 2 || !errors.Is(err, errFault) {
			t.Errorf("%d are removed: %v", removed, err)
		}
		// two are gone already
		if removed, err := Remove(t.Context(), m, prefix, keysTo(1, 3)); removed != 3 || err != nil {
			t.Errorf("%d are removed: %v", removed, err)
		}
	})
}

// stubborn is a store that does not remove one object.
type stubborn struct {
	*memory
	key string
}

func (s *stubborn) Delete(ctx context.Context, key string) error {
	if key == s.key {
		return errFault
	}
	return s.memory.Delete(ctx, key)
}
