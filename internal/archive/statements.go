package archive

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
)

// Statements calls visit with each statement of an archive that was committed between two times,
// epoch by epoch and in the order of their logs; also with what a failover lost. A zero time is
// no bound. It reads the parts that may hold one.
func (p Place) Statements(ctx context.Context, a facts.Archive, since, until time.Time,
	visit func(binlog.Statement) error) error {
	parts := slices.Clone(a.Parts)
	slices.SortFunc(parts, byNumber)
	var pieces []facts.Part
	read := func(part facts.Part) error {
		if part.Piece <= 1 {
			pieces = nil // of a transaction that was never stored to its end
		}
		if part.Piece > int64(len(pieces))+1 {
			return nil // what is before it is gone, and it cannot be read without
		}
		if pieces = append(pieces, part); part.Piece > 0 && part.Pieces == 0 {
			return nil // the last one tells how many there are
		}
		return p.statements(ctx, pieces, since, until, visit)
	}
	for _, part := range parts {
		isOutside := !since.IsZero() && part.Last.Before(since) || !until.IsZero() && part.First.After(until)
		if isOutside && part.Piece == 0 {
			continue
		}
		these := []facts.Part{part}
		if part.IsRun() {
			var err error
			if these, err = p.bundles.run(ctx, part); err != nil {
				return ofRun(part, err)
			}
		}
		for _, one := range these {
			if err := read(one); err != nil {
				return fmt.Errorf("reading part %d of epoch %d: %w", one.Sequence, one.Epoch, err)
			}
		}
	}
	return nil
}

func (p Place) statements(ctx context.Context, pieces []facts.Part, since, until time.Time,
	visit func(binlog.Statement) error) error {
	var reader binlog.StatementReader
	return p.eachEvent(ctx, pieces, func(s *binlog.Stream, e binlog.Event) error {
		st, is := reader.Read(s, e)
		if !is || !since.IsZero() && st.Committed.Before(since) || !until.IsZero() && st.Committed.After(until) {
			return nil
		}
		return visit(st)
	})
}
