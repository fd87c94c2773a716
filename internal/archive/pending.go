package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
)

// pending is a part that is being put together, of one log, and where it stands therein.
type pending struct {
	*facts.Pending
	spans []span
}

// span of bytes in the log.
type span struct{ from, to int64 }

func (s *Shipper) newPending(t binlog.Transaction) *pending {
	p := &pending{Pending: s.writer().Pend(s.sequence, &s.source.Reader, t.Committed, time.Now())}
	p.Part.File, p.Part.From = s.source.file(), t.Offset
	return p
}

func (p *pending) add(t binlog.Transaction) {
	end := t.Offset + t.Size
	if n := len(p.spans); n > 0 && p.spans[n-1].to == t.Offset {
		p.spans[n-1].to = end
	} else {
		p.spans = append(p.spans, span{t.Offset, end})
	}
	p.Part.To = end
	p.Add(t.ID, t.Committed, t.Size)
}

// ship stores the part that was put together.
func (s *Shipper) ship(ctx context.Context) error {
	raw, err := s.raw(s.pending)
	if err != nil {
		return s.unreadable(err)
	}
	if err := s.put(ctx, s.pending.Part, raw); err != nil {
		return err
	}
	s.pending = nil
	return nil
}

// raw reads the part and looks whether it is a log.
func (s *Shipper) raw(p *pending) ([]byte, error) {
	begin, err := s.source.log.Begin(p.Part.Before)
	if err != nil {
		return nil, err
	}
	raw := make([]byte, int64(len(begin))+p.Size)
	rest := raw[copy(raw, begin):]
	for _, span := range p.spans {
		n := span.to - span.from
		if err := s.source.log.ReadAt(rest[:n], span.from); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return raw, check(raw, p.Part.Transactions)
}

// check that all events are whole and right, and that each transaction is as long as it says.
func check(raw []byte, transactions int64) error {
	stream, err := binlog.NewStream(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	var last *binlog.Transaction
	for n := int64(0); ; {
		end := stream.Offset()
		event, err := stream.Next()
		atEnd := errors.Is(err, io.EOF)
		if err != nil && !atEnd {
			return err
		}
		if last != nil && (atEnd || event.Begins != nil) && end != last.Offset+last.Size {
			return fmt.Errorf("%w: the transaction at %d of the part is not as long as it says",
				binlog.ErrDamaged, last.Offset)
		}
		switch {
		case atEnd && n != transactions:
			return fmt.Errorf("%w: %d transactions were found in a part of %d", binlog.ErrDamaged, n, transactions)
		case atEnd:
			return nil
		case event.Begins != nil:
			last = event.Begins
			n++
		}
	}
}

// firstPiece is how much of the transaction stands at least in its first piece.
const firstPiece = 1 << 10

// shipPieces stores a transaction that is larger than a part, piece by piece.
func (s *Shipper) shipPieces(ctx context.Context, t binlog.Transaction) error {
	p := s.newPending(t)
	s.pending = p // it waits, until the last piece is stored
	s.observe()
	if err := s.source.log.Check(ctx, t); err != nil { // a piece alone is no log that could be checked
		return s.unreadable(err)
	}
	begin, err := s.source.log.Begin(p.Part.Before)
	if err != nil {
		return s.unreadable(err)
	}
	buffer := make([]byte, max(s.c.MaxBytes, int64(len(begin))+firstPiece))
	for from := t.Offset; from < t.Offset+t.Size; p.Part.From = from {
		p.Part.Piece++
		p.Part.Sequence = s.sequence
		raw := append(buffer[:0], begin...)
		raw = raw[:min(int64(len(buffer)), int64(len(raw))+t.Offset+t.Size-from)]
		if err := s.source.log.ReadAt(raw[len(begin):], from); err != nil {
			return s.unreadable(err)
		}
		from += int64(len(raw) - len(begin))
		begin, p.Part.To = nil, from
		if from == t.Offset+t.Size {
			p.Part.GTIDs, p.Part.Transactions, p.Part.Pieces = t.ID, 1, p.Part.Piece
		}
		if err := s.put(ctx, p.Part, raw); err != nil {
			return err
		}
	}
	s.source.pass(t)
	s.pending = nil
	return nil
}
