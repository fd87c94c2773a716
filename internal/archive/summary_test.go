package archive

import (
	"cmp"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// ofSummaries has so many bundles in a summary.
func ofSummaries(t *testing.T, bundles int) {
	before := summaryBundles
	summaryBundles = bundles
	t.Cleanup(func() { summaryBundles = before })
}

// inBundles ships and merges, so that there are so many bundles, each of 20 parts but the first of 19,
// and one part behind them.
func inBundles(t *testing.T, l *logs, m *memory, bundles int) (summaries int) {
	t.Helper()
	for range bundles {
		indexing(t, l, m, 20)
		summaries += merged(t, m).Summaries
	}
	return summaries + merged(t, m).Summaries
}

func summariesIn(t *testing.T, s store.Store) (all []facts.Span) {
	t.Helper()
	for piece, err := range listPieces(t.Context(), s, prefix, prefix) {
		must(t, err)
		for _, one := range piece.summaries {
			all = append(all, one.Span)
		}
	}
	return all
}

// heads counts the bundles that are read, and may refuse summaries.
type heads struct {
	store.Store
	fails bool
	read  atomic.Int64
}

func (h *heads) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if _, is := readBundleKey(prefix, key); is {
		h.read.Add(1)
	}
	if _, is := readSummaryKey(prefix, key); is && h.fails {
		return nil, errFault
	}
	return h.Store.Get(ctx, key)
}

// found is what is known of an archive, and how many bundles were read for it.
func found(t *testing.T, m *memory) (facts.Archive, int64) {
	t.Helper()
	h := &heads{Store: m}
	a, err := Load(t.Context(), h, prefix)
	must(t, err)
	slices.SortFunc(a.Unreadable, func(a, b facts.Unreadable) int {
		return cmp.Compare(a.Key.Sequence, b.Key.Sequence)
	})
	return a, h.read.Load()
}

// withoutSummaries is what is found when there are none.
func withoutSummaries(t *testing.T, m *memory) facts.Archive {
	t.Helper()
	plain := newMemory()
	for _, key := range m.keys() {
		if _, is := readSummaryKey(prefix, key); !is {
			plain.objects[key], plain.at[key] = m.objects[key], m.at[key]
		}
	}
	a, _ := found(t, plain)
	return a
}

var (
	firstSummary = facts.Span{Epoch: 1, First: 1, Last: 39}
	firstBundle  = facts.Bundle{Epoch: 1, First: 1, Last: 19}
)

func TestASummarySavesTheReadingOfItsBundles(t *testing.T) {
	t.Run("", func(t *testing.T) { savesReading(t, 2) })
	t.Run("which are in several pieces of the listing", func(t *testing.T) { inSmallPieces(t); savesReading(t, 3) })
}

func savesReading(t *testing.T, bundles int64) {
	ofSummaries(t, int(bundles))
	story("", t, func(t *testing.T, l *logs, m *memory) {
		if n := inBundles(t, l, m, 3); n != 1 {
			t.Errorf("%d summaries are written", n)
		}
		if all := summariesIn(t, m); !slices.Equal(all, []facts.Span{{Epoch: 1, First: 1, Last: 20*bundles - 1}}) {
			t.Fatalf("there are %+v: %q", all, m.keys())
		}
		a, read := found(t, m)
		if want := withoutSummaries(t, m); read != 3-bundles || !reflect.DeepEqual(a, want) {
			t.Errorf("%d bundles are read; found\n%+v, not\n%+v", read, a, want)
		}
		if done := merged(t, m); !reflect.DeepEqual(done, Merged{}) {
			t.Errorf("what is told is told again: %+v", done)
		}
		for _, key := range m.keys() {
			if !Known(prefix, key) {
				t.Errorf("%s is not known", key)
			}
		}
		archivedOnce(t, m, l.executed)
	})
}

