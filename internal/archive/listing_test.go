package archive

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// inSmallPieces has listings divided into as many pieces as can be.
func inSmallPieces(t *testing.T) {
	parts, bundles, summary := pieceParts, pieceBundles, summaryBundles
	pieceParts, pieceBundles, summaryBundles = 3, 1, 1
	t.Cleanup(func() { pieceParts, pieceBundles, summaryBundles = parts, bundles, summary })
}

// drawnEpoch are the objects of an epoch: parts of which some lack, bundles, and indexes.
func drawnEpoch(r *rand.Rand, m *memory, epoch int64) {
	last := r.Int64N(60)
	for n := int64(1); n <= last; n++ {
		k := facts.Key{Epoch: epoch, Sequence: n}
		if r.IntN(4) > 0 {
			m.objects[partKey(prefix, k)] = nil
		}
		if n%4 == 0 && r.IntN(3) > 0 {
			m.objects[indexKey(prefix, k)] = nil
		}
		if r.IntN(8) == 0 {
			m.objects[summaryKey(prefix, facts.Span{Epoch: epoch, First: n, Last: n + r.Int64N(30)})] = nil
		}
		if r.IntN(8) == 0 {
			m.objects[bundleKey(prefix, facts.Bundle{Epoch: epoch, First: n, Last: n + r.Int64N(10)})] = nil
		}
	}
	if r.IntN(4) > 0 {
		m.objects[branchKey(prefix, epoch)] = nil
	}
	m.objects[markKey(prefix, epoch)] = nil
}

// keysOfPiece are the objects of a piece, by the same names.
func keysOfPiece(p *listing) (keys []string) {
	for _, n := range p.numbers {
		keys = append(keys, partKey(prefix, facts.Key{Epoch: p.epoch, Sequence: n}))
	}
	for _, b := range p.bundles {
		keys = append(keys, bundleKey(prefix, b))
	}
	for _, k := range p.indexes {
		keys = append(keys, indexKey(prefix, k))
	}
	for _, s := range p.summaries {
		keys = append(keys, summaryKey(prefix, s.Span))
	}
	if p.branch {
		keys = append(keys, branchKey(prefix, p.epoch))
	}
	slices.Sort(keys)
	return keys
}

// TestPiecesAreTheWholeListing: in its order, and what a bundle holds is in its piece.
func TestPiecesAreTheWholeListing(t *testing.T) {
	inSmallPieces(t)
	pieces, most := 0, 0
	for seed := range uint64(200) {
		r, m := rand.New(rand.NewPCG(seed, 1)), newMemory()
		for epoch := range int64(4) {
			drawnEpoch(r, m, epoch)
		}
		var got []string
		ended := map[int64]bool{}
		for p, err := range listPieces(t.Context(), m, prefix, prefix) {
			must(t, err)
			for _, k := range p.indexes {
				if ended[p.epoch] || k.Epoch != p.epoch {
					t.Errorf("index %+v is in a piece of epoch %d", k, p.epoch)
				}
			}
			got, ended[p.epoch] = append(got, keysOfPiece(p)...), p.last
			pieces, most = pieces+1, max(most, len(p.numbers))
			checkBundlesOf(t, m, p)
		}
		want := slices.DeleteFunc(m.keys(), func(key string) bool { return isMark(prefix, key) })
		if !slices.Equal(got, want) || slices.ContainsFunc(got, func(key string) bool {
			k, _ := readKey(prefix, key)
			return !ended[k.Epoch]
		}) {
			t.Fatalf("seed %d: %q in pieces, not %q", seed, got, want)
		}
	}
	if pieces < 1000 || most > 40 {
		t.Errorf("there are %d pieces, of up to %d parts", pieces, most)
	}
}

// checkBundlesOf: what lies beside the bundles of a piece is in it.
func checkBundlesOf(t *testing.T, m *memory, p *listing) {
	t.Helper()
	for _, b := range p.bundles {
		for n := b.First; n <= b.Last; n++ {
			k := facts.Key{Epoch: b.Epoch, Sequence: n}
			_, lies := m.objects[partKey(prefix, k)]
			if _, is := p.singles[k]; is != lies {
				t.Errorf("part %d lies beside %+v: %v, and is in its piece: %v", n, b, lies, is)
			}
		}
	}
}

// disorder lists the newest first.
type disorder struct{ *memory }

func (d disorder) List(_ context.Context, below string) iter.Seq2[store.Object, error] {
	return func(yield func(store.Object, error) bool) {
		for _, key := range slices.Backward(d.keys()) {
			if strings.HasPrefix(key, below) && !yield(d.object(key), nil) {
				return
			}
		}
	}
}

// TestAListingWithoutOrderIsNotBelieved by anybody.
func TestAListingWithoutOrderIsNotBelieved(t *testing.T) {
	m := newMemory()
	for n := int64(1); n <= 3; n++ {
		m.objects[partKey(prefix, facts.Key{Epoch: 1, Sequence: n})] = nil
	}
	s := disorder{m}
	_, err := Load(t.Context(), s, prefix)
	_, last := lastPart(t.Context(), s, prefix, 1)
	_, removed := Remove(t.Context(), s, prefix, keysTo(1, 2))
	for i, err := range []error{err, last, removed} {
		if err == nil || !strings.Contains(fmt.Sprint(err), "by name") {
			t.Errorf("%d: %v", i, err)
		}
	}
	if n := len(m.keys()); n != 3 {
		t.Errorf("%d objects are left", n)
	}
}
