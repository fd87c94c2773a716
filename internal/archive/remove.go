package archive

import (
	"context"
	"fmt"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// Known tells whether an object below prefix is a branch, a part, an index, a bundle or a mark.
func Known(prefix, key string) bool {
	_, ok := readKey(prefix, key)
	_, isIndex := readIndexKey(prefix, key)
	_, isBundle := readBundleKey(prefix, key)
	return ok || isIndex || isBundle || isMark(prefix, key)
}

// Remove removes parts one after the other, in the order in which they are given, and then the
// indexes that tell of nothing else, and tells how many parts are gone. They are the first of
// their epochs. A bundle goes with the last of its parts; until then all of them are there. What
// is gone already is no error. It does not ask who needs them.
func Remove(ctx context.Context, s store.Store, prefix string, spans []facts.Span) (removed int, err error) {
	if len(spans) == 0 {
		return 0, nil
	}
	all, err := listAll(ctx, s, prefix, prefix)
	if err != nil {
		return 0, fmt.Errorf("listing the archive: %w", err)
	}
	r := newRemoval(s, prefix, all, spans)
	for _, span := range spans {
		for k := (facts.Key{Epoch: span.Epoch, Sequence: span.First}); k.Sequence <= span.Last; k.Sequence++ {
			if err := ctx.Err(); err != nil {
				return removed, context.Cause(ctx)
			}
			if r.stay.Holds(k) {
				continue
			}
			if err := r.remove(ctx, k); err != nil {
				return removed, fmt.Errorf("removing part %d of epoch %d of the archive: %w", k.Sequence, k.Epoch, err)
			}
			removed++
		}
	}
	return removed, r.removeIndexes(ctx)
}

// removal is one Remove.
type removal struct {
	store  store.Store
	prefix string
	all    *listing
	// last part of each epoch that goes.
	last map[int64]int64
	// stay are bundles with a part behind that: all that they hold stays with them. ending are the
	// others, by their last part, and going what those hold.
	stay, going facts.Cover
	ending      map[facts.Key][]facts.Bundle
}

func newRemoval(s store.Store, prefix string, all *listing, spans []facts.Span) *removal {
	r := &removal{store: s, prefix: prefix, all: all, last: map[int64]int64{}, ending: map[facts.Key][]facts.Bundle{}}
	for _, span := range spans {
		r.last[span.Epoch] = max(r.last[span.Epoch], span.Last)
	}
	var stay, going []facts.Bundle
	for _, b := range all.bundles {
		if b.Last > r.last[b.Epoch] {
			stay = append(stay, b)
			continue
		}
		going = append(going, b)
		end := facts.Key{Epoch: b.Epoch, Sequence: b.Last}
		r.ending[end] = append(r.ending[end], b)
	}
	r.stay, r.going = facts.CoverOf(stay), facts.CoverOf(going)
	return r
}

// remove removes a part where it lies, and the bundles that end with it.
func (r *removal) remove(ctx context.Context, k facts.Key) error {
	if _, listed := r.all.singles[k]; listed || !r.going.Holds(k) {
		if err := r.store.Delete(ctx, partKey(r.prefix, k)); err != nil {
			return err
		}
	}
	for _, b := range r.ending[k] {
		if err := r.store.Delete(ctx, bundleKey(r.prefix, b)); err != nil {
			return err
		}
	}
	return nil
}

// removeIndexes removes those of which all parts are gone.
func (r *removal) removeIndexes(ctx context.Context) error {
	for _, k := range r.all.indexes {
		if k.Sequence > r.last[k.Epoch] || r.stay.Holds(k) {
			continue
		}
		if err := r.store.Delete(ctx, indexKey(r.prefix, k)); err != nil {
			return fmt.Errorf("removing the index up to part %d of epoch %d: %w", k.Sequence, k.Epoch, err)
		}
	}
	return nil
}
