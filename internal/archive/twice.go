package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

// lookBack is how many objects are read to find the newest part that has a transaction.
const lookBack = 16

// refuseGivenTwice refuses a server that was set back and has given the lost numbers again, so that what it has
// executed does not tell of it: the newest part of the archive has them of another time than its logs. last is the
// last part of branch b, and claimed what the archive is to go on from.
func (s *Shipper) refuseGivenTwice(ctx context.Context, b facts.Branch, last facts.Part, claimed gtid.Set) error {
	newest, err := s.newestPart(ctx, b, last)
	if err != nil {
		return err
	}
	return s.comparePart(ctx, newest, claimed)
}

// newestPart is the newest part that has a transaction, of a branch with such a last part, or of one before it; the
// zero value if none is found. What cannot be read proves nothing: it keeps nobody from archiving.
func (s *Shipper) newestPart(ctx context.Context, b facts.Branch, last facts.Part) (facts.Part, error) {
	for range lookBack {
		var err error
		switch before := last.Sequence - last.Piece; {
		case !last.GTIDs.IsEmpty():
			return last, nil
		case before > 0: // it ends in the middle of a transaction
			last, err = getFacts(ctx, s.c.Store, s.c.Prefix, facts.Key{Epoch: b.Epoch, Sequence: before})
		case b.After == 0:
			return facts.Part{}, nil
		default:
			if b, err = getBranch(ctx, s.c.Store, s.c.Prefix, b.After); err == nil {
				last, err = lastPart(ctx, s.c.Store, s.c.Prefix, b.Epoch)
			}
		}
		switch {
		case errors.Is(err, store.NotFound), errors.Is(err, errBranchUnlisted), errors.Is(err, facts.ErrListedAbsent),
			err != nil && isFinal(err):
			return facts.Part{}, nil
		case err != nil:
			return facts.Part{}, err
		}
	}
	return facts.Part{}, nil
}

// lastStored is the part that was stored last.
func (s *Shipper) lastStored() facts.Part {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Last
}

// comparePart holds a part against the server's logs. Whatever of it they do not have was purged, or never was in
// them, as in those of a copy, and proves nothing.
func (s *Shipper) comparePart(ctx context.Context, p facts.Part, claimed gtid.Set) error {
	vouched := s.writer().Vouched(p, claimed)
	if vouched.GTIDs.IsEmpty() {
		return nil
	}
	logs, err := binlog.All(s.c.Index)
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(logs) {
		before, err := s.compareLog(ctx, path, p, vouched)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, binlog.ErrTorn):
			continue // it was purged, or is just being begun
		case err != nil:
			return err
		}
		if vouched.GTIDs = vouched.GTIDs.Intersect(before); vouched.GTIDs.IsEmpty() {
			return nil
		}
	}
	return nil
}

// compareLog looks for transactions of a part in a log, and tells what stands before that.
func (s *Shipper) compareLog(
	ctx context.Context, path string, p facts.Part, v facts.Vouched,
) (before gtid.Set, err error) {
	log, err := binlog.OpenLog(path)
	if err != nil {
		if isFinal(s.unreadable(err)) {
			return v.GTIDs, nil // who has to read it tells of it
		}
		return before, err
	}
	defer func() { _ = log.Close() }()
	rest := v.GTIDs.Subtract(log.Previous)
	if p.Piece == 0 && p.GTIDs.Contains(rest) && p.File == filepath.Base(path) {
		goTo(log, p)
	}
	for !rest.IsEmpty() {
		if err := ctx.Err(); err != nil {
			return before, err
		}
		t, err := log.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, binlog.ErrTorn) || err != nil && isFinal(s.unreadable(err)) {
			break
		}
		if err != nil {
			return before, fmt.Errorf("%s: %w", path, err)
		}
		if rest.Contains(t.ID) && !v.MayBe(t.Committed, t.Origin) {
			return before, refuse(ServerSetBack, "%s has %s, committed at %s, and the archive has another transaction "+
				"of that number: part %d of epoch %d was committed from %s to %s", filepath.Base(path), t.ID,
				t.Origin.Format(time.RFC3339Nano), p.Sequence, p.Epoch, p.First.Format(time.RFC3339Nano),
				p.Last.Format(time.RFC3339Nano))
		}
		rest = rest.Subtract(t.ID)
		log.Pass(t)
	}
	return log.Previous, nil
}

// goTo goes to where a part begins in the log, unless something else stands there: then it stays.
func goTo(log *binlog.Log, p facts.Part) {
	begin := log.Offset()
	if p.From < begin {
		return
	}
	log.Pass(binlog.Transaction{Offset: p.From})
	if t, err := log.Next(); err != nil || t.Offset != p.From || !p.GTIDs.Contains(t.ID) {
		log.Pass(binlog.Transaction{Offset: begin})
	}
}
