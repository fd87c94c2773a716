package binlog

import (
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"time"

	"cnmsql.co/internal/gtid"
)

// Span is when transactions were committed where they came from, by that server's clock,
// and what they consist of.
type Span struct {
	First, Last time.Time
	// Found are the transactions of which that is known.
	Found gtid.Set
	// Maintenance are those of them that are one statement of maintenance each, which
	// changes no data.
	Maintenance gtid.Set
	// Statements are a few of the others', for people. What is no statement has none.
	Statements []string
}

// maxStatements is how many of them are kept.
const maxStatements = 3

// Times looks into the binary logs that an index names, the newest first, until it has
// found all of the wanted transactions or has read limit bytes. What it has found by
// then is valid beside an error.
func Times(ctx context.Context, index string, wanted gtid.Set, limit int64) (Span, error) {
	logs, err := All(index)
	if err != nil {
		return Span{}, err
	}
	var span Span
	for _, log := range slices.Backward(logs) {
		if limit <= 0 || span.Found.Contains(wanted) {
			break
		}
		read, err := span.add(ctx, log, wanted, limit)
		if err != nil {
			return span, err
		}
		limit -= read
	}
	return span, nil
}

// add looks into one log, of which a server may be writing the end.
func (s *Span) add(ctx context.Context, log string, wanted gtid.Set, limit int64) (read int64, err error) {
	f, err := os.Open(log)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := &io.LimitedReader{R: f, N: limit}
	what, last := content{checksum: -1}, gtid.Set{}
	judge := func() {
		s.judge(last, &what)
		what.begin()
	}
	err = scanContent(in, func(t entry) error {
		judge()
		last = wanted.Intersect(t.id)
		if wanted.Contains(t.id) {
			s.Found = s.Found.Union(t.id)
			if s.First.IsZero() || t.at.Before(s.First) {
				s.First = t.at
			}
			if t.at.After(s.Last) {
				s.Last = t.at
			}
		}
		return ctx.Err()
	}, what.add)
	if err == nil {
		judge()
	}
	return limit - in.N, err
}

// judge notes what a wanted transaction has turned out to be when the next one begins, or
// the log ends.
func (s *Span) judge(wanted gtid.Set, what *content) {
	switch {
	case wanted.IsEmpty():
	case what.isMaintenance():
		s.Maintenance = s.Maintenance.Union(wanted)
	case what.statement != "" && len(s.Statements) < maxStatements:
		s.Statements = append(s.Statements, Shown(withoutPassword(what.statement), maxStatementShown))
	}
}

var identified = regexp.MustCompile(`(?i)\bIDENTIFIED\b`)

// withoutPassword is a statement up to where it may say a password, or its hash.
func withoutPassword(statement string) string {
	if at := identified.FindStringIndex(statement); at != nil {
		return statement[:at[1]] + " …"
	}
	return statement
}
