package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

const (
	// readers is how many parts are looked at at a time.
	readers = 16
	// headReaders is how many bundles are: what one tells of a thousand parts takes megabytes.
	headReaders = 4
	// maxHole is how many parts that a listing leaves out between two others are tried.
	maxHole = 1000
)

// Load finds out what a store holds; the plain parts of a bundle as a run. It does not rely on
// listings for what was written last: it tries the numbers that they leave out, and those that come
// next. An object that is damaged, or of an unknown format, is told as one that cannot be read; one
// that was deleted meanwhile is left out. An error is that the store does not answer.
func Load(ctx context.Context, s store.Store, prefix string) (facts.Archive, error) {
	all, err := listAll(ctx, s, prefix, prefix)
	if err != nil {
		return facts.Archive{}, err
	}
	l := &loader{store: s, prefix: prefix, all: all, newest: -1}
	// There is room for some runs that are expanded.
	l.out.Parts = make([]facts.Part, 0, len(all.singles)+len(all.bundles)+2*facts.BundleParts)
	for _, step := range []func(context.Context) error{l.bundles, l.indexes, l.singles, l.branches} {
		if err := step(ctx); err != nil {
			return l.out, err
		}
	}
	slices.SortFunc(l.out.Parts, func(a, b facts.Part) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
	l.out.Parts = slices.CompactFunc(l.out.Parts, func(a, b facts.Part) bool { return a.Key() == b.Key() })
	l.out.Mark, err = getMark(ctx, s, prefix, l.newest)
	return l.out, err
}

// Branches reads how the epochs began that a listing has; what is damaged, or of an unknown
// format, is left out.
func Branches(ctx context.Context, s store.Store, prefix string) (out []facts.Branch, err error) {
	all, err := listAll(ctx, s, prefix, prefix)
	if err != nil {
		return nil, err
	}
	for _, epoch := range slices.Sorted(maps.Keys(all.parts)) {
		b, err := getBranch(ctx, s, prefix, epoch)
		switch {
		case errors.Is(err, store.NotFound), errors.Is(err, PartDamaged), errors.Is(err, FormatUnknown):
		case err != nil:
			return nil, err
		default:
			out = append(out, b)
		}
	}
	return out, nil
}

// listing is what a store lists of an archive.
type listing struct {
	// parts are their numbers, by epoch; an epoch of which only the branch is listed has none.
	parts map[int64][]int64
	// branches are the epochs of which the branch is listed.
	branches map[int64]bool
	// singles are those that are objects of their own.
	singles map[facts.Key]facts.Single
	bundles []facts.Bundle
	// indexes by the last part of each.
	indexes []facts.Key
}

func epochPrefix(prefix string, epoch int64) string { return fmt.Sprintf("%s%010d/", prefix, epoch) }

// listAll lists what lies below a place in the archive.
func listAll(ctx context.Context, s store.Store, below, prefix string) (*listing, error) {
	out := &listing{parts: map[int64][]int64{}, branches: map[int64]bool{}, singles: map[facts.Key]facts.Single{}}
	for object, err := range s.List(ctx, below) {
		if err != nil {
			return nil, err
		}
		k, ok := readKey(prefix, object.Key)
		last, isIndex := readIndexKey(prefix, object.Key)
		b, isBundle := readBundleKey(prefix, object.Key)
		switch {
		case isBundle:
			b.Written = object.Modified
			out.bundles = append(out.bundles, b)
			out.parts[b.Epoch] = append(out.parts[b.Epoch], []int64{}...)
		case isIndex:
			out.indexes = append(out.indexes, last)
		case !ok: // nothing of ours
		case k.Sequence == 0:
			out.branches[k.Epoch] = true
			out.parts[k.Epoch] = append(out.parts[k.Epoch], []int64{}...)
		default:
			out.parts[k.Epoch] = append(out.parts[k.Epoch], k.Sequence)
			out.singles[k] = facts.Single{Key: k, Stored: object.Size, Written: object.Modified}
		}
	}
	return out, nil
}

// eachOf does something for each key, for so many at a time, until one fails.
func eachOf[K any](ctx context.Context, keys []K, limit int, do func(context.Context, K) error) error {
	all, each := errgroup.WithContext(ctx)
	all.SetLimit(limit)
	for _, key := range keys {
		if each.Err() != nil {
			break
		}
		all.Go(func() error { return do(each, key) })
	}
	return cmp.Or(all.Wait(), context.Cause(ctx))
}
