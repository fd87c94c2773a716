package archive

import (
	"context"
	"errors"
	"io"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// Choose finds what to replay on a base backup to come to a target. It reads the parts in
// which the target may lie. A target that cannot be reached is a *archive.Refusal of
// internal/core/archive.
func Choose(ctx context.Context, s store.Store, prefix string, a facts.Archive, base facts.Base, target facts.Target) (facts.Plan, error) {
	read := map[facts.Key][]facts.Transaction{}
	for {
		got := facts.Select(a, base, target, read)
		switch {
		case got.Refusal != nil:
			return facts.Plan{}, got.Refusal
		case got.Read == nil:
			return got.Plan, nil
		}
		list, err := transactions(ctx, s, prefix, got.Read.Pieces)
		if err != nil {
			return facts.Plan{}, err
		}
		read[got.Read.Pieces[len(got.Read.Pieces)-1].Key()] = list
	}
}

// transactions lists what is in a part, in order.
func transactions(ctx context.Context, s store.Store, prefix string, pieces []facts.Part) (list []facts.Transaction, err error) {
	err = eachEvent(ctx, s, prefix, pieces, func(_ *binlog.Stream, e binlog.Event) error {
		if e.Begins != nil {
			list = append(list, facts.Transaction{ID: e.Begins.ID, Committed: e.Begins.Committed})
		}
		return nil
	})
	return list, err
}

// eachEvent reads a part behind its format, and refuses it at its end if it is damaged.
func eachEvent(ctx context.Context, s store.Store, prefix string, pieces []facts.Part, visit func(*binlog.Stream, binlog.Event) error) error {
	in := &chain{ctx: ctx, store: s, prefix: prefix, rest: pieces}
	defer in.close()
	stream, err := binlog.NewStream(in)
	if err != nil {
		return err
	}
	for {
		event, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(stream, event); err != nil {
			return err
		}
	}
}

// chain reads pieces one behind the other.
type chain struct {
	ctx    context.Context
	store  store.Store
	prefix string
	rest   []facts.Part
	open   io.ReadCloser
}

func (c *chain) Read(to []byte) (int, error) {
	for {
		if c.open == nil {
			if len(c.rest) == 0 {
				return 0, io.EOF
			}
			open, err := openPart(c.ctx, c.store, c.prefix, c.rest[0])
			if err != nil {
				return 0, err
			}
			c.open, c.rest = open, c.rest[1:]
		}
		n, err := c.open.Read(to)
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		if err := c.open.Close(); err != nil {
			return n, err
		}
		if c.open = nil; n > 0 {
			return n, nil
		}
	}
}

func (c *chain) close() {
	if c.open != nil {
		_ = c.open.Close() // an error came before
	}
}
