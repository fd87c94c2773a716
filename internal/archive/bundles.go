package archive

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// openBundles is how many bundles are in memory: a replay reads some parts ahead, which lie in
// one, or in two that follow one another.
const openBundles = 2

// bundles reads the objects of parts, wherever they lie. It may be used by several goroutines.
type bundles struct {
	store  store.Store
	prefix string

	mu sync.Mutex
	// listed is what lies in the epochs that were looked for.
	listed map[int64]gathered
	// open are those that were read last, the newest first.
	open []*opened
}

// get reads the object of a part: from a bundle, or as it lies by itself. A bundle may have
// taken its place since that was looked for.
func (b *bundles) get(ctx context.Context, key facts.Key) (io.ReadCloser, error) {
	object, damaged := b.bundled(ctx, key, false)
	if object != nil || damaged != nil && !isFinal(damaged) {
		return object, damaged
	}
	body, err := b.store.Get(ctx, partKey(b.prefix, key))
	if !errors.Is(err, store.NotFound) {
		return body, err
	}
	if damaged == nil {
		object, damaged = b.bundled(ctx, key, true)
	}
	if object != nil || damaged != nil {
		return object, damaged
	}
	return nil, err
}

// bundled reads a part from a bundle; nil if none has it.
func (b *bundles) bundled(ctx context.Context, key facts.Key, again bool) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.list(ctx, key.Epoch, again); err != nil {
		return nil, err
	}
	var damaged error
	for _, one := range b.listed[key.Epoch].bundles {
		if !one.Holds(key) {
			continue
		}
		o, err := b.opened(ctx, one)
		if err == nil {
			var object []byte
			if object, err = o.object(key); err == nil {
				return io.NopCloser(bytes.NewReader(object)), nil
			}
		}
		switch {
		case errors.Is(err, store.NotFound): // removed meanwhile
		case isFinal(err):
			damaged = err
		default:
			return nil, err
		}
	}
	return nil, damaged
}

// gathered is what tells of many parts of an epoch: bundles, and indexes by the last part of each, in
// order.
type gathered struct {
	bundles []facts.Bundle
	indexes []facts.Key
}

// list looks for the bundles of an epoch, unless they are known.
func (b *bundles) list(ctx context.Context, epoch int64, again bool) error {
	if _, known := b.listed[epoch]; known && !again {
		return nil
	}
	var all gathered
	for piece, err := range listPieces(ctx, b.store, epochPrefix(b.prefix, epoch), b.prefix) {
		if err != nil {
			return err
		}
		all.bundles, all.indexes = append(all.bundles, piece.bundles...), append(all.indexes, piece.indexes...)
	}
	if b.listed == nil {
		b.listed = map[int64]gathered{}
	}
	b.listed[epoch] = all
	return nil
}

// opened reads a bundle, unless it is in memory.
func (b *bundles) opened(ctx context.Context, one facts.Bundle) (*opened, error) {
	i := slices.IndexFunc(b.open, func(o *opened) bool { return o.Bundle == one })
	if i >= 0 {
		return b.open[i], b.open[i].damaged
	}
	o, err := openBundle(ctx, b.store, b.prefix, one)
	if isFinal(err) {
		o, err = &opened{Bundle: one, damaged: err}, nil
	}
	if err != nil {
		return nil, err
	}
	b.open = append([]*opened{o}, b.open[:min(len(b.open), openBundles-1)]...)
	return o, o.damaged
}
