package archive

import (
	"context"
	"fmt"
	"slices"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// Known reports whether an object below prefix is a branch, a part, an index, a bundle, a summary
// or a mark.
func Known(prefix, key string) bool {
	_, ok := readKey(prefix, key)
	_, isIndex := readIndexKey(prefix, key)
	_, isBundle := readBundleKey(prefix, key)
	_, isSummary := readSummaryKey(prefix, key)
	return ok || isIndex || isBundle || isSummary || isMark(prefix, key)
}

// Remove removes parts one after the other, in the order in which they are given, and the indexes
// and summaries that tell of nothing else, and tells how many parts are gone. They are the first of their
// epochs, and the spans of an epoch follow one another. A bundle goes with the last of its parts; until
// then all of them are there. What is gone already is no error. It does not ask who needs them.
func Remove(ctx context.Context, s store.Store, prefix string, spans []facts.Span) (removed int, err error) {
	for len(spans) > 0 {
		n := slices.IndexFunc(spans, func(other facts.Span) bool { return other.Epoch != spans[0].Epoch })
		if n < 0 {
			n = len(spans)
		}
		r := &removal{store: s, prefix: prefix, epoch: spans[0].Epoch, last: spans[n-1].Last, spans: spans[:n]}
		err := r.run(ctx)
		if removed += r.removed; err != nil {
			return removed, err
		}
		spans = spans[n:]
	}
	return removed, nil
}

// removal is one Remove, of an epoch.
type removal struct {
	store  store.Store
	prefix string
	epoch  int64
	// spans are what goes, and last the last of that. What is before next is gone.
	spans      []facts.Span
	last, next int64
	removed    int

	// all is the piece of the listing that is gone through.
	all *listing
	// stay are bundles of it with a part behind last: all that they hold stays with them. ending are
	// the others, by their last part, and going what those hold.
	stay, going facts.Cover
	ending      map[int64][]facts.Bundle
}

func (r *removal) run(ctx context.Context) error {
	for piece, err := range listPieces(ctx, r.store, epochPrefix(r.prefix, r.epoch), r.prefix) {
		if err != nil {
			return fmt.Errorf("listing the archive: %w", err)
		}
		r.begin(piece)
		if err := r.parts(ctx, min(piece.reach, r.last)); err != nil {
			return err
		}
		if err := r.indexes(ctx); err != nil {
			return err
		}
		if err := r.summaries(ctx); err != nil {
			return err
		}
		if piece.reach >= r.last {
			return nil
		}
	}
	r.begin(newListing(r.epoch, r.last))
	return r.parts(ctx, r.last) // what is not listed
}

// begin begins with a piece.
func (r *removal) begin(piece *listing) {
	r.all, r.ending = piece, map[int64][]facts.Bundle{}
	var stay, going []facts.Bundle
	for _, b := range piece.bundles {
		if b.Last > r.last {
			stay = append(stay, b)
			continue
		}
		going = append(going, b)
		r.ending[b.Last] = append(r.ending[b.Last], b)
	}
	r.stay, r.going = facts.CoverOf(stay), facts.CoverOf(going)
}

// parts removes those that go, up to one.
func (r *removal) parts(ctx context.Context, until int64) error {
	for _, span := range r.spans {
		for n := max(span.First, r.next); n <= min(span.Last, until); n++ {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			k := facts.Key{Epoch: r.epoch, Sequence: n}
			if r.stay.Holds(k) {
				continue
			}
			if err := r.remove(ctx, k); err != nil {
				return fmt.Errorf("removing part %d of epoch %d of the archive: %w", k.Sequence, k.Epoch, err)
			}
			r.removed++
		}
	}
	r.next = until + 1
	return nil
}

// remove removes a part where it lies, and the bundles that end with it.
func (r *removal) remove(ctx context.Context, k facts.Key) error {
	if _, listed := r.all.singles[k]; listed || !r.going.Holds(k) {
		if err := r.store.Delete(ctx, partKey(r.prefix, k)); err != nil {
			return err
		}
	}
	for _, b := range r.ending[k.Sequence] {
		if err := r.store.Delete(ctx, bundleKey(r.prefix, b)); err != nil {
			return err
		}
	}
	return nil
}

// indexes removes those of which all parts are gone.
func (r *removal) indexes(ctx context.Context) error {
	for _, k := range r.all.indexes {
		if k.Sequence > r.last || r.stay.Holds(k) {
			continue
		}
		if err := r.store.Delete(ctx, indexKey(r.prefix, k)); err != nil {
			return fmt.Errorf("removing the index up to part %d of epoch %d: %w", k.Sequence, k.Epoch, err)
		}
	}
	return nil
}

// summaries removes those of which all bundles are gone, or go: one that is missing is no loss.
func (r *removal) summaries(ctx context.Context) error {
	for _, s := range r.all.summaries {
		if s.Last > r.last {
			continue
		}
		if err := r.store.Delete(ctx, summaryKey(r.prefix, s.Span)); err != nil {
			return fmt.Errorf("removing the summary of the parts %d to %d of epoch %d: %w", s.First, s.Last, s.Epoch,
				err)
		}
	}
	return nil
}
