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
	// last part of each epoch that is known, and the newest epoch; -1 if there is none.
	last   map[int64]int64
	newest int64
	// listed is what the listing has of each epoch, and nobody removes; lacks that some of it was not found.
	listed map[int64]newestListed
	lacks  bool

	// all is the piece of the listing that is read, told what summaries tell, covered what
	// lies in bundles of it that were read or told of, and singles what was read of the parts in it that
	// are objects of their own. Other ones than their index tells are strange.
	all     *listing
	told    told
	covered facts.Cover
	strange map[facts.Key]bool

	mu      sync.Mutex
	singles []facts.Part
	out     facts.Archive
}

// newestListed is what the listing has of an epoch: the last part, and the object that holds it, and whether
// it has the branch.
type newestListed struct {
	last   int64
	object string
	branch bool
}

// note notes what a piece of the listing has.
func (l *loader) note(piece *listing) {
	is := l.listed[piece.epoch]
	is.branch = is.branch || piece.branch
	for _, n := range piece.numbers {
		if n > is.last {
			is.last, is.object = n, partKey(l.prefix, facts.Key{Epoch: piece.epoch, Sequence: n})
		}
	}
	for _, b := range piece.bundles {
		if b.Last > is.last {
			is.last, is.object = b.Last, bundleKey(l.prefix, b)
		}
	}
	l.listed[piece.epoch] = is
}

// lacking notes the last part of each epoch that is listed and was not found.
func (l *loader) lacking() {
	lacks := maps.Clone(l.listed)
	for _, p := range l.out.Parts {
		if is, last := p.Span(), lacks[p.Epoch].last; is.First <= last && last <= is.Last {
			delete(lacks, p.Epoch)
		}
	}
	for _, u := range l.out.Unreadable {
		if u.Key.Sequence == lacks[u.Key.Epoch].last {
			delete(lacks, u.Key.Epoch)
		}
	}
	for _, epoch := range slices.Sorted(maps.Keys(lacks)) {
		if is := lacks[epoch]; is.last > 0 {
			l.absent(facts.Key{Epoch: epoch, Sequence: is.last}, is.object)
		}
	}
}

// absent notes what is listed and was not found.
func (l *loader) absent(key facts.Key, object string) {
	l.lacks = true
	l.out.Unreadable = append(l.out.Unreadable, facts.Unreadable{Key: key, Reason: facts.ListedAbsent,
		Message: object + ": " + facts.ErrListedAbsent.Error()})
}

// piece reads what a piece of the listing has. What it needs memory for is put into runs.
func (l *loader) piece(ctx context.Context, piece *listing) error {
	l.note(piece)
	l.all, l.covered, l.singles, l.strange = piece, nil, nil, map[facts.Key]bool{}
	for _, step := range []func(context.Context) error{l.summaries, l.bundles, l.indexes, l.beside} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	l.told.pass(piece)
	slices.SortFunc(l.singles, byNumber)
	for all := l.singles; len(all) > 0; {
		n := slices.IndexFunc(all, func(p facts.Part) bool { return l.strange[p.Key()] })
		if n < 0 {
			n = len(all)
		}
		l.out.Parts = append(l.out.Parts, facts.RunsOf(all[:n])...)
		if n < len(all) {
			l.out.Parts, n = append(l.out.Parts, all[n]), n+1
		}
		all = all[n:]
	}
	return nil
}

func (l *loader) summaries(ctx context.Context) error {
	return l.told.read(ctx, l.store, l.prefix, l.all)
}

// summarized takes what summaries tell, and gives the bundles that have to be read: also one of which
// a part lies beside it.
func (l *loader) summarized(overlaps map[facts.Bundle]bool) (known, unknown []facts.Bundle) {
	for _, b := range l.all.bundles {
		runs := l.told.runs(b)
		if runs == nil || overlaps[b] || l.all.hasBeside(b) {
			unknown = append(unknown, b)
			continue
		}
		known, l.out.Parts = append(known, b), append(l.out.Parts, runs...)
	}
	return known, unknown
}

