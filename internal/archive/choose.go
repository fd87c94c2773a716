package archive

import (
	"context"
	"errors"
	"io"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

// Place is where an archive lies, and what opens it; NewPlace makes one.
type Place struct {
	Store store.Store
	// Prefix of all keys, with a slash at its end: CLUSTER/log/.
	Prefix string
	// Key opens what is encrypted.
	Key     seal.Key
	bundles *bundles
}

// NewPlace is an archive below a prefix; the zero Key opens what is not encrypted.
func NewPlace(s store.Store, prefix string, key seal.Key) Place {
	return Place{s, prefix, key, &bundles{store: s, prefix: prefix}}
}

// Choose finds what to replay on a base backup to come to a target. It reads the parts in
// which the target may lie, and puts the parts of a run in its place in the archive where it has to
// know them. A target that cannot be reached is a *archive.Refusal of
// internal/core/archive.
func (p Place) Choose(ctx context.Context, a *facts.Archive, base facts.Base, target facts.Target) (facts.Plan, error) {
	read := map[facts.Key][]facts.Transaction{}
	for {
		got := facts.Select(*a, base, target, read)
		switch {
		case got.Refusal != nil:
			return facts.Plan{}, got.Refusal
		case got.Expand != nil:
			if err := p.expand(ctx, a, *got.Expand); err != nil {
				return facts.Plan{}, otherwise(ctx, got, err)
			}
			continue
		case got.Read == nil:
			return got.Plan, nil
		}
		list, err := p.transactions(ctx, got.Read.Pieces)
		if err != nil && (!got.Aside || ctx.Err() != nil) {
			return facts.Plan{}, otherwise(ctx, got, err)
		}
		if err != nil {
			list = nil // what was read before it broke off is not the whole
		}
		read[got.Read.Pieces[len(got.Read.Pieces)-1].Key()] = list
	}
}

// otherwise is the error where something cannot be read: the refusal of which it would have proven a time, if
// it is needed for nothing else. Damage elsewhere in the archive is no hindrance.
func otherwise(ctx context.Context, got facts.Selection, err error) error {
	if got.Otherwise == nil || ctx.Err() != nil {
		return err
	}
	return got.Otherwise
}

// Opens looks whether all of a plan can be read: of each recipient that a part is encrypted
// to, it opens one. KeyMissing or KeyWrong of the package seal if not.
func (p Place) Opens(ctx context.Context, plan facts.Plan) error {
	tried := map[string]bool{"": true}
	for _, step := range plan.Steps {
		for _, part := range step.Pieces {
			if tried[part.Recipient] {
				continue
			}
			tried[part.Recipient] = true
			part.Through = 0 // the first one of a run
			open, err := p.open(ctx, part)
			if err == nil {
				err = open.Close()
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// errRun is a mistake in the program: a run has no object.
var errRun = errors.New("a run is read as if it were a part")

func (p Place) open(ctx context.Context, part facts.Part) (io.ReadCloser, error) {
	if part.IsRun() {
		return nil, errRun
	}
	body, err := p.bundles.get(ctx, part.Key())
	if err != nil {
		return nil, err
	}
	return openObject(body, part, p.Key)
}

// transactions lists what is in a part, in order.
func (p Place) transactions(ctx context.Context, pieces []facts.Part) (list []facts.Transaction, err error) {
	err = p.eachEvent(ctx, pieces, func(_ *binlog.Stream, e binlog.Event) error {
		if e.Begins != nil {
			list = append(list, facts.Transaction{ID: e.Begins.ID, Committed: e.Begins.Committed})
		}
		return nil
	})
	return list, err
}

// eachEvent reads a part behind its format, and refuses it at its end if it is damaged.
func (p Place) eachEvent(ctx context.Context, pieces []facts.Part,
	visit func(*binlog.Stream, binlog.Event) error) error {
	first, err := p.open(ctx, pieces[0])
	if err != nil {
		return err // and not that it is no log
	}
	in := &chain{ctx: ctx, from: p, open: first, rest: pieces[1:]}
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
	ctx  context.Context
	from Place
	rest []facts.Part
	open io.ReadCloser
}

// Read reads the open piece, and opens the next one at its end. io.EOF comes behind the last.
func (c *chain) Read(to []byte) (int, error) {
	for {
		if c.open == nil {
			if len(c.rest) == 0 {
				return 0, io.EOF
			}
			open, err := c.from.open(c.ctx, c.rest[0])
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
