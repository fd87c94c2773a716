package archive

import (
	"context"
	"fmt"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// Known tells whether an object below prefix is a branch, a part or a mark.
func Known(prefix, key string) bool {
	_, ok := readKey(prefix, key)
	return ok || isMark(prefix, key)
}

// Remove removes parts one after the other, in the order in which they are given, and tells
// how many are gone. What is gone already is no error. It does not ask who needs them.
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
	return removed, nil
}
