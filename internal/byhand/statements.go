package byhand

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"text/tabwriter"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/restore"
)

// Search is which statements are looked for. A zero time is no bound, and nil matches all.
type Search struct {
	Matching     *regexp.Regexp
	Since, Until time.Time
	Out          io.Writer
}

// Logs lists the statements of the binary logs that an index names, of which a server may be
// writing the last one.
func (s Search) Logs(ctx context.Context, index string) error {
	logs, err := binlog.All(index)
	if err != nil {
		return err
	}
	return s.list("", func(visit func(binlog.Statement) error) error {
		for _, log := range logs {
			if err := s.log(ctx, log, visit); err != nil {
				return fmt.Errorf("reading %s: %w", log, err)
			}
		}
		return nil
	})
}

func (s Search) log(ctx context.Context, log string, visit func(binlog.Statement) error) (err error) {
	f, err := os.Open(log)
	if errors.Is(err, os.ErrNotExist) {
		return nil // purged since the index was read
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || info.ModTime().Before(s.Since) {
		return err
	}
	return binlog.Statements(ctx, f, visit)
}

// Archive lists the statements of what was archived of a cluster.
func (s Search) Archive(ctx context.Context, w Where) error {
	from, key, err := w.open()
	if err != nil {
		return err
	}
	archived, err := restore.Archived(ctx, from, w.Cluster)
	if err != nil {
		return err
	}
	place := archive.NewPlace(from, backup.LogPrefix(w.Cluster), key)
	err = s.list(reaches(*archived), func(visit func(binlog.Statement) error) error {
		return place.Statements(ctx, *archived, s.Since, s.Until, visit)
	})
	if n := len(archived.Unreadable); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d of the archive's objects cannot be read, and are not searched: %s",
			n, archived.Unreadable[0].Message))
	}
	return err
}

// reaches tells up to when an archive holds statements: what was committed later is on the instances alone.
func reaches(a facts.Archive) string {
	var last time.Time
	for _, part := range a.Parts {
		if part.Last.After(last) {
			last = part.Last
		}
	}
	if last.IsZero() {
		return "nothing is archived yet"
	}
	return "what is archived ends at " + last.UTC().Format(time.RFC3339)
}

// list prints what matches, also what was found before an error, and up to when there was anything to find.
func (s Search) list(reaches string, each func(visit func(binlog.Statement) error) error) error {
	table := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	found := 0
	err := each(func(st binlog.Statement) error {
		if !s.matches(st) {
			return nil
		}
		if found++; found == 1 {
			_, _ = fmt.Fprintln(table, "COMMITTED\tGTID\tDATABASE\tSTATEMENT")
		}
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", st.Committed.UTC().Format("2006-01-02T15:04:05.000000Z"),
			cmp.Or(st.ID.String(), "?"), cmp.Or(binlog.Shown(st.Schema, mostShown), "-"),
			binlog.Shown(st.Text, mostShown))
		if err == nil && found%aligned == 0 {
			err = table.Flush()
		}
		return err
	})
	if err == nil && found == 0 {
		_, _ = fmt.Fprintln(table, "no statement matches")
	}
	err = errors.Join(err, table.Flush())
	if err == nil && reaches != "" {
		_, err = fmt.Fprintf(s.Out, "(%s)\n", reaches)
	}
	return err
}

func (s Search) matches(st binlog.Statement) bool {
	isOutside := st.Committed.Before(s.Since) || !s.Until.IsZero() && st.Committed.After(s.Until)
	return !isOutside && (s.Matching == nil || s.Matching.MatchString(st.Text))
}

const (
	// mostShown is how much of a statement is shown, in bytes.
	mostShown = 160
	// aligned is how many lines are aligned with one another: more are not held in memory.
	aligned = 256
)
