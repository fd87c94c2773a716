package binlog

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"time"

	"cnmsql.co/internal/gtid"
)

// Statement is one that a binary log has as text: what makes, changes or drops tables and accounts.
// Changes of rows have none.
type Statement struct {
	// ID and Committed are those of its transaction; ID is empty where the log does not tell it
	// in a way that is known.
	ID        gtid.Set
	Committed time.Time
	// Schema was the default one of the session; Text is whole, and on one line. Who may write statements wrote both:
	// they may hold anything.
	Schema, Text string
}

// Statements calls visit with each statement of a log, in its order, up to the end of what is
// complete: a server may be writing it.
func Statements(ctx context.Context, r io.Reader, visit func(Statement) error) error {
	s, err := NewStream(r)
	if err != nil {
		return err
	}
	var reader StatementReader
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if st, is := reader.Read(s, e); is {
			if err := visit(st); err != nil {
				return err
			}
		}
	}
}

// StatementReader finds the statements among the events of a log. The zero value is ready.
type StatementReader struct{ of Statement }

// Read takes the next event of the log; is reports whether it is a statement.
func (r *StatementReader) Read(s *Stream, e Event) (st Statement, is bool) {
	switch kind := e.Header[offsetType]; {
	case e.Begins != nil:
		r.of = Statement{ID: e.Begins.ID, Committed: e.Begins.Committed}
		return st, false
	case kind == typeGTIDTagged || kind == typeAnonymous:
		at := time.Unix(int64(binary.LittleEndian.Uint32(e.Header)), 0).UTC()
		r.of = Statement{Committed: at}
		return st, false
	case kind != typeQuery || !s.IsStatement(e):
		return st, false
	}
	st = r.of
	st.Schema, st.Text = schemaOf(e.Body), strings.Join(strings.Fields(statementOf(e.Body, s.checksum)), " ")
	return st, st.Text != ""
}

// schemaOf is the default schema of a Query event.
func schemaOf(body []byte) string {
	if len(body) < queryHead {
		return ""
	}
	begin := queryHead + int(binary.LittleEndian.Uint16(body[offsetStatusSize:]))
	end := begin + int(body[offsetSchemaSize])
	if end > len(body) {
		return ""
	}
	return string(body[begin:end])
}
