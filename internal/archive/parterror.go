package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	facts "cnmsql.co/internal/core/archive"
)

// PartError is a part that was damaged when it was read; where a transaction spans several, one of these.
type PartError struct {
	Keys []facts.Key
	err  error
}

func (e *PartError) Error() string { return e.err.Error() }

// Unwrap is PartDamaged, with what was found.
func (e *PartError) Unwrap() error { return e.err }

// ofPieces names the parts that an error is of, if it is one of what is in them.
func ofPieces(pieces []facts.Part, err error) error {
	if !errors.Is(err, PartDamaged) {
		return err
	}
	out := &PartError{err: err}
	for _, p := range pieces {
		out.Keys = append(out.Keys, p.Key())
	}
	return out
}

// Suspect reads parts whole that were damaged when somebody read them. Of those that still are, what is archived
// tells from then on that they cannot be read.
func (p Place) Suspect(ctx context.Context, a *facts.Archive, keys []facts.Key) error {
	for _, key := range keys {
		part, err := p.find(ctx, a, key)
		if err != nil {
			return err
		}
		if part == nil {
			continue // nobody would read it
		}
		if err = p.drain(ctx, *part); errors.Is(err, PartDamaged) {
			a.Spoil(key, fmt.Sprintf("an attempt to restore has found that it is damaged: %v", err))
		} else if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// find is a part of what is archived; nil where it has none of the key. A run that it lies in is expanded.
func (p Place) find(ctx context.Context, a *facts.Archive, key facts.Key) (*facts.Part, error) {
	for {
		i := slices.IndexFunc(a.Parts, func(part facts.Part) bool {
			is := part.Span()
			return is.Epoch == key.Epoch && is.First <= key.Sequence && key.Sequence <= is.Last
		})
		if i < 0 {
			return nil, nil
		}
		if !a.Parts[i].IsRun() {
			return &a.Parts[i], nil
		}
		if err := p.expand(ctx, a, a.Parts[i]); err != nil {
			return nil, err
		}
	}
}

// drain reads a part to its end.
func (p Place) drain(ctx context.Context, part facts.Part) error {
	in, err := p.open(ctx, part)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	return errors.Join(err, in.Close())
}
