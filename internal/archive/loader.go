package archive

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// loader is one Load.
type loader struct {
	store  store.Store
	prefix string
	all    *listing
	// covered is what lies in bundles that were read.
	covered facts.Cover
	// newest epoch that is known; -1 if there is none.
	newest int64

	mu  sync.Mutex
	out facts.Archive
}

// bundles reads what lies in bundles. Of a bundle that cannot be read, those parts cannot be read
// that are no object of their own, and lie in no other bundle.
func (l *loader) bundles(ctx context.Context) error {
	var sound []facts.Bundle
	var differ []facts.Part
	unread := map[facts.Key]error{}
	overlaps := facts.Overlapping(l.all.bundles)
	err := eachOf(ctx, l.all.bundles, headReaders, func(ctx context.Context, b facts.Bundle) error {
		parts, other, err := l.bundled(ctx, b, overlaps[b])
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case errors.Is(err, store.NotFound):
		case err == nil:
			sound, differ = append(sound, b), append(differ, other...)
			l.out.Parts = append(l.out.Parts, parts...)
		case !isFinal(err):
			return err
		default:
			for key := (facts.Key{Epoch: b.Epoch, Sequence: b.First}); key.Sequence <= b.Last; key.Sequence++ {
				unread[key] = err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.covered = facts.CoverOf(sound)
	for key, why := range unread {
		if _, isSingle := l.all.singles[key]; !isSingle && !l.covered.Holds(key) {
			err = errors.Join(err, l.unreadable(key, why))
		}
	}
	return errors.Join(err, eachOf(ctx, differ, readers, func(ctx context.Context, p facts.Part) error {
		return isSameBeside(ctx, l.store, l.prefix, p)
	}))
}

// bundled reads what a bundle holds, in runs. Others are those beside which an object lies
// that has another size.
func (l *loader) bundled(ctx context.Context, b facts.Bundle, overlaps bool) (parts, others []facts.Part, err error) {
	i, err := getBundleHead(ctx, l.store, l.prefix, b)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range i.Parts {
		if single, listed := l.all.singles[e.Key()]; listed && single.Stored != e.Stored {
			others = append(others, e.Part)
		}
	}
	parts = i.parts()
	if !overlaps {
		parts = facts.RunsOf(parts)
	}
	return parts, others, nil
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

// indexes reads the parts that lie by themselves as an index knows them, and takes them off the list.
func (l *loader) indexes(ctx context.Context) error {
	return eachOf(ctx, l.all.indexes, readers, func(ctx context.Context, last facts.Key) error {
		i, err := getIndex(ctx, l.store, l.prefix, last)
		if err != nil || i == nil {
			return err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, e := range i.Parts {
			single, listed := l.all.singles[e.Key()]
			if listed && single.Stored == e.Stored && !l.covered.Holds(e.Key()) {
				l.out.Parts = append(l.out.Parts, e.Part)
				delete(l.all.singles, e.Key())
			}
		}
		return nil
	})
}

// singles reads the parts that no bundle and no index has.
func (l *loader) singles(ctx context.Context) error {
	for epoch := range l.all.parts {
		err := eachOf(ctx, l.keysOf(epoch), readers, func(ctx context.Context, key facts.Key) error {
			part, err := getFacts(ctx, l.store, l.prefix, key)
			if errors.Is(err, store.NotFound) {
				return nil
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.note(key, part, err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keysOf are the parts of an epoch that have to be read, and those that the listing leaves out
// between two others.
func (l *loader) keysOf(epoch int64) (keys []facts.Key) {
	spans := l.spansOf(epoch)
	behind := int64(0)
	for _, s := range spans {
		if behind > 0 {
			for n := max(behind, s.First-maxHole); n < s.First; n++ {
				keys = append(keys, facts.Key{Epoch: epoch, Sequence: n})
			}
		}
		first := facts.Key{Epoch: epoch, Sequence: s.First}
		if _, isLeft := l.all.singles[first]; isLeft && s.First >= behind && !l.covered.Holds(first) {
			keys = append(keys, first)
		}
		behind = max(behind, s.Last+1)
	}
	return keys
}

// spansOf are what is listed of an epoch by itself, and what its bundles hold that were read, by
// their first parts.
func (l *loader) spansOf(epoch int64) (spans []facts.Span) {
	for _, n := range l.all.parts[epoch] {
		spans = append(spans, facts.Span{Epoch: epoch, First: n, Last: n})
	}
	for _, b := range l.covered {
		if b.Epoch == epoch {
			spans = append(spans, facts.Span{Epoch: epoch, First: b.First, Last: b.Last})
		}
	}
	slices.SortFunc(spans, func(a, b facts.Span) int { return cmp.Compare(a.First, b.First) })
	return spans
}

// branches reads how the epochs began, also those that a listing may not know of yet, and the parts
// that follow the last one of each that is known.
func (l *loader) branches(ctx context.Context) error {
	for epoch := range l.all.parts {
		l.newest = max(l.newest, epoch)
	}
	for epoch := l.newest + 1; epoch <= l.newest+facts.LookBeyond; epoch++ {
		l.all.parts[epoch] = nil
	}
	for _, epoch := range slices.Sorted(maps.Keys(l.all.parts)) {
		b, err := getBranch(ctx, l.store, l.prefix, epoch)
		if errors.Is(err, store.NotFound) {
			continue
		}
		if err == nil {
			l.newest, l.out.Branches = max(l.newest, epoch), append(l.out.Branches, b)
		} else if err = l.unreadable(facts.Key{Epoch: epoch}, err); err != nil {
			return err
		}
		if err := l.behind(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
}

// behind reads the parts that follow the last one of an epoch that is known.
func (l *loader) behind(ctx context.Context, epoch int64) error {
	key := facts.Key{Epoch: epoch}
	for _, s := range l.spansOf(epoch) {
		key.Sequence = max(key.Sequence, s.Last)
	}
	for {
		key.Sequence++
		part, err := getFacts(ctx, l.store, l.prefix, key)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		if err := l.note(key, part, err); err != nil {
			return err
		}
	}
}

// unreadable notes an object that cannot be read, and gives any other error back.
func (l *loader) unreadable(key facts.Key, err error) error {
	why := facts.PartDamaged
	switch {
	case errors.Is(err, FormatUnknown):
		why = facts.FormatUnknown
	case !errors.Is(err, PartDamaged):
		return err
	}
	l.out.Unreadable = append(l.out.Unreadable, facts.Unreadable{Key: key, Reason: why, Message: err.Error()})
	return nil
}

// note notes what reading the facts of a part has given.
func (l *loader) note(key facts.Key, part facts.Part, err error) error {
	if err != nil {
		return l.unreadable(key, err)
	}
	l.out.Parts = append(l.out.Parts, part)
	return nil
}
