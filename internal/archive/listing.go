package archive

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// pieceParts and pieceBundles are how many of them a piece of a listing has before it ends behind an
// index; with twice as many it ends wherever it can. Tests have less.
var pieceParts, pieceBundles = 4 * facts.BundleParts, 64

// listing is a piece of what a store lists of an epoch: consecutive objects. What a bundle holds is
// in the same piece, as far as it lies beside it.
type listing struct {
	epoch int64
	// numbers are those of the singles, in order: the parts that are objects of their own.
	numbers []int64
	singles map[facts.Key]facts.Single
	bundles []facts.Bundle
	// indexes by the last part of each, and summaries, of which each is in the piece of the first of
	// its bundles that is left, or before it.
	indexes   []facts.Key
	summaries []listedSummary
	// branch: that of the epoch is listed in this piece, and last: nothing of the epoch is behind it.
	branch, last bool
	// reach is the last part that any of its objects holds or tells of, and indexed that the object
	// that was listed last is an index.
	reach   int64
	indexed bool
}

type listedSummary struct {
	facts.Span
	written time.Time
}

func newListing(epoch, reach int64) *listing {
	return &listing{epoch: epoch, reach: reach, singles: map[facts.Key]facts.Single{}}
}

// isOfEpoch reports whether the piece lists a part, a bundle or the branch of its epoch, and not
// only what goes with them.
func (l *listing) isOfEpoch() bool { return l.branch || len(l.numbers)+len(l.bundles) > 0 }

// hasBeside reports whether a part that a bundle holds is an object of its own, too.
func (l *listing) hasBeside(b facts.Bundle) bool {
	i, _ := slices.BinarySearch(l.numbers, b.First)
	for ; i < len(l.numbers) && l.numbers[i] <= b.Last; i++ {
		if _, is := l.singles[facts.Key{Epoch: l.epoch, Sequence: l.numbers[i]}]; is {
			return true
		}
	}
	return false
}

// isFull reports whether the piece ends before the part of this number, or before the bundle that
// begins with it. It ends where no object in it holds or tells of that part: behind an index when
// it is large enough, and anywhere when it is twice as large.
func (l *listing) isFull(number int64) bool {
	size := max(len(l.numbers)/pieceParts, len(l.bundles)/pieceBundles)
	return number > l.reach && (size >= 2 || size == 1 && l.indexed)
}

// listed is what one object is. Its number is that of its first part; an index has the last of its.
type listed struct {
	key     facts.Key
	bundle  facts.Bundle
	isIndex bool
	summary *listedSummary
}

// ofArchive tells what an object is; false if it is no branch, part, index, bundle or summary.
func ofArchive(prefix string, o store.Object) (is listed, ok bool) {
	if is.key, ok = readKey(prefix, o.Key); ok {
		return is, true
	}
	if is.key, is.isIndex = readIndexKey(prefix, o.Key); is.isIndex {
		return is, true
	}
	if is.bundle, ok = readBundleKey(prefix, o.Key); ok {
		is.key = facts.Key{Epoch: is.bundle.Epoch, Sequence: is.bundle.First}
		is.bundle.Written, is.bundle.Stored = o.Modified, o.Size
		return is, true
	}
	of, ok := readSummaryKey(prefix, o.Key)
	is.key, is.summary = facts.Key{Epoch: of.Epoch, Sequence: of.First}, &listedSummary{of, o.Modified}
	return is, ok
}

func (l *listing) add(is listed, o store.Object) {
	switch {
	case is.summary != nil: // where it is listed says nothing of how far the piece reaches
		l.summaries = append(l.summaries, *is.summary)
		return
	case is.isIndex:
		l.indexes = append(l.indexes, is.key)
	case is.bundle.Last > 0:
		l.bundles = append(l.bundles, is.bundle)
	case is.key.Sequence == 0:
		l.branch = true
	default:
		l.numbers = append(l.numbers, is.key.Sequence)
		l.singles[is.key] = facts.Single{Key: is.key, Stored: o.Size, Written: o.Modified}
	}
	l.indexed = is.isIndex
	l.reach = max(l.reach, is.key.Sequence, is.bundle.Last)
}

// listPieces lists what lies below a place in the archive, piece by piece: all of it together would
// need memory for each part. Pieces come in the order of the keys, each epoch has one that is its
// last, and behind an error nothing comes.
func listPieces(ctx context.Context, s store.Store, below, prefix string) iter.Seq2[*listing, error] {
	return func(yield func(*listing, error) bool) {
		c, before := &cutter{yield: yield}, ""
		for object, err := range s.List(ctx, below) {
			if err == nil && object.Key < before {
				err = fmt.Errorf("the store lists %s behind %s: it has to list by name", object.Key, before)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			is, ok := ofArchive(prefix, object)
			if !ok || object.Key == before {
				continue
			}
			before = object.Key
			if !c.hasRoom(is) {
				return
			}
			c.piece.add(is, object)
		}
		if c.piece != nil {
			c.piece.last = true
			yield(c.piece, nil)
		}
	}
}

// cutter divides a listing into pieces.
type cutter struct {
	piece *listing // nil before the first
	yield func(*listing, error) bool
}

// hasRoom has a piece for an object; false if nobody wants more.
func (c *cutter) hasRoom(is listed) bool {
	p := c.piece
	switch {
	case p == nil:
		c.piece = newListing(is.key.Epoch, 0)
		return true
	case p.epoch != is.key.Epoch:
		p.last = true
		c.piece = newListing(is.key.Epoch, 0)
	case !is.isIndex && p.isFull(is.key.Sequence):
		c.piece = newListing(p.epoch, p.reach)
	default:
		return true
	}
	return c.yield(p, nil)
}
