package store

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
)

// removers is how many objects are removed at a time.
const removers = 16

// RemoveAll has each object removed by its key, several at a time and in no order. It returns how many
// it has begun to remove, and the first error, after which it begins no other. Keys that cannot be told
// end with an error.
func RemoveAll(ctx context.Context, keys iter.Seq2[string, error], remove func(context.Context, string) error,
) (begun int, err error) {
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(removers)
	for key, err := range keys {
		if err != nil {
			all.Go(func() error { return err })
			break
		}
		if each.Err() != nil {
			break
		}
		begun++
		all.Go(func() error { return remove(each, key) })
	}
	if err := all.Wait(); err != nil {
		return begun, err
	}
	return begun, context.Cause(ctx)
}
