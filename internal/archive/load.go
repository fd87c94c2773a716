package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// Load finds out what a store holds; plain parts as runs. It does not rely on listings for what was
// written last: it tries the numbers that they leave out, and those that come next. An object that is
// damaged, or of an unknown format, is told as one that cannot be read; one that was deleted meanwhile
// is left out. An error is that the store does not answer.
func Load(ctx context.Context, s store.Store, prefix string) (facts.Archive, error) {
	l := &loader{store: s, prefix: prefix, told: told{}, last: map[int64]int64{}, newest: -1}
	for piece, err := range listPieces(ctx, s, prefix, prefix) {
		if err == nil {
			err = l.piece(ctx, piece)
		}
		if err != nil {
			return l.out, err
		}
	}
	err := l.branches(ctx)
	if err != nil {
		return l.out, err
	}
	slices.SortFunc(l.out.Parts, byNumber)
	l.out.Parts = slices.CompactFunc(l.out.Parts, func(a, b facts.Part) bool { return a.Key() == b.Key() })
	l.out.Mark, err = getMark(ctx, s, prefix, l.newest)
	return l.out, err
}

func byNumber(a, b facts.Part) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
}

// Branches reads how the epochs began that a listing has; what is damaged, or of an unknown
// format, is left out.
func Branches(ctx context.Context, s store.Store, prefix string) (out []facts.Branch, err error) {
	for piece, err := range listPieces(ctx, s, prefix, prefix) {
		if err != nil {
			return nil, err
		}
		if !piece.last {
			continue
		}
		b, err := getBranch(ctx, s, prefix, piece.epoch)
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

func epochPrefix(prefix string, epoch int64) string { return fmt.Sprintf("%s%010d/", prefix, epoch) }

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
