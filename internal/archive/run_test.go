package archive

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// expanded is an archive of which each part is known.
func expanded(t testing.TB, s store.Store, a facts.Archive) facts.Archive {
	t.Helper()
	at := NewPlace(s, prefix, seal.Key{})
	for _, p := range slices.Clone(a.Parts) {
		if p.IsRun() {
			must(t, at.expand(t.Context(), &a, p))
		}
	}
	return a
}

// loaded is all that a store holds, each part by itself.
func loaded(t testing.TB, s store.Store) facts.Archive {
	t.Helper()
	a, err := Load(t.Context(), s, prefix)
	must(t, err)
	return expanded(t, s, a)
}

// lostOf is what failovers lost.
func lostOf(t testing.TB, m *memory, a facts.Archive) []facts.LostBranch {
	t.Helper()
	lost, err := place(m).Lost(t.Context(), &a)
	must(t, err)
	return lost
}

// planned is what Choose makes of what a store holds, part by part.
func planned(t testing.TB, m *memory, a *facts.Archive, target facts.Target) (steps []facts.Step) {
	t.Helper()
	at := place(m)
	plan, err := at.Choose(t.Context(), a, facts.Base{Epoch: 1, End: ids(1, "1-3")}, target)
	must(t, err)
	for step, err := range at.steps(t.Context(), plan.Steps) {
		must(t, err)
		steps = append(steps, step)
	}
	return steps
}

// TestARunIsReadFromWhereItsPartsLie: a bundle may be damaged or gone once it was listed, and what
// it holds may lie beside it.
func TestARunIsReadFromWhereItsPartsLie(t *testing.T) {
	bundle := bundleKey(prefix, facts.Bundle{Epoch: 1, First: 1, Last: 39})
	targets := []facts.Target{{}, {Kind: facts.ToGTIDs, GTIDs: ids(1, "20")},
		{Kind: facts.BeforeGTIDs, GTIDs: ids(1, "40")}}
	gone := func(t *testing.T, m *memory) { must(t, m.Delete(t.Context(), bundle)) }
	for name, change := range map[string]func(t *testing.T, m *memory){
		"beside it":                              func(*testing.T, *memory) {},
		"nowhere else":                           func(t *testing.T, m *memory) { merged(t, m) },
		"beside it, and it is gone":              gone,
		"beside it, and it is damaged":           func(_ *testing.T, m *memory) { flip(m, bundle, 20) },
		"beside it, and a part of it is damaged": func(_ *testing.T, m *memory) { flip(m, bundle, -1) },
	} {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			indexing(t, l, m, 40)
			before := loaded(t, m)
			merged(t, m)
			a, err := Load(t.Context(), m, prefix)
			must(t, err)
			if len(a.Parts) != 2 || !a.Parts[0].IsRun() {
				t.Fatalf("there is no run: %+v", a.Parts)
			}
			change(t, m)
			for _, target := range targets {
				now := facts.Archive{Branches: a.Branches, Parts: slices.Clone(a.Parts)}
				want, got := planned(t, m, &before, target), planned(t, m, &now, target)
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%+v: %+v, not %+v", target, got, want)
				}
			}
		})
	}
}

// TestARunIsNotGuessed: its parts are gone, or are others than they were.
func TestARunIsNotGuessed(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 40)
		merged(t, m)
		merged(t, m)
		a, err := Load(t.Context(), m, prefix)
		must(t, err)
		run := a.Parts[0]
		if _, err := place(m).open(t.Context(), run); !errors.Is(err, errRun) {
			t.Errorf("a run is opened: %v", err)
		}
		other := run
		other.Transactions++
		if err := place(m).expand(t.Context(), &a, other); err == nil || !a.Parts[0].IsRun() {
			t.Errorf("other parts take its place: %v, %d parts", err, len(a.Parts))
		}
		must(t, m.Delete(t.Context(), bundleKey(prefix, facts.Bundle{Epoch: 1, First: 1, Last: 39})))
		if err := place(m).expand(t.Context(), &a, run); !errors.Is(err, store.NotFound) || !a.Parts[0].IsRun() {
			t.Errorf("nothing is there: %v, %d parts", err, len(a.Parts))
		}
	})
}

// TestBundlesThatOverlapAreNoRuns: each part is known once, by itself.
func TestBundlesThatOverlapAreNoRuns(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 40)
		before := loaded(t, m)
		c, err := newCompressor()
		must(t, err)
		for _, span := range []facts.Span{{First: 1, Last: 20}, {First: 15, Last: 30}, {First: 31, Last: 39}} {
			var parts []entry
			var objects [][]byte
			for n := span.First; n <= span.Last; n++ {
				key := facts.Key{Epoch: 1, Sequence: n}
				object := m.objects[partKey(prefix, key)]
				e, err := checkObject(object, key)
				must(t, err)
				parts, objects = append(parts, e), append(objects, object)
			}
			object, err := c.bundleOf(parts, objects)
			must(t, err)
			b := facts.Bundle{Epoch: 1, First: span.First, Last: span.Last}
			must(t, m.Put(t.Context(), bundleKey(prefix, b), object))
		}
		a, err := Load(t.Context(), m, prefix)
		must(t, err)
		if n := len(a.Parts); n != 30+1+1 {
			t.Errorf("%d parts and runs", n)
		}
		if now := expanded(t, m, a); !reflect.DeepEqual(now, before) {
			t.Errorf("found %+v, not %+v", now, before)
		}
	})
}
