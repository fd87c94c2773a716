package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// merged merges when a while has passed.
func merged(t *testing.T, s store.Store) Merged {
	t.Helper()
	time.Sleep(2 * time.Hour)
	done, err := Merge(t.Context(), s, prefix, time.Now())
	must(t, err)
	return done
}

// contents are what is found of an archive, and what each part of it holds.
func contents(t *testing.T, m *memory) (facts.Archive, map[facts.Key]string) {
	t.Helper()
	a := loaded(t, m)
	out := map[facts.Key]string{}
	at := place(m)
	for _, p := range a.Parts {
		r, err := at.open(t.Context(), p)
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, errors.Join(err, r.Close()))
		out[p.Key()] = string(text)
	}
	return a, out
}

// same looks whether nothing has changed for those who read the archive.
func same(t *testing.T, m *memory, a facts.Archive, text map[facts.Key]string) {
	t.Helper()
	now, its := contents(t, m)
	if !reflect.DeepEqual(now, a) || !maps.Equal(its, text) {
		t.Fatalf("found %d parts with %d contents, not %d with %d, or others", len(now.Parts), len(its), len(a.Parts),
			len(text))
	}
}

func count(m *memory) (singles, bundled, indexed int) {
	for _, key := range m.keys() {
		_, isIndex := readIndexKey(prefix, key)
		_, isBundle := readBundleKey(prefix, key)
		if k, is := readKey(prefix, key); is && k.Sequence > 0 {
			singles++
		}
		if isIndex {
			indexed++
		}
		if isBundle {
			bundled++
		}
	}
	return singles, bundled, indexed
}

func TestSmallPartsAreMerged(t *testing.T) {
	story("into a bundle, which takes their place", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 40)
		a, text := contents(t, m)
		if done := merged(t, m); done.Bundles != 1 || done.Parts != 39 || done.Removed != 0 || done.Damaged != nil {
			t.Errorf("%+v", done)
		}
		same(t, m, a, text)
		if done := merged(t, m); done.Bundles != 0 || done.Removed != 39+13 {
			t.Errorf("%+v", done)
		}
		if singles, bundled, indexed := count(m); singles != 1 || bundled != 1 || indexed != 0 {
			t.Errorf("there are %d parts, %d bundles and %d indexes: %q", singles, bundled, indexed, m.keys())
		}
		same(t, m, a, text)
		if done := merged(t, m); !reflect.DeepEqual(done, Merged{}) {
			t.Errorf("what is merged is not merged again: %+v", done)
		}
		for _, key := range m.keys() {
			if !Known(prefix, key) {
				t.Errorf("%s is not known", key)
			}
		}
	})
	story("and shipping goes on behind them", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		merged(t, m)
		merged(t, m)
		indexing(t, l, m, 20)
		a := archivedOnce(t, m, l.executed)
		if len(a.Parts) != 40 {
			t.Errorf("%d parts", len(a.Parts))
		}
		if done := merged(t, m); done.Parts != 20 {
			t.Errorf("%+v", done)
		}
	})
	story("of an encrypted archive, without the key", t, func(t *testing.T, l *logs, m *memory) {
		c, _ := newKey(t, 1)
		m.key = c
		conf := l.config(m, 1)
		conf.Key = func() (seal.Key, error) { return c, nil }
		s := begin(t, conf)
		for range 20 {
			l.commit(1, 1)
			settle()
		}
		must(t, s.end())
		a, text := contents(t, m)
		merged(t, m)
		merged(t, m)
		if singles, bundled, _ := count(m); singles != 1 || bundled != 1 {
			t.Errorf("there are %d parts and %d bundles", singles, bundled)
		}
		same(t, m, a, text)
	})
}

// TestABranchGoesOnBehindABundle: though the listing does not have the part behind it, or there is
// none.
func TestABranchGoesOnBehindABundle(t *testing.T) {
	behind := partKey(prefix, facts.Key{Epoch: 1, Sequence: 20})
	for name, hide := range map[string]func(m *memory){
		"that is not listed": func(m *memory) { m.hidden = func(key string) bool { return key == behind } },
		"that is gone":       func(m *memory) { delete(m.objects, behind) },
	} {
		story("without the part behind it "+name, t, func(t *testing.T, l *logs, m *memory) {
			indexing(t, l, m, 20)
			merged(t, m)
			merged(t, m)
			hide(m)
			indexing(t, l, m, 3)
			if a := archivedOnce(t, m, l.executed); len(a.Parts) != 23 {
				t.Errorf("%d parts", len(a.Parts))
			}
		})
	}
}

