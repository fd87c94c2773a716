package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

const (
	// mergeReaders is how many parts are in memory decompressed, of those that are merged.
	mergeReaders = 4
	// mergeFailures is how many bundles may fail to take the place of their parts, as where a store
	// lets nobody delete, before the others are left for the next time.
	mergeFailures = 3
)

// Merged is what Merge did.
type Merged struct {
	// Parts were written into as many Bundles, Removed objects lie no more beside a bundle, and
	// Summaries were written.
	Bundles, Parts, Removed, Summaries int
	// Damaged are parts and bundles that are not what was written. They are left as they are.
	Damaged []error
}

// Merge writes small parts into bundles, and removes the objects of those that have been in one
// for a while and are whole there. At any moment, and wherever it is broken off, each part is
// in the archive. What fails does not keep it from the rest. now is by the store's clock, and not
// later than by the clock here.
func Merge(ctx context.Context, s store.Store, prefix string, now time.Time) (Merged, error) {
	compress, err := newCompressor()
	if err != nil {
		return Merged{}, err
	}
	m := &merger{store: s, prefix: prefix, compress: compress, now: now, told: told{}}
	epochs, err := listBranches(ctx, s, prefix)
	if err != nil {
		return m.done, fmt.Errorf("listing the archive: %w", err)
	}
	for _, epoch := range epochs {
		err = errors.Join(err, m.epoch(ctx, epoch, epoch < slices.Max(epochs)))
		if ctx.Err() != nil {
			return m.done, context.Cause(ctx)
		}
	}
	return m.done, err
}

// merger is one Merge.
type merger struct {
	store    store.Store
	prefix   string
	compress *compressor
	now      time.Time
	// all is what is listed of a piece of an epoch, and before are the parts of the piece before it
	// that are still objects of their own. told is what summaries tell.
	all    *listing
	before map[facts.Key]facts.Single
	told   told
	done   Merged
	// failures are bundles that could not take the place of their parts.
	failures int
}

// epoch merges the parts of one epoch, piece by piece from the oldest on: so memory is needed for no
// more than a piece, and what was done counts wherever it is broken off.
func (m *merger) epoch(ctx context.Context, epoch int64, isOver bool) (err error) {
	deciding, failed := facts.Merging{Now: m.now}, error(nil)
	summarizing := facts.Summarizing{Now: m.now, Size: summaryBundles}
	m.before = nil
	for piece, listed := range listPieces(ctx, m.store, epochPrefix(m.prefix, epoch), m.prefix) {
		if listed != nil {
			return errors.Join(err, failed, fmt.Errorf("listing epoch %d of the archive: %w", epoch, listed))
		}
		m.all = piece
		if failed == nil {
			failed = m.bundle(ctx, &deciding)
		}
		err = errors.Join(err, m.replaceAll(ctx))
		if failed == nil && err == nil {
			err = m.dropIndexes(ctx)
		}
		if failed == nil {
			failed = m.summarize(ctx, &summarizing, isOver)
		}
		if ctx.Err() != nil {
			break
		}
		m.before = piece.singles
	}
	return errors.Join(err, failed)
}

// replaceAll removes the objects of the parts of which a bundle has taken the place a while ago.
func (m *merger) replaceAll(ctx context.Context) (err error) {
	for _, b := range facts.Settled(m.all.bundles, m.now) {
		if ctx.Err() != nil || m.failures >= mergeFailures {
			break
		}
		if failed := m.replace(ctx, b); failed != nil {
			m.failures++
			err = errors.Join(err, fmt.Errorf("bundle %d to %d of epoch %d: %w", b.First, b.Last, b.Epoch, failed))
		}
	}
	return err
}

