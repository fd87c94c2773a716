package archive

import (
	"context"
	"errors"
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
func Remove(ctx context.Context, s store.Store, prefix string, keys []facts.Key) (removed int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	all, err := listAll(ctx, s, prefix, prefix)
	if err != nil {
		return 0, fmt.Errorf("listing the archive: %w", err)
	}
	last := map[int64]int64{}
	for _, k := range keys {
		last[k.Epoch] = max(last[k.Epoch], k.Sequence)
	}
	for _, k := range keys {
		if err := ctx.Err(); err != nil {
			return removed, context.Cause(ctx)
		}
		gone, err := removePart(ctx, s, prefix, all, k, last[k.Epoch])
		if err != nil {
			return removed, fmt.Errorf("removing part %d of epoch %d of the archive: %w", k.Sequence, k.Epoch, err)
		}
		removed += gone
	}
	return removed, removeIndexes(ctx, s, prefix, all, last)
}

// removePart removes a part where it lies, and the bundles that end with it, and tells how many
// parts are gone with that. A bundle with a part behind the last one that goes keeps all of its.
func removePart(ctx context.Context, s store.Store, prefix string, all *listing, k facts.Key, last int64) (gone int,
	err error) {
	gone = 1
	isHeld := false
	for _, b := range all.bundles {
		if !b.Holds(k) {
			continue
		}
		isHeld = true
		if b.Last > last {
			gone = 0
		}
	}
	if _, listed := all.singles[k]; listed || !isHeld {
		if err := s.Delete(ctx, partKey(prefix, k)); err != nil {
			return 0, err
		}
	}
	for _, b := range all.bundles {
		if b.Epoch == k.Epoch && b.Last == k.Sequence {
			err = errors.Join(err, s.Delete(ctx, bundleKey(prefix, b)))
		}
	}
	return gone, err
}

// removeIndexes removes those of which all parts are gone, up to the last of each epoch.
func removeIndexes(ctx context.Context, s store.Store, prefix string, all *listing, last map[int64]int64) error {
	for _, k := range all.indexes {
		if k.Sequence > last[k.Epoch] {
			continue
		}
		if err := s.Delete(ctx, indexKey(prefix, k)); err != nil {
			return fmt.Errorf("removing the index up to part %d of epoch %d: %w", k.Sequence, k.Epoch, err)
		}
	}
	return nil
}