// TestABundleIsReadByWhatReadsZstd: it gives the logs of its parts one behind the other.
func TestABundleIsReadByWhatReadsZstd(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		a, text := contents(t, m)
		merged(t, m)
		object := m.objects[bundleKey(prefix, facts.Bundle{Epoch: 1, First: 1, Last: 19})]
		z, err := zstd.NewReader(bytes.NewReader(object))
		must(t, err)
		defer z.Close()
		got, err := io.ReadAll(z)
		must(t, err)
		want := ""
		for _, p := range a.Parts[:19] {
			want += text[p.Key()]
		}
		if string(got) != want {
			t.Errorf("%d bytes, not %d, or others", len(got), len(want))
		}
	})
}

// mortal is a store that does so many things and no more.
type mortal struct {
	store.Store
	left atomic.Int64
}

func (m *mortal) live() error {
	if m.left.Add(-1) < 0 {
		return errFault
	}
	return nil
}

func (m *mortal) Create(ctx context.Context, key string, body []byte) error {
	if err := m.live(); err != nil {
		return err
	}
	return m.Store.Create(ctx, key, body)
}

func (m *mortal) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := m.live(); err != nil {
		return nil, err
	}
	return m.Store.Get(ctx, key)
}

func (m *mortal) Delete(ctx context.Context, key string) error {
	if err := m.live(); err != nil {
		return err
	}
	return m.Store.Delete(ctx, key)
}

func (m *mortal) List(ctx context.Context, prefix string) iter.Seq2[store.Object, error] {
	if err := m.live(); err != nil {
		return func(yield func(store.Object, error) bool) { yield(store.Object{}, err) }
	}
	return m.Store.List(ctx, prefix)
}

// TestAMergeMayEndAnywhere: whatever was done when the store, or the Job, is gone, who reads the
// archive finds the same, and a later merge goes on.
func TestAMergeMayEndAnywhere(t *testing.T) {
	inSmallPieces(t)
	story("", t, func(t *testing.T, l *logs, m *memory) {
		readers := readers
		indexing(t, l, m, 20)
		a, text := contents(t, m)
		failed := 0
		for n := 0; ; n++ {
			time.Sleep(2 * time.Hour)
			s := &mortal{Store: m}
			s.left.Store(int64(n))
			_, err := Merge(t.Context(), s, prefix, time.Now())
			same(t, m, a, text)
			if singles, _, _ := count(m); err == nil && singles == 1 {
				break
			}
			if err != nil {
				failed++
			}
			if n > 200 {
				t.Fatal("it does not come to an end")
			}
		}
		if failed < readers {
			t.Errorf("it was broken off only %d times", failed)
		}
	})
}

func TestWhoReadsWhileItIsMergedReadsOn(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		a, text := contents(t, m)
		at := place(m)
		for i, p := range a.Parts {
			r, err := at.open(t.Context(), p)
			must(t, err)
			got, err := io.ReadAll(r)
			must(t, errors.Join(err, r.Close()))
			if string(got) != text[p.Key()] {
				t.Errorf("part %d is another one", p.Sequence)
			}
			if i == 3 || i == 6 {
				merged(t, m)
			}
		}
	})
}

// flip changes a byte of an object; at is from its end if it is less than 0.
func flip(m *memory, key string, at int) {
	object := slices.Clone(m.objects[key])
	if at < 0 {
		at += len(object)
	}
	object[at] ^= 1
	m.objects[key] = object
}

func TestWhatIsDamagedIsNotMerged(t *testing.T) {
	story("a part stays as it is, and those around it are merged", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 60)
		a := loaded(t, m)
		flip(m, partKey(prefix, facts.Key{Epoch: 1, Sequence: 21}), -1)
		done := merged(t, m)
		if done.Bundles != 2 || done.Parts != 20+38 || len(done.Damaged) != 1 ||
			!errors.Is(done.Damaged[0], PartDamaged) {
			t.Errorf("%+v", done)
		}
		merged(t, m)
		if now := loaded(t, m); !reflect.DeepEqual(now, a) {
			t.Errorf("found %+v", now)
		}
	})
	bundle := bundleKey(prefix, facts.Bundle{Epoch: 1, First: 1, Last: 19})
	for name, at := range map[string]int{"its beginning": 2, "its index": 200, "its end": -1} {
		story("a bundle of which "+name+" is damaged takes no place", t, func(t *testing.T, l *logs, m *memory) {
			indexing(t, l, m, 20)
			a, text := contents(t, m)
			merged(t, m)
			flip(m, bundle, at)
			if done := merged(t, m); done.Removed != 0 || len(done.Damaged) != 1 {
				t.Errorf("%+v", done)
			}
			same(t, m, a, text)
		})
	}
	story("a bundle that is damaged later is told", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		a, _ := contents(t, m)
		merged(t, m)
		merged(t, m)
		flip(m, bundle, -1)
		if _, err := place(m).open(t.Context(), a.Parts[18]); !errors.Is(err, PartDamaged) {
			t.Errorf("its last part: %v", err)
		}
		flip(m, bundle, 200)
		now, err := Load(t.Context(), m, prefix)
		must(t, err)
		if len(now.Parts) != 1 || len(now.Unreadable) != 19 || now.Unreadable[0].Reason != facts.PartDamaged {
			t.Errorf("%d parts, and %d that cannot be read", len(now.Parts), len(now.Unreadable))
		}
	})
}

