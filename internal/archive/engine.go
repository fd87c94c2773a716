package archive

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/tablecheck"
)

const (
	innoDB   = "InnoDB"
	inMemory = "MEMORY"
)

// enginesOf are the engines of the tables of users.
func enginesOf(ctx context.Context, db *sql.DB) (map[tablecheck.Table]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE FROM information_schema.TABLES
		WHERE TABLE_TYPE = 'BASE TABLE' AND ENGINE IS NOT NULL
		AND TABLE_SCHEMA NOT IN (`+tablecheck.OwnSchemas+`)`)
	if err != nil {
		return nil, fmt.Errorf("asking for the engines of the tables: %w", err)
	}
	defer func() { _ = rows.Close() }()
	all := map[tablecheck.Table]string{}
	for rows.Next() {
		var t tablecheck.Table
		var engine string
		if err := rows.Scan(&t.Schema, &t.Name, &engine); err != nil {
			return nil, err
		}
		all[t] = engine
	}
	return all, rows.Err()
}

// inMessages is a table's name as the server's messages have it: nothing is quoted.
func inMessages(t tablecheck.Table) string { return t.Schema + "." + t.Name }

// othersOf are the tables of other engines that are named like no other table: "a.b"."c" and
// "a"."b.c" are one for messages and filters of the server.
func othersOf(engines map[tablecheck.Table]string) []tablecheck.Table {
	named := map[string]int{}
	for t := range engines {
		named[inMessages(t)]++
	}
	var out []tablecheck.Table
	for t, engine := range engines {
		if engine != innoDB && named[inMessages(t)] == 1 {
			out = append(out, t)
		}
	}
	return out
}

// detour leaves out rows of tables that the backup does not hold, and nothing else.
//
// When the applier fails at a row of such a table, the table is ignored, and the failed transaction
// is applied again. Filters of the server ignore statements, too: a RENAME that names an ignored
// table beside another one would be lost, or the ALTER that makes InnoDB of it, and all rows from
// then on. So the applier stops before the next statement, and goes on without the filter. Between
// two statements no table changes its engine or its name: what is ignored is never InnoDB's.
type detour struct {
	r *Replay
	// statements are the transactions of the batch that may change tables.
	statements gtid.Set
	ignored    []tablecheck.Table
	// failure is why they are.
	failure error
	// passed is what was executed when it last went on without the filter, once it has.
	passed  gtid.Set
	hasOnce bool
}

// take goes on behind a failure of the applier, or behind the stop before a statement; else it
// returns the failure.
func (d *detour) take(ctx context.Context, failure error) error {
	if _, err := d.r.DB.ExecContext(ctx, "STOP REPLICA FOR CHANNEL '"+Channel+"'"); err != nil {
		return fmt.Errorf("stopping the applier: %w", err)
	}
	_, has, err := d.r.wait(ctx, gtid.Set{})
	if err != nil {
		return err
	}
	messages, err := d.r.failures(ctx)
	switch {
	case err != nil:
		return err
	case len(messages) > 0:
		return d.ignore(ctx, has, messages, failure)
	case len(d.ignored) == 0:
		return failure
	case d.hasOnce && has.Equal(d.passed): // what failed holds a statement itself
		return d.failure
	}
	d.ignored, d.passed, d.hasOnce = nil, has, true
	return d.goOn(ctx, gtid.Set{})
}

// ignore the tables of other engines at whose rows the applier has failed.
func (d *detour) ignore(ctx context.Context, has gtid.Set, messages []string, failure error) error {
	engines, err := enginesOf(ctx, d.r.DB)
	if err != nil {
		return err
	}
	before := len(d.ignored)
	for _, t := range othersOf(engines) {
		isMeant := func(message string) bool { return strings.Contains(message, " on table "+inMessages(t)+";") }
		if slices.ContainsFunc(messages, isMeant) && !slices.Contains(d.ignored, t) {
			d.ignored = append(d.ignored, t)
			d.r.lacking.add(t)
		}
	}
	if len(d.ignored) == before {
		return failure
	}
	d.failure = failure
	return d.goOn(ctx, d.statements.Subtract(has))
}

// goOn with the filter as it is meant to be, at most until before some transactions.
func (d *detour) goOn(ctx context.Context, before gtid.Set) error {
	names := make([]string, len(d.ignored))
	for i, t := range d.ignored {
		names[i] = t.Quoted()
	}
	if _, err := d.r.DB.ExecContext(ctx, "CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE = ("+
		strings.Join(names, ", ")+") FOR CHANNEL '"+Channel+"'"); err != nil {
		return fmt.Errorf("ignoring tables of other engines than InnoDB (%d of them): %w", len(names), err)
	}
	return d.r.start(ctx, before)
}

// errOthersFailed is MySQL's error number of a worker that stopped because another one failed. It
// says nothing of its own.
const errOthersFailed = 3030

// failures are what the workers of the applier say of theirs.
func (r *Replay) failures(ctx context.Context) (messages []string, err error) {
	rows, err := r.DB.QueryContext(ctx, `SELECT LAST_ERROR_MESSAGE
		FROM performance_schema.replication_applier_status_by_worker
		WHERE CHANNEL_NAME = ? AND LAST_ERROR_NUMBER NOT IN (0, ?)`, Channel, errOthersFailed)
	if err != nil {
		return nil, fmt.Errorf("asking for errors of the applier: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var message string
		if err := rows.Scan(&message); err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
	return messages, rows.Err()
}

// Lacking are tables that may hold less than they did in the cluster, as schema.table, sorted.
type Lacking struct {
	// Empty were of another engine than InnoDB when the backup was taken, and are still: they hold
	// at most what was written to them later.
	Empty []string
	// LeftOut are those of which changes in the archive were left out besides: of rows that are not
	// there, and all others until the applier went on without the filter, see detour.
	LeftOut []string
	// Converted were of another engine, and are InnoDB now. They lack the rows that they had when
	// the backup was taken, unless they were made anew since.
	Converted []string
}

// Told returns a sentence for people about each of the three that is not empty. It names at most
// so many tables in each, and counts the rest. It returns nil when no table lacks rows.
func (l Lacking) Told(most int) (out []string) {
	for _, one := range []struct {
		tables []string
		what   string
	}{
		{l.Empty, "not InnoDB, and so their rows were not in the backup; they hold at most what was written later"},
		{l.LeftOut, "changes of rows that were not in the backup are left out, for the tables were not InnoDB then; " +
			"and so are other changes of them that followed, inserts, too"},
		{l.Converted, "InnoDB now, and not when the backup was taken: the rows of then are missing, unless they were " +
			"made anew; a later backup has them"},
	} {
		if len(one.tables) == 0 {
			continue
		}
		names := strings.Join(one.tables[:min(most, len(one.tables))], ", ")
		if more := len(one.tables) - most; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, names+": "+one.what)
	}
	return out
}

// Tables returns all of them, sorted: at most so many by name, and then how many more there are.
func (l Lacking) Tables(most int) []string {
	all := slices.Concat(l.Empty, l.LeftOut, l.Converted)
	slices.Sort(all)
	all = slices.Compact(all)
	if more := len(all) - most; more > 0 {
		all = append(all[:most], fmt.Sprintf("and %d more", more))
	}
	return all
}

// lacking gathers them.
type lacking struct {
	began   map[tablecheck.Table]bool // all that were of another engine at some time
	leftOut []tablecheck.Table
}

// begin notes the tables of another engine before the first transaction.
func (l *lacking) begin(ctx context.Context, db *sql.DB) error {
	engines, err := enginesOf(ctx, db)
	if err != nil {
		return err
	}
	*l = lacking{began: map[tablecheck.Table]bool{}}
	var volatile []tablecheck.Table
	for t, engine := range engines {
		if engine != innoDB {
			l.began[t] = true
		}
		if engine == inMemory {
			volatile = append(volatile, t)
		}
	}
	if len(volatile) == 0 {
		return nil
	}
	return empty(ctx, db, volatile)
}

// empty tables of MEMORY that nobody has opened since the server was started: they have no rows. When
// one is opened, the server writes a TRUNCATE to its binary log, also for a session that writes none.
// It has a GTID that no archive knows, and a replay that is begun again would be refused for it.
func empty(ctx context.Context, db *sql.DB, tables []tablecheck.Table) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		// The next one to be given the session wants its binary log.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		_ = conn.Close()
	}()
	if _, err := conn.ExecContext(ctx, "SET SESSION sql_log_bin = 0"); err != nil {
		return fmt.Errorf("switching off the binary log of a session: %w", err)
	}
	rows, err := conn.QueryContext(ctx, "SHOW OPEN TABLES")
	if err != nil {
		return fmt.Errorf("asking for the tables that are open: %w", err)
	}
	defer func() { _ = rows.Close() }()
	open := map[tablecheck.Table]bool{}
	for rows.Next() {
		var t tablecheck.Table
		var used, locked int
		if err := rows.Scan(&t.Schema, &t.Name, &used, &locked); err != nil {
			return err
		}
		open[t] = true
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, t := range tables {
		if open[t] {
			continue
		}
		// Of a server that takes no writes at all it cannot be emptied: then it stays as it is.
		_, _ = conn.ExecContext(ctx, "TRUNCATE TABLE "+t.Quoted())
	}
	return ctx.Err()
}

func (l *lacking) add(t tablecheck.Table) {
	if !slices.Contains(l.leftOut, t) {
		l.leftOut = append(l.leftOut, t)
	}
	l.began[t] = true
}

// Lacking tells, after Run, which tables may lack rows.
func (r *Replay) Lacking(ctx context.Context) (Lacking, error) {
	engines, err := enginesOf(ctx, r.DB)
	if err != nil {
		return Lacking{}, err
	}
	var out Lacking
	for t := range r.lacking.began {
		switch engine, isThere := engines[t]; {
		case engine == innoDB:
			out.Converted = append(out.Converted, t.String())
		case isThere:
			out.Empty = append(out.Empty, t.String())
		}
	}
	for _, t := range r.lacking.leftOut {
		out.LeftOut = append(out.LeftOut, t.String())
	}
	for _, names := range [][]string{out.Empty, out.LeftOut, out.Converted} {
		slices.Sort(names)
	}
	return out, nil
}

// LackingOf tells which tables of data that were just copied, on which nothing is replayed, lack rows.
func LackingOf(ctx context.Context, db *sql.DB) (Lacking, error) {
	r := Replay{DB: db}
	if err := r.lacking.begin(ctx, db); err != nil {
		return Lacking{}, err
	}
	return r.Lacking(ctx)
}