// replace removes the objects of the parts that a bundle holds.
func (m *merger) replace(ctx context.Context, b facts.Bundle) error {
	var beside []facts.Single
	for n := b.First; n <= b.Last; n++ {
		if single, is := m.all.singles[facts.Key{Epoch: b.Epoch, Sequence: n}]; is {
			beside = append(beside, single)
		}
	}
	if len(beside) == 0 {
		return nil
	}
	o, err := openBundle(ctx, m.store, m.prefix, b)
	if err == nil {
		err = o.isWhole()
	}
	if isFinal(err) {
		if len(beside) == int(b.Last-b.First+1) {
			err = fmt.Errorf("%w (all of its parts lie beside it: delete the bundle, and it is written again)", err)
		}
		m.done.Damaged = append(m.done.Damaged, err)
		return nil
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return eachOf(ctx, beside, readers, func(ctx context.Context, single facts.Single) error {
		key := single.Key
		isSame, err := m.isIn(ctx, o, single)
		if err == nil && isSame {
			err = m.store.Delete(ctx, partKey(m.prefix, key))
		}
		if err != nil {
			return fmt.Errorf("removing part %d, which is in it: %w", key.Sequence, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if !isSame {
			m.done.Damaged = append(m.done.Damaged, refuse(PartConflict,
				"part %d of epoch %d lies by itself and in a bundle, and they differ", key.Sequence, key.Epoch))
			return nil
		}
		delete(m.all.singles, key)
		m.done.Removed++
		return nil
	})
}

// isIn reports whether the object of a part is the one that a bundle has. By its size and its age
// it is; one that is younger than the bundle is read.
func (m *merger) isIn(ctx context.Context, o *opened, single facts.Single) (bool, error) {
	entry := o.parts[single.Key.Sequence-o.First]
	if single.Stored != entry.Stored || !single.Written.After(o.Written) {
		return single.Stored == entry.Stored, nil
	}
	object, err := m.get(ctx, single.Key)
	return err == nil && digest(object) == entry.Object, err
}

// dropIndexes removes those of which no part is an object of its own any more: a bundle has its own.
func (m *merger) dropIndexes(ctx context.Context) error {
	cover := facts.CoverOf(m.all.bundles)
	for _, last := range m.all.indexes {
		if !cover.Holds(last) {
			continue
		}
		i, err := getIndex(ctx, m.store, m.prefix, last)
		if err != nil {
			return err
		}
		isNeeded := i == nil || slices.ContainsFunc(i.Parts, func(e entry) bool {
			_, is := m.all.singles[e.Key()]
			_, was := m.before[e.Key()]
			return is || was
		})
		if isNeeded {
			continue
		}
		if err := m.store.Delete(ctx, indexKey(m.prefix, last)); err != nil {
			return fmt.Errorf("removing the index up to part %d of epoch %d: %w", last.Sequence, last.Epoch, err)
		}
		m.done.Removed++
	}
	return nil
}

// bundle writes what is to be written. A part that cannot be read is in no bundle.
func (m *merger) bundle(ctx context.Context, deciding *facts.Merging) error {
	cover, singles := facts.CoverOf(m.all.bundles), make([]facts.Single, 0, len(m.all.numbers))
	for _, n := range m.all.numbers {
		singles = append(singles, m.all.singles[facts.Key{Epoch: m.all.epoch, Sequence: n}])
	}
	plan := deciding.Add(singles, cover)
	if m.all.last {
		plan = append(plan, deciding.End()...)
	}
	for _, keys := range plan {
		if err := m.write(ctx, keys); err != nil {
			return err
		}
	}
	return nil
}

// write writes a bundle, or what is left around those of its parts that are damaged or gone.
func (m *merger) write(ctx context.Context, keys []facts.Key) error {
	objects, parts := make([][]byte, len(keys)), make([]entry, len(keys))
	var mu sync.Mutex
	bad := map[facts.Key]bool{}
	err := eachOf(ctx, keys, mergeReaders, func(ctx context.Context, key facts.Key) error {
		object, err := m.get(ctx, key)
		var e entry
		if err == nil {
			e, err = checkObject(object, key)
		}
		if err == nil {
			n := key.Sequence - keys[0].Sequence
			objects[n], parts[n] = object, e
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, store.NotFound), errors.Is(err, FormatUnknown):
		case isFinal(err):
			m.done.Damaged = append(m.done.Damaged, err)
		default:
			return fmt.Errorf("reading part %d of epoch %d: %w", key.Sequence, key.Epoch, err)
		}
		bad[key] = true
		return nil
	})
	switch {
	case err != nil:
		return err
	case len(bad) == 0:
		return m.create(ctx, parts, objects)
	}
	for _, rest := range facts.Around(keys, bad) {
		if err := m.write(ctx, rest); err != nil {
			return err
		}
	}
	return nil
}

// create writes a bundle of parts.
func (m *merger) create(ctx context.Context, parts []entry, objects [][]byte) error {
	b := facts.Bundle{Epoch: parts[0].Epoch, First: parts[0].Sequence, Last: parts[len(parts)-1].Sequence}
	object, err := m.compress.bundleOf(parts, objects)
	if err != nil {
		return err
	}
	err = m.store.Create(ctx, bundleKey(m.prefix, b), object)
	if err != nil && !errors.Is(err, store.Exists) {
		return fmt.Errorf("writing the bundle of the parts %d to %d of epoch %d: %w", b.First, b.Last, b.Epoch, err)
	}
	if err == nil {
		m.done.Bundles, m.done.Parts = m.done.Bundles+1, m.done.Parts+len(parts)
	}
	return nil
}

// get reads the object of a part.
func (m *merger) get(ctx context.Context, key facts.Key) ([]byte, error) {
	body, err := m.store.Get(ctx, partKey(m.prefix, key))
	if err != nil {
		return nil, err
	}
	object, err := io.ReadAll(io.LimitReader(body, facts.BundleBytes+1))
	return object, cmp.Or(err, body.Close())
}
