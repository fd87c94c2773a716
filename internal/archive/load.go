package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// readers is how many parts are looked at at a time.
const readers = 16

// maxHole is how many parts that a listing leaves out between two others are tried.
const maxHole = 1000

// Load finds out what a store holds. It does not rely on listings for what was written
// last: it tries the numbers that they leave out, and those that come next. An object that is
// damaged, or of an unknown format, is told as one that cannot be read; one that was deleted
// meanwhile is left out. An error is that the store does not answer.
func Load(ctx context.Context, s store.Store, prefix string) (facts.Archive, error) {
	var out facts.Archive
	all, err := listAll(ctx, s, prefix, prefix)
	if err != nil {
		return out, err
	}
	known, err := readIndexes(ctx, s, prefix, all)
	if err != nil {
		return out, err
	}
	if err := readBundles(ctx, s, prefix, all, known, &out); err != nil {
		return out, err
	}
	var parts []facts.Key
	newest := int64(-1)
	for epoch := range all.parts {
		newest = max(newest, epoch)
		for _, key := range all.keysOf(epoch) {
			if part, is := known[key]; is {
				out.Parts = append(out.Parts, part)
			} else {
				parts = append(parts, key)
			}
		}
	}
	if err = readParts(ctx, s, prefix, parts, &out); err != nil {
		return out, err
	}
	for epoch := newest + 1; epoch <= newest+facts.LookBeyond; epoch++ {
		all.parts[epoch] = nil
	}
	for epoch, sequences := range all.parts {
		b, err := getBranch(ctx, s, prefix, epoch)
		if errors.Is(err, store.NotFound) {
			continue
		}
		if err == nil {
			out.Branches = append(out.Branches, b)
		} else if err = noteUnreadable(&out, facts.Key{Epoch: epoch}, err); err != nil {
			return out, err
		}
		last := facts.Key{Epoch: epoch, Sequence: slices.Max(append(sequences, 0))}
		if err := partsBehind(ctx, s, prefix, last, &out); err != nil {
			return out, err
		}
	}
	for _, b := range out.Branches {
		newest = max(newest, b.Epoch)
	}
	slices.SortFunc(out.Parts, func(a, b facts.Part) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
	out.Mark, err = getMark(ctx, s, prefix, newest)
	return out, err
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

// keysOf are the parts of an epoch, and those that the listing leaves out between two others.
func (l *listing) keysOf(epoch int64) (keys []facts.Key) {
	sequences := l.parts[epoch]
	slices.Sort(sequences)
	sequences = slices.Compact(sequences)
	for i, n := range sequences {
		first := n
		if i > 0 {
			first = max(sequences[i-1]+1, n-maxHole)
		}
		for ; first <= n; first++ {
			keys = append(keys, facts.Key{Epoch: epoch, Sequence: first})
		}
	}
	return keys
}

// readIndexes are the parts that are listed as an index knows them.
func readIndexes(ctx context.Context, s store.Store, prefix string, l *listing) (map[facts.Key]facts.Part, error) {
	known := map[facts.Key]facts.Part{}
	var mu sync.Mutex
	err := eachOf(ctx, l.indexes, readers, func(ctx context.Context, last facts.Key) error {
		i, err := getIndex(ctx, s, prefix, last)
		if err != nil || i == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, e := range i.Parts {
			if single, listed := l.singles[e.Key()]; listed && single.Stored == e.Stored {
				known[e.Key()] = e.Part
			}
		}
		return nil
	})
	return known, err
}

// readBundles adds the parts that lie in bundles to those that are known, and to the listing. Of a
// bundle that cannot be read, those parts cannot be read that are no object of their own.
func readBundles(ctx context.Context, s store.Store, prefix string, l *listing, known map[facts.Key]facts.Part,
	to *facts.Archive) error {
	var mu sync.Mutex
	unread := map[facts.Key]error{}
	var differ []facts.Part
	err := eachOf(ctx, l.bundles, readers, func(ctx context.Context, b facts.Bundle) error {
		i, err := getBundleHead(ctx, s, prefix, b)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			for _, e := range i.Parts {
				known[e.Key()] = e.Part
				l.parts[b.Epoch] = append(l.parts[b.Epoch], e.Sequence)
				if single, listed := l.singles[e.Key()]; listed && single.Stored != e.Stored {
					differ = append(differ, e.Part)
				}
			}
		case !isFinal(err):
			return err
		default:
			for key := (facts.Key{Epoch: b.Epoch, Sequence: b.First}); key.Sequence <= b.Last; key.Sequence++ {
				unread[key] = err
			}
		}
		return nil
	})
	for key, why := range unread {
		_, isKnown := known[key]
		if _, isSingle := l.singles[key]; !isKnown && !isSingle {
			err = errors.Join(err, noteUnreadable(to, key, why))
		}
	}
	return errors.Join(err, eachOf(ctx, differ, readers, func(ctx context.Context, p facts.Part) error {
		return isSameBeside(ctx, s, prefix, p)
	}))
}

// isSameBeside refuses a part that lies by itself and tells of other transactions than in its
// bundle: nobody knows which of them are wanted. One that is only damaged is passed over.
func isSameBeside(ctx context.Context, s store.Store, prefix string, bundled facts.Part) error {
	single, err := getFacts(ctx, s, prefix, bundled.Key())
	switch {
	case errors.Is(err, store.NotFound), isFinal(err), err == nil && single.IsSame(bundled):
		return nil
	case err != nil:
		return err
	}
	return refuse(PartConflict, "part %d of epoch %d lies by itself, with %s, and in a bundle, with %s: move one of "+
		"them elsewhere", bundled.Sequence, bundled.Epoch, single.GTIDs.Abbreviate(4), bundled.GTIDs.Abbreviate(4))
}

// noteUnreadable notes an object that cannot be read, and gives any other error back.
func noteUnreadable(to *facts.Archive, key facts.Key, err error) error {
	why := facts.PartDamaged
	switch {
	case errors.Is(err, FormatUnknown):
		why = facts.FormatUnknown
	case !errors.Is(err, PartDamaged):
		return err
	}
	to.Unreadable = append(to.Unreadable, facts.Unreadable{Key: key, Reason: why, Message: err.Error()})
	return nil
}

// notePart notes what reading the facts of a part has given.
func notePart(to *facts.Archive, key facts.Key, part facts.Part, err error) error {
	if err != nil {
		return noteUnreadable(to, key, err)
	}
	to.Parts = append(to.Parts, part)
	return nil
}

// partsBehind reads the parts that follow one that was listed.
func partsBehind(ctx context.Context, s store.Store, prefix string, key facts.Key, to *facts.Archive) error {
	for {
		key.Sequence++
		part, err := getFacts(ctx, s, prefix, key)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		if err := notePart(to, key, part, err); err != nil {
			return err
		}
	}
}

// readParts reads the facts of parts.
func readParts(ctx context.Context, s store.Store, prefix string, keys []facts.Key, to *facts.Archive) error {
	var mu sync.Mutex
	return eachOf(ctx, keys, readers, func(ctx context.Context, key facts.Key) error {
		part, err := getFacts(ctx, s, prefix, key)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		return notePart(to, key, part, err)
	})
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
