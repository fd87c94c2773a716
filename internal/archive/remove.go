package archive

import (
	"context"
	"fmt"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// Known tells whether an object below prefix is a branch, a part, an index or a mark.
func Known(prefix, key string) bool {
	_, ok := readKey(prefix, key)
	_, isIndex := readIndexKey(prefix, key)
	return ok || isIndex || isMark(prefix, key)
}

// Remove removes parts one after the other, in the order in which they are given, and then the
// indexes that tell of nothing else, and tells how many parts are gone. They are the first of
// their epochs. What is gone already is no error. It does not ask who needs them.
func Remove(ctx context.Context, s store.Store, prefix string, keys []facts.Key) (removed int, err error) {
	for _, k := range keys {
		if err := ctx.Err(); err != nil {
			return removed, context.Cause(ctx)
		}
		if err := s.Delete(ctx, partKey(prefix, k)); err != nil {
			return removed, fmt.Errorf("removing part %d of epoch %d of the archive: %w", k.Sequence, k.Epoch, err)
		}
		removed++
	}
	return removed, removeIndexes(ctx, s, prefix, keys)
}

// removeIndexes removes those of which all parts are gone.
func removeIndexes(ctx context.Context, s store.Store, prefix string, gone []facts.Key) error {
	if len(gone) == 0 {
		return nil
	}
	last := map[int64]int64{}
	for _, k := range gone {
		last[k.Epoch] = max(last[k.Epoch], k.Sequence)
	}
	all, err := listAll(ctx, s, prefix)
	if err != nil {
		return fmt.Errorf("listing the indexes of the archive: %w", err)
	}
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
