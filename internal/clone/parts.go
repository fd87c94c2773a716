package clone

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"sync"
)

// StoredPart is a part of a stored snapshot, as a manifest knows it.
type StoredPart struct {
	PartInfo
	// Notes are its records without data, in their order.
	Notes []Record
	// SHA256 is of its bytes, as Open gives them. Unhashed: there is none, and who opens it
	// vouches for them.
	SHA256   [sha256.Size]byte
	Unhashed bool
	// Open gives its bytes, as the Cutter wrote them.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// ReplayParts gives a snapshot to an Applier with several readers at a time. First come a
// state's records without data, then all of its blocks, in any order; every part that has a
// hash is held against it. Memory is that of one record for each reader.
func ReplayParts(ctx context.Context, from Origin, parts []StoredPart, readers int, to *Applier) error {
	if err := to.Begin(ctx, from); err != nil {
		return err
	}
	for len(parts) > 0 {
		n := 1
		for n < len(parts) && parts[n].State == parts[0].State {
			n++
		}
		if err := replayState(ctx, parts[:n], readers, to); err != nil {
			return err
		}
		parts = parts[n:]
	}
	to.mu.RLock()
	defer to.mu.RUnlock()
	return to.at.finished()
}

// replayState hands the applier all records of one state: all notes but the last, then all blocks,
// and then the last note, which ends the state. A state without any note is Incomplete.
func replayState(ctx context.Context, parts []StoredPart, readers int, to *Applier) error {
	var notes []Record
	for _, p := range parts {
		notes = append(notes, p.Notes...)
	}
	if len(notes) == 0 {
		return refuse(Incomplete, "no record of state %s", parts[0].State)
	}
	last := len(notes) - 1
	for _, r := range notes[:last] {
		if err := hand(ctx, to, r); err != nil {
			return err
		}
	}
	if err := replayBlocks(ctx, parts, readers, to); err != nil {
		return err
	}
	return hand(ctx, to, notes[last])
}

// replayBlocks ends with the first error of any reader.
func replayBlocks(ctx context.Context, parts []StoredPart, readers int, to *Applier) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan StoredPart, len(parts))
	for _, p := range parts {
		queue <- p
	}
	close(queue)
	var wg sync.WaitGroup
	for range max(1, readers) {
		wg.Go(func() {
			for p := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := p.blocks(ctx, to); err != nil {
					cancel(fmt.Errorf("part %d: %w", p.Number, err))
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// blocks gives the blocks of a part to an Applier.
func (p StoredPart) blocks(ctx context.Context, to *Applier) (err error) {
	stream, err := p.Open(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := stream.Close(); err == nil {
			err = closeErr
		}
	}()
	hash := sha256.New()
	bytes := io.Reader(stream)
	if !p.Unhashed {
		bytes = io.TeeReader(stream, hash)
	}
	in := NewReader(bytes)
	for {
		r, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err == nil && r.IsData() {
			err = to.Take(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	if !p.Unhashed && [32]byte(hash.Sum(nil)) != p.SHA256 {
		return refuse(Malformed, "its bytes are not those that were stored")
	}
	return nil
}