// TestASummaryThatIsOfNoUseIsDoneWithout: what is found is the same, and the next merge writes it again.
func TestASummaryThatIsOfNoUseIsDoneWithout(t *testing.T) {
	ofSummaries(t, 2)
	key := summaryKey(prefix, firstSummary)
	changed := func(change func(s *summary)) func(t *testing.T, m *memory) {
		return func(t *testing.T, m *memory) {
			s, err := getSummary(t.Context(), m, prefix, firstSummary)
			must(t, err)
			change(s)
			c, err := newCompressor()
			must(t, err)
			m.objects[key], err = c.text(s)
			must(t, err)
		}
	}
	for name, change := range map[string]func(t *testing.T, m *memory){
		"gone":     func(_ *testing.T, m *memory) { delete(m.objects, key) },
		"empty":    func(_ *testing.T, m *memory) { m.objects[key] = nil },
		"cut":      func(_ *testing.T, m *memory) { m.objects[key] = m.objects[key][:40] },
		"not zstd": func(_ *testing.T, m *memory) { m.objects[key] = []byte("<html>") },
		"changed":  func(_ *testing.T, m *memory) { flip(m, key, 60) },
		"of before its bundles": func(_ *testing.T, m *memory) {
			m.at[key] = m.at[bundleKey(prefix, firstBundle)].Add(-1)
		},
		"of no known time":   func(_ *testing.T, m *memory) { m.at[key] = time.Time{} },
		"of another release": changed(func(s *summary) { s.Format++ }),
		"of another epoch":   changed(func(s *summary) { s.Epoch++ }),
		"of bundles of other sizes": changed(func(s *summary) {
			s.Bundles[0].Stored, s.Bundles[1].Stored = s.Bundles[0].Stored+1, s.Bundles[1].Stored+1
		}),
		"without a part":       changed(func(s *summary) { s.Bundles[0].Runs[0].Through-- }),
		"without a bundle":     changed(func(s *summary) { s.Bundles = s.Bundles[:1] }),
		"in another order":     changed(func(s *summary) { slices.Reverse(s.Bundles) }),
		"with parts of others": changed(func(s *summary) { s.Bundles[0].Runs[0].Epoch++ }),
	} {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			inBundles(t, l, m, 2)
			want := withoutSummaries(t, m)
			change(t, m)
			if a, read := found(t, m); read == 0 || !reflect.DeepEqual(a, want) {
				t.Errorf("%d bundles are read; found\n%+v, not\n%+v", read, a, want)
			}
			if name == "of before its bundles" { // the other one is known: it waits for a third
				return
			}
			merged(t, m)
			if a, read := found(t, m); read != 0 || !reflect.DeepEqual(a, want) {
				t.Errorf("once merged %d bundles are read; found\n%+v, not\n%+v", read, a, want)
			}
		})
	}
}

func TestAStoreThatDoesNotAnswerIsNoMissingSummary(t *testing.T) {
	ofSummaries(t, 2)
	story("", t, func(t *testing.T, l *logs, m *memory) {
		inBundles(t, l, m, 2)
		if _, err := Load(t.Context(), &heads{Store: m, fails: true}, prefix); !errors.Is(err, errFault) {
			t.Errorf("%v", err)
		}
		time.Sleep(2 * time.Hour)
		if _, err := Merge(t.Context(), &heads{Store: m, fails: true}, prefix, time.Now()); !errors.Is(err, errFault) {
			t.Errorf("%v", err)
		}
	})
}

// TestABundleThatIsNotAsItsSummarySaysIsRead: of another size, younger, gone, or with something beside
// or across it.
func TestABundleThatIsNotAsItsSummarySaysIsRead(t *testing.T) {
	ofSummaries(t, 2)
	key := bundleKey(prefix, firstBundle)
	for name, change := range map[string]func(t *testing.T, m *memory){
		"cut":     func(_ *testing.T, m *memory) { m.objects[key] = m.objects[key][:40] },
		"younger": func(_ *testing.T, m *memory) { m.at[key] = m.at[summaryKey(prefix, firstSummary)].Add(1) },
		"gone":    func(_ *testing.T, m *memory) { delete(m.objects, key) },
		"beside a part": func(t *testing.T, m *memory) {
			o, err := openBundle(t.Context(), m, prefix, firstBundle)
			must(t, err)
			must(t, m.Put(t.Context(), partKey(prefix, facts.Key{Epoch: 1, Sequence: 7}), append(o.objects[6], 0)))
		},
		"across another": func(t *testing.T, m *memory) {
			o, err := openBundle(t.Context(), m, prefix, firstBundle)
			must(t, err)
			c, err := newCompressor()
			must(t, err)
			object, err := c.bundleOf(o.parts[3:], o.objects[3:])
			must(t, err)
			must(t, m.Put(t.Context(), bundleKey(prefix, facts.Bundle{Epoch: 1, First: 4, Last: 19}), object))
		},
	} {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			inBundles(t, l, m, 2)
			change(t, m)
			want := withoutSummaries(t, m)
			if a, read := found(t, m); read != 1 && name != "gone" && name != "across another" ||
				!reflect.DeepEqual(a, want) {
				t.Errorf("%d bundles are read; found\n%+v, not\n%+v", read, a, want)
			}
		})
	}
}