// TestABundleGoesWithTheLastOfItsParts: the others stay as long, and are counted then.
func TestABundleGoesWithTheLastOfItsParts(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		merged(t, m)
		removed, err := Remove(t.Context(), m, prefix, keysTo(1, 18))
		must(t, err)
		if singles, _, _ := count(m); removed != 0 || singles != 20 {
			t.Errorf("of a bundle that stays %d parts are removed, and %d are left by themselves", removed, singles)
		}
		merged(t, m)
		indexing(t, l, m, 20)
		for _, c := range []struct{ last, removed, left int64 }{{18, 0, 40}, {19, 19, 21}, {25, 6, 15}} {
			removed, err := Remove(t.Context(), m, prefix, between(1, 41-c.left-c.removed, c.last))
			must(t, err)
			a := loaded(t, m)
			if int64(removed) != c.removed || int64(len(a.Parts)) != c.left {
				t.Errorf("up to %d: %d are removed, %d are left", c.last, removed, len(a.Parts))
			}
		}
	})
}

// blinking is a store that does not find one object, so many times.
type blinking struct {
	store.Store
	key   string
	times int
}

func (b *blinking) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if b.key == key && b.times > 0 {
		b.times--
		return nil, store.NotFound
	}
	return b.Store.Get(ctx, key)
}

// TestNoNumberIsGivenTwice: the numbers of a bundle are free by their names. A store that does not
// find the last part for a moment is asked again.
func TestNoNumberIsGivenTwice(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		merged(t, m)
		merged(t, m)
		c := l.config(m, 1)
		c.Store = &blinking{m, partKey(prefix, facts.Key{Epoch: 1, Sequence: 20}), 2}
		s := begin(t, c)
		l.commit(1, 1)
		settle()
		must(t, s.end())
		if a := archivedOnce(t, m, l.executed); len(a.Parts) != 21 {
			t.Errorf("%d parts", len(a.Parts))
		}
	})
}

// TestAListingWithoutTheBranchIsNotBelieved: as of a store that lists nothing for a while.
func TestAListingWithoutTheBranchIsNotBelieved(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		merged(t, m)
		merged(t, m)
		until := time.Now().Add(time.Minute)
		m.hidden = func(string) bool { return time.Now().Before(until) }
		s := begin(t, l.config(m, 1))
		l.commit(1, 1)
		time.Sleep(2 * time.Minute)
		must(t, s.end())
		if a := archivedOnce(t, m, l.executed); len(a.Parts) != 21 {
			t.Errorf("%d parts", len(a.Parts))
		}
	})
}

// TestAnotherPartBesideABundleIsKept: whatever gave a number twice, nothing is removed, and nobody
// restores one of them without a word.
func TestAnotherPartBesideABundleIsKept(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		indexing(t, l, m, 20)
		merged(t, m)
		merged(t, m)
		c, err := newCompressor()
		must(t, err)
		p := facts.Part{Cluster: "uid", Epoch: 1, Sequence: 3, ServerUUID: uuidOf(1), GTIDs: ids(1, "77"),
			Transactions: 1}
		object, err := c.object(&p, []byte("another one"), seal.Key{})
		must(t, errors.Join(err, m.Create(t.Context(), partKey(prefix, p.Key()), object)))
		done := merged(t, m)
		if done.Removed != 0 || len(done.Damaged) != 1 || !errors.Is(done.Damaged[0], PartConflict) {
			t.Errorf("%+v", done)
		}
		if _, err := Load(t.Context(), m, prefix); !errors.Is(err, PartConflict) {
			t.Errorf("what is found of it: %v", err)
		}
	})
}

// keeping is a store that lets nobody remove anything.
type keeping struct{ store.Store }

func (keeping) Delete(context.Context, string) error { return store.AccessDenied }

func TestWhereNobodyMayDeletePartsAreMergedAllTheSame(t *testing.T) {
	story("", t, func(t *testing.T, l *logs, m *memory) {
		for n := range 3 {
			indexing(t, l, m, 20)
			time.Sleep(2 * time.Hour)
			done, err := Merge(t.Context(), keeping{m}, prefix, time.Now())
			if denied := errors.Is(err, store.AccessDenied); done.Bundles != 1 || denied != (n > 0) {
				t.Errorf("%+v, %v", done, err)
			}
		}
		archivedOnce(t, m, l.executed)
	})
}
