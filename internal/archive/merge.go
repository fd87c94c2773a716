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

// Merged is what Merge did.
type Merged struct {
	// Parts were written into as many Bundles, and Removed objects lie no more beside a bundle.
	Bundles, Parts, Removed int
	// Damaged are parts and bundles that are not what was written. They are left as they are.
	Damaged []error
}

// Merge writes small parts into bundles, and removes the objects of those that have been in one
// for a while and are whole there. At any moment, and wherever it is broken off, each part is
// in the archive. now is by the store's clock, and not later than by the clock here.
func Merge(ctx context.Context, s store.Store, prefix string, now time.Time) (Merged, error) {
	compress, err := newCompressor()
	if err != nil {
		return Merged{}, err
	}
	m := &merger{store: s, prefix: prefix, compress: compress}
	if m.all, err = listAll(ctx, s, prefix, prefix); err != nil {
		return m.done, fmt.Errorf("listing the archive: %w", err)
	}
	for _, b := range facts.Merge(nil, m.all.bundles, now).Settled {
		if err := m.replace(ctx, b); err != nil {
			return m.done, fmt.Errorf("bundle %d to %d of epoch %d: %w", b.First, b.Last, b.Epoch, err)
		}
	}
	if err := m.dropIndexes(ctx); err != nil {
		return m.done, err
	}
	return m.done, m.bundle(ctx, now)
}

// merger is one Merge.
type merger struct {
	store    store.Store
	prefix   string
	compress *compressor
	all      *listing
	done     Merged
}

// replace removes the objects of the parts that a bundle holds.
func (m *merger) replace(ctx context.Context, b facts.Bundle) error {
	var beside []facts.Key
	for n := b.First; n <= b.Last; n++ {
		key := facts.Key{Epoch: b.Epoch, Sequence: n}
		if _, is := m.all.singles[key]; is {
			beside = append(beside, key)
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
		m.done.Damaged = append(m.done.Damaged, err)
		return nil
	}
	if err != nil {
		return err
	}
	var mu sync.Mutex
	return eachOf(ctx, beside, func(ctx context.Context, key facts.Key) error {
		if err := m.store.Delete(ctx, partKey(m.prefix, key)); err != nil {
			return fmt.Errorf("removing part %d, which is in it: %w", key.Sequence, err)
		}
		mu.Lock()
		defer mu.Unlock()
		delete(m.all.singles, key)
		m.done.Removed++
		return nil
	})
}

// dropIndexes removes those of which no part is an object of its own any more: a bundle has its own.
func (m *merger) dropIndexes(ctx context.Context) error {
	for _, last := range m.all.indexes {
		if !slices.ContainsFunc(m.all.bundles, func(b facts.Bundle) bool { return b.Holds(last) }) {
			continue
		}
		i, err := getIndex(ctx, m.store, m.prefix, last)
		if err != nil {
			return err
		}
		isNeeded := i == nil || slices.ContainsFunc(i.Parts, func(e entry) bool {
			_, is := m.all.singles[e.Key()]
			return is
		})
		if isNeeded {
			continue
		}
		if err := m.store.Delete(ctx, indexKey(m.prefix, last)); err != nil {
			return err
		}
		m.done.Removed++
	}
	return nil
}

// bundle writes what is to be written. A part that is damaged is in no bundle.
func (m *merger) bundle(ctx context.Context, now time.Time) error {
	for {
		singles := make([]facts.Single, 0, len(m.all.singles))
		for _, s := range m.all.singles {
			singles = append(singles, s)
		}
		plan := facts.Merge(singles, m.all.bundles, now).Bundles
		if len(plan) == 0 {
			return nil
		}
		for _, keys := range plan {
			if err := m.write(ctx, keys); err != nil {
				return err
			}
		}
	}
}

// write writes a bundle, unless one of its parts is damaged or gone: it counts as none then.
func (m *merger) write(ctx context.Context, keys []facts.Key) error {
	objects, parts := make([][]byte, len(keys)), make([]entry, len(keys))
	var mu sync.Mutex
	whole := true
	err := eachOf(ctx, keys, func(ctx context.Context, key facts.Key) error {
		object, e, err := m.read(ctx, key)
		if err == nil {
			n := key.Sequence - keys[0].Sequence
			objects[n], parts[n] = object, e
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, store.NotFound):
		case isFinal(err):
			m.done.Damaged = append(m.done.Damaged, err)
		default:
			return fmt.Errorf("reading part %d of epoch %d: %w", key.Sequence, key.Epoch, err)
		}
		whole = false
		delete(m.all.singles, key)
		return nil
	})
	if err != nil || !whole {
		return err
	}
	b := facts.Bundle{Epoch: keys[0].Epoch, First: keys[0].Sequence, Last: keys[len(keys)-1].Sequence}
	object, err := m.compress.bundleOf(parts, objects)
	if err != nil {
		return err
	}
	err = m.store.Create(ctx, bundleKey(m.prefix, b), object)
	if err != nil && !errors.Is(err, store.Exists) {
		return fmt.Errorf("writing the bundle of the parts %d to %d of epoch %d: %w", b.First, b.Last, b.Epoch, err)
	}
	m.all.bundles = append(m.all.bundles, b)
	m.done.Bundles, m.done.Parts = m.done.Bundles+1, m.done.Parts+len(keys)
	return nil
}

// read reads the object of a part, and looks at it.
func (m *merger) read(ctx context.Context, key facts.Key) ([]byte, entry, error) {
	body, err := m.store.Get(ctx, partKey(m.prefix, key))
	if err != nil {
		return nil, entry{}, err
	}
	object, err := io.ReadAll(io.LimitReader(body, facts.BundleBytes+1))
	if err = cmp.Or(err, body.Close()); err != nil {
		return nil, entry{}, err
	}
	e, err := checkObject(object, key)
	return object, e, err
}
