package archive

import (
	"context"
	"errors"
	"slices"
	"sync"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// readers is how many parts are looked at at a time.
const readers = 16

// maxHole is how many parts that a listing leaves out between two others are tried.
const maxHole = 1000

// Load finds out what a store holds. It does not rely on listings for what was written
// last: it tries the numbers that they leave out, and those that come next. An object that is damaged is an error with the
// name PartDamaged; one that was deleted meanwhile is left out.
func Load(ctx context.Context, s store.Store, prefix string) (facts.Archive, error) {
	var out facts.Archive
	keys, err := listAll(ctx, s, prefix)
	if err != nil {
		return out, err
	}
	var parts []facts.Key
	newest := int64(-1)
	for epoch, sequences := range keys {
		newest = max(newest, epoch)
		slices.Sort(sequences)
		for i, n := range sequences {
			first := n
			if i > 0 {
				first = max(sequences[i-1]+1, n-maxHole)
			}
			for ; first <= n; first++ {
				parts = append(parts, facts.Key{Epoch: epoch, Sequence: first})
			}
		}
	}
	if out.Parts, err = readParts(ctx, s, prefix, parts); err != nil {
		return out, err
	}
	for epoch := newest + 1; epoch <= newest+facts.LookBeyond; epoch++ {
		keys[epoch] = nil
	}
	for epoch, sequences := range keys {
		b, err := getBranch(ctx, s, prefix, epoch)
		if errors.Is(err, store.NotFound) {
			continue
		}
		if err != nil {
			return out, err
		}
		out.Branches = append(out.Branches, b)
		more, err := partsBehind(ctx, s, prefix, facts.Key{Epoch: epoch, Sequence: slices.Max(append(sequences, 0))})
		if err != nil {
			return out, err
		}
		out.Parts = append(out.Parts, more...)
	}
	return out, nil
}

// listAll lists the numbers of the parts by epoch.
func listAll(ctx context.Context, s store.Store, prefix string) (map[int64][]int64, error) {
	keys := map[int64][]int64{}
	for object, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		k, ok := readKey(prefix, object.Key)
		switch {
		case !ok: // nothing of ours
		case k.Sequence == 0:
			keys[k.Epoch] = append(keys[k.Epoch], []int64{}...)
		default:
			keys[k.Epoch] = append(keys[k.Epoch], k.Sequence)
		}
	}
	return keys, nil
}

// partsBehind reads the parts that follow one that was listed.
func partsBehind(ctx context.Context, s store.Store, prefix string, key facts.Key) (out []facts.Part, err error) {
	for {
		key.Sequence++
		part, err := getFacts(ctx, s, prefix, key)
		if errors.Is(err, store.NotFound) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, part)
	}
}

// readParts reads the facts of parts, several at a time.
func readParts(ctx context.Context, s store.Store, prefix string, keys []facts.Key) ([]facts.Part, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan facts.Key)
	var mu sync.Mutex
	var out []facts.Part
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for key := range todo {
				part, err := getFacts(ctx, s, prefix, key)
				if err != nil && !errors.Is(err, store.NotFound) {
					cancel(err)
				}
				if err == nil {
					mu.Lock()
					out = append(out, part)
					mu.Unlock()
				}
			}
		})
	}
	for _, key := range keys {
		if ctx.Err() != nil {
			break
		}
		todo <- key
	}
	close(todo)
	wg.Wait()
	return out, context.Cause(ctx)
}
