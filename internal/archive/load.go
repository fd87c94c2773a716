package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
	// asks is how often the store is asked for what it lists and does not find, and askPause is the first
	// pause between two of them.
	asks, askPause = 3, time.Second
)

// Load finds out what a store holds; plain parts as runs. It does not rely on listings for what was
// written last: it tries the numbers that they leave out, and those that come next. An object that is
// damaged, or of an unknown format, is told as one that cannot be read; one that was deleted meanwhile
// is left out. But nobody deletes a branch, or the last part of an epoch, and nothing behind it would show
// that it is missing: where the store lists it and does not find it, it is asked again, a few times, and then
// that is told as one that cannot be read, too. An error is that the store does not answer.
func Load(ctx context.Context, s store.Store, prefix string) (facts.Archive, error) {
	for n, pause := 1, askPause; ; n, pause = n+1, 2*pause {
		l := &loader{store: s, prefix: prefix, told: told{}, last: map[int64]int64{}, newest: -1,
			listed: map[int64]newestListed{}}
		if err := l.load(ctx); err != nil || !l.lacks || n == asks {
			return l.out, err
		}
		if err := sleep(ctx, pause); err != nil {
			return l.out, err
		}
	}
}

// load reads all.
func (l *loader) load(ctx context.Context) error {
	for piece, err := range listPieces(ctx, l.store, l.prefix, l.prefix) {
		if err == nil {
			err = l.piece(ctx, piece)
		}
		if err != nil {
			return err
		}
	}
	l.lacking()
	err := l.branches(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(l.out.Parts, byNumber)
	l.out.Parts = slices.CompactFunc(l.out.Parts, func(a, b facts.Part) bool { return a.Key() == b.Key() })
	l.out.Mark, err = getMark(ctx, l.store, l.prefix, l.newest)
	return err
}

func byNumber(a, b facts.Part) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
}

// Branches reads how the epochs began that a listing has; what is damaged, or of an unknown
// format, is left out. One that is listed and not found is ErrListedAbsent of internal/core/archive.
func Branches(ctx context.Context, s store.Store, prefix string) (out []facts.Branch, err error) {
	isListed := false
	for piece, err := range listPieces(ctx, s, prefix, prefix) {
		if err != nil {
			return nil, err
		}
		if isListed = isListed || piece.branch; !piece.last {
			continue
		}
		b, err := getBranch(ctx, s, prefix, piece.epoch)
		switch {
		case errors.Is(err, store.NotFound) && isListed:
			return nil, fmt.Errorf("%s: %w", branchKey(prefix, piece.epoch), facts.ErrListedAbsent)
		case errors.Is(err, store.NotFound), errors.Is(err, PartDamaged), errors.Is(err, FormatUnknown):
		case err != nil:
			return nil, err
		default:
			out = append(out, b)
		}
		isListed = false
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