// bundles reads what lies in bundles, and is in no summary. Of a bundle that cannot be read, those parts cannot be read
// that are no object of their own, and lie in no other bundle.
func (l *loader) bundles(ctx context.Context) error {
	var differ []facts.Part
	unread := map[facts.Key]error{}
	overlaps := facts.Overlapping(l.all.bundles)
	sound, unknown := l.summarized(overlaps)
	err := eachOf(ctx, unknown, headReaders, func(ctx context.Context, b facts.Bundle) error {
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
			switch {
			case !listed || l.covered.Holds(e.Key()):
			case single.Stored == e.Stored:
				l.singles = append(l.singles, e.Part)
				delete(l.all.singles, e.Key())
			default:
				l.strange[e.Key()] = true
			}
		}
		return nil
	})
}

// beside reads the parts that no bundle and no index has.
func (l *loader) beside(ctx context.Context) error {
	return eachOf(ctx, l.keys(), readers, func(ctx context.Context, key facts.Key) error {
		part, err := getFacts(ctx, l.store, l.prefix, key)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if err != nil {
			return l.unreadable(key, err)
		}
		l.singles = append(l.singles, part)
		return nil
	})
}

// keys are the parts of the piece that have to be read, and those that the listing leaves out between
// two others. The last part of the epoch that is known is noted.
func (l *loader) keys() (keys []facts.Key) {
	epoch := l.all.epoch
	last, isKnown := l.last[epoch]
	if !isKnown && !l.all.isOfEpoch() {
		return nil
	}
	for _, s := range l.spans() {
		if last > 0 {
			for n := max(last+1, s.First-maxHole); n < s.First; n++ {
				keys = append(keys, facts.Key{Epoch: epoch, Sequence: n})
			}
		}
		first := facts.Key{Epoch: epoch, Sequence: s.First}
		if _, isLeft := l.all.singles[first]; isLeft && s.First > last && !l.covered.Holds(first) {
			keys = append(keys, first)
		}
		last = max(last, s.Last)
	}
	l.last[epoch] = last
	return keys
}

// spans are what is listed of the piece by itself, and what its bundles hold that were read, by their
// first parts.
func (l *loader) spans() (spans []facts.Span) {
	for _, n := range l.all.numbers {
		spans = append(spans, facts.Span{Epoch: l.all.epoch, First: n, Last: n})
	}
	for _, b := range l.covered {
		spans = append(spans, facts.Span{Epoch: b.Epoch, First: b.First, Last: b.Last})
	}
	slices.SortFunc(spans, func(a, b facts.Span) int { return cmp.Compare(a.First, b.First) })
	return spans
}

// branches reads how the epochs began, also those that a listing may not know of yet, and the parts
// that follow the last one of each that is known.
func (l *loader) branches(ctx context.Context) error {
	for epoch := range l.last {
		l.newest = max(l.newest, epoch)
	}
	for epoch := l.newest + 1; epoch <= l.newest+facts.LookBeyond; epoch++ {
		l.last[epoch] = 0
	}
	for _, epoch := range slices.Sorted(maps.Keys(l.last)) {
		b, err := getBranch(ctx, l.store, l.prefix, epoch)
		isAbsent, key := errors.Is(err, store.NotFound), facts.Key{Epoch: epoch}
		if isAbsent && !l.listed[epoch].branch {
			continue
		}
		switch {
		case isAbsent:
			l.absent(key, branchKey(l.prefix, epoch))
		case err == nil:
			l.newest, l.out.Branches = max(l.newest, epoch), append(l.out.Branches, b)
		default:
			if err := l.unreadable(key, err); err != nil {
				return err
			}
		}
		if err := l.behind(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
}

// behind reads the parts that follow the last one of an epoch that is known.
func (l *loader) behind(ctx context.Context, epoch int64) error {
	for key := (facts.Key{Epoch: epoch, Sequence: l.last[epoch] + 1}); ; key.Sequence++ {
		part, err := getFacts(ctx, l.store, l.prefix, key)
		if errors.Is(err, store.NotFound) {
			return nil
		}
		if err == nil {
			l.out.Parts = append(l.out.Parts, part)
		} else if err = l.unreadable(key, err); err != nil {
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
