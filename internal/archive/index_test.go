package archive

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync"
	"testing"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// counting counts what is read, by whether it is an index.
type counting struct {
	store.Store
	fails bool

	mu             sync.Mutex
	heads, indexes int
}

func (c *counting) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, is := readIndexKey(prefix, key); is {
		c.indexes++
		if c.fails {
			return nil, errFault
		}
	} else if k, is := readKey(prefix, key); is && k.Sequence > 0 {
		c.heads++
	}
	return c.Store.Get(ctx, key)
}

// indexing ships parts of one transaction each, of which every third is followed by an index.
func indexing(t *testing.T, l *logs, m *memory, parts int) {
	t.Helper()
	c := l.config(m, 1)
	c.IndexEvery = 3
	s := begin(t, c)
	for range parts {
		l.commit(1, 1)
		settle()
	}
	must(t, s.end())
}

// withoutIndexes is what is found when there are none.
func withoutIndexes(t *testing.T, m *memory) facts.Archive {
	t.Helper()
	plain := newMemory()
	for key, object := range m.objects {
		if _, is := readIndexKey(prefix, key); !is {
			plain.objects[key] = object
		}
	}
	return loaded(t, plain)
}

func TestAnIndexSavesTheReadingOfItsParts(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 8)
		want := withoutIndexes(t, m)
		if len(want.Parts) != 8 {
			t.Fatalf("there are %d parts", len(want.Parts))
		}
		c := &counting{Store: m}
		got, err := Load(t.Context(), c, prefix)
		must(t, err)
		// The two behind the last index, and what might come behind them.
		indexes, heads := c.indexes, c.heads
		if got = expanded(t, c, got); indexes != 2 || heads != 3 || !reflect.DeepEqual(got, want) {
			t.Errorf("%d indexes and %d heads are read; found\n%+v, not\n%+v", indexes, heads, got, want)
		}
		if c.indexes != 4 || c.heads != 5 {
			t.Errorf("%d indexes and %d heads are read to know the parts of a run, too", c.indexes, c.heads)
		}
		for _, key := range m.keys() {
			if !Known(prefix, key) {
				t.Errorf("%s is not known", key)
			}
		}
	})
}

// TestAnIndexThatIsOfNoUseIsDoneWithout: what is found is the same, as long as the store answers.
func TestAnIndexThatIsOfNoUseIsDoneWithout(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 6)
		want := withoutIndexes(t, m)
		first := indexKey(prefix, facts.Key{Epoch: 1, Sequence: 3})
		second := indexKey(prefix, facts.Key{Epoch: 1, Sequence: 6})
		whole := m.objects[first]
		for name, body := range map[string][]byte{"empty": nil, "cut": whole[:len(whole)-5],
			"not zstd": []byte("<html>"),
			"changed":  append(slices.Clone(whole[:20]), append([]byte{whole[20] ^ 1}, whole[21:]...)...),
			"another":  m.objects[second]} {
			m.objects[first] = body
			c := &counting{Store: m}
			got, err := Load(t.Context(), c, prefix)
			must(t, err)
			heads := c.heads
			if got = expanded(t, c, got); heads != 4 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d heads are read; found\n%+v, not\n%+v", name, heads, got, want)
			}
		}
		m.objects[first] = whole
		if _, err := Load(t.Context(), &counting{Store: m, fails: true}, prefix); !errors.Is(err, errFault) {
			t.Errorf("a store that does not answer: %v", err)
		}
	})
}

// TestAPartThatIsNotAsItsIndexSaysIsRead: of another size, or gone.
func TestAPartThatIsNotAsItsIndexSaysIsRead(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 6)
		cut := partKey(prefix, facts.Key{Epoch: 1, Sequence: 2})
		gone := partKey(prefix, facts.Key{Epoch: 1, Sequence: 4})
		m.objects[cut] = m.objects[cut][:20]
		delete(m.objects, gone)
		got := loaded(t, m)
		if len(got.Parts) != 4 || len(got.Unreadable) != 1 || got.Unreadable[0].Key.Sequence != 2 {
			t.Errorf("%d parts, and %+v", len(got.Parts), got.Unreadable)
		}
	})
}

// indexesIn are those that a store lists.
func indexesIn(t *testing.T, m *memory) (all []facts.Key) {
	t.Helper()
	for piece, err := range listPieces(t.Context(), m, prefix, prefix) {
		must(t, err)
		all = append(all, piece.indexes...)
	}
	return all
}

// TestAManagerThatStartsInABlockLeavesItsIndexOut: it does not know of all parts of it.
func TestAManagerThatStartsInABlockLeavesItsIndexOut(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 2)
		indexing(t, l, m, 5)
		want := withoutIndexes(t, m)
		if all := indexesIn(t, m); len(all) != 1 || all[0].Sequence != 6 {
			t.Errorf("there are indexes %+v", all)
		}
		if got := loaded(t, m); !reflect.DeepEqual(got, want) {
			t.Errorf("found\n%+v, not\n%+v", got, want)
		}
	})
}

func TestAnIndexGoesWithTheLastOfItsParts(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 8)
		for _, c := range []struct{ last, indexes int64 }{{2, 2}, {5, 1}, {7, 0}} {
			_, err := Remove(t.Context(), m, prefix, keysTo(1, c.last))
			must(t, err)
			if all := indexesIn(t, m); int64(len(all)) != c.indexes {
				t.Errorf("parts up to %d are gone, and there are indexes %+v", c.last, all)
			}
		}
		if got, err := Load(t.Context(), m, prefix); err != nil || len(got.Parts) != 1 || got.Parts[0].Sequence != 8 {
			t.Errorf("%v: found %+v", err, got.Parts)
		}
	})
}

func TestAStoreThatTakesNoIndexTakesTheParts(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		m.before = func(_ context.Context, key string) error {
			if _, is := readIndexKey(prefix, key); is {
				return errFault
			}
			return nil
		}
		indexing(t, l, m, 7)
		if got := loaded(t, m); len(got.Parts) != 7 {
			t.Errorf("found %+v", got.Parts)
		}
	})
}
