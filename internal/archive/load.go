package archive

import (
	"context"
	"errors"
	"maps"
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
// last: it tries the numbers that they leave out, and those that come next. An object that is
// damaged, or of an unknown format, is told as one that cannot be read; one that was deleted
// meanwhile is left out. An error is that the store does not answer.
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
	if err = readParts(ctx, s, prefix, parts, &out); err != nil {
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
	out.Mark, err = getMark(ctx, s, prefix, newest)
	return out, err
}

// Branches reads how the epochs began that a listing has; what is damaged, or of an unknown
// format, is left out.
func Branches(ctx context.Context, s store.Store, prefix string) (out []facts.Branch, err error) {
	keys, err := listAll(ctx, s, prefix)
	if err != nil {
		return nil, err
	}
	for _, epoch := range slices.Sorted(maps.Keys(keys)) {
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

// readParts reads the facts of parts, several at a time.
func readParts(ctx context.Context, s store.Store, prefix string, keys []facts.Key, to *facts.Archive) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	todo := make(chan facts.Key)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			for key := range todo {
				part, err := getFacts(ctx, s, prefix, key)
				if errors.Is(err, store.NotFound) {
					continue
				}
				mu.Lock()
				err = notePart(to, key, part, err)
				mu.Unlock()
				if err != nil {
					cancel(err)
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
	return context.Cause(ctx)
}