// TestASummaryIsWrittenOfWhatIsInItsPlace: not while parts lie beside a bundle, and of an epoch that is
// over whatever is left.
func TestASummaryIsWrittenOfWhatIsInItsPlace(t *testing.T) {
	ofSummaries(t, 1)
	story("where nobody may delete", t, func(t *testing.T, l *logs, m *memory) {
		for range 3 {
			indexing(t, l, m, 20)
			time.Sleep(2 * time.Hour)
			done, err := Merge(t.Context(), keeping{m}, prefix, time.Now())
			if done.Summaries != 0 {
				t.Errorf("%+v, %v", done, err)
			}
		}
		if done := merged(t, m); done.Summaries != 3 {
			t.Errorf("%+v", done)
		}
	})
	ofSummaries(t, 10)
	story("of an epoch that is over", t, func(t *testing.T, l *logs, m *memory) {
		if n := inBundles(t, l, m, 2); n != 0 {
			t.Errorf("%d summaries of an epoch that goes on", n)
		}
		s := begin(t, l.config(m, 2))
		l.commit(1, 1)
		settle()
		must(t, s.end())
		merged(t, m)
		want := withoutSummaries(t, m)
		if a, read := found(t, m); read != 0 || !reflect.DeepEqual(a, want) {
			t.Errorf("%d bundles are read of %q; found\n%+v, not\n%+v", read, m.keys(), a, want)
		}
	})
}

// TestABundleOfManyRunsIsRead, and a summary has room for the others.
func TestABundleOfManyRunsIsRead(t *testing.T) {
	ofSummaries(t, 2)
	story("", t, func(t *testing.T, l *logs, m *memory) {
		inBundles(t, l, m, 2)
		must(t, m.Delete(t.Context(), summaryKey(prefix, firstSummary)))
		o, err := openBundle(t.Context(), m, prefix, firstBundle)
		must(t, err)
		for i := range o.parts {
			o.parts[i].Missing = ids(7, "1")
		}
		c, err := newCompressor()
		must(t, err)
		object, err := c.bundleOf(o.parts, o.objects)
		must(t, errors.Join(err, m.Put(t.Context(), bundleKey(prefix, firstBundle), object)))
		if done := merged(t, m); done.Summaries != 1 {
			t.Errorf("%+v", done)
		}
		if a, read := found(t, m); read != 1 || !reflect.DeepEqual(a, withoutSummaries(t, m)) {
			t.Errorf("%d bundles are read; found %+v", read, a)
		}
		if done := merged(t, m); !reflect.DeepEqual(done, Merged{}) {
			t.Errorf("what is told is told again: %+v", done)
		}
	})
}

func TestASummaryGoesWithTheLastOfItsBundles(t *testing.T) {
	ofSummaries(t, 2)
	inSmall := func(t *testing.T) { inSmallPieces(t); summaryBundles = 2 }
	for name, prepare := range map[string]func(t *testing.T){"": func(*testing.T) {}, "in small pieces": inSmall} {
		t.Run(name, func(t *testing.T) {
			prepare(t)
			story("", t, func(t *testing.T, l *logs, m *memory) {
				inBundles(t, l, m, 4)
				for _, c := range []struct{ last, summaries int64 }{{19, 2}, {38, 2}, {39, 1}, {79, 0}} {
					_, err := Remove(t.Context(), m, prefix, keysTo(1, c.last))
					must(t, err)
					if all := summariesIn(t, m); int64(len(all)) != c.summaries {
						t.Errorf("parts up to %d are gone, and there are summaries %+v", c.last, all)
					}
					if a, _ := found(t, m); !reflect.DeepEqual(a, withoutSummaries(t, m)) {
						t.Errorf("up to %d: found %+v", c.last, a)
					}
				}
				for _, key := range m.keys() {
					if strings.HasSuffix(key, summarySuffix) || strings.HasSuffix(key, bundleSuffix) {
						t.Errorf("%s is left", key)
					}
				}
			})
		})
	}
}
