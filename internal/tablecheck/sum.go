package tablecheck

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core/verify"
)

const (
	// maxSummed is how many tables are summed up, maxBytes how large one of them may be by
	// the server's own estimate, and sumLimit how long one may take.
	maxSummed = 20
	maxBytes  = 64 << 20
	sumLimit  = 30 * time.Second
	// settled is longer than a transaction takes from when its rows can be read until it is
	// in gtid_executed.
	settled = time.Second
)

// TakeSample sums up some tables of a server that others write to, without stopping anybody.
// A table counts if it had the same sum before and after the moment at which gtid_executed
// was read, and the server counts no row as written in between. which chooses the tables: it
// is any text, and another one chooses others where there are many.
func TakeSample(ctx context.Context, db *sql.DB, which string) (out verify.Sample, err error) {
	conn, done, err := session(ctx, db, sumLimit)
	if err != nil {
		return out, err
	}
	defer done()
	tables, err := choose(ctx, conn, which)
	if err != nil {
		return out, err
	}
	before, err := sumAll(ctx, conn, tables)
	if err != nil {
		return out, err
	}
	wrote, err := writes(ctx, conn)
	if err != nil {
		return out, err
	}
	if err := pause(ctx, settled); err != nil {
		return out, err
	}
	if err := conn.QueryRowContext(ctx, "SELECT @@global.gtid_executed").Scan(&out.Executed); err != nil {
		return out, fmt.Errorf("asking for gtid_executed: %w", err)
	}
	after, err := sumAll(ctx, conn, tables)
	if err != nil {
		return out, err
	}
	writes, err := writes(ctx, conn)
	if err != nil {
		return out, err
	}
	for _, t := range tables {
		a, summed := before[t]
		n, counted := wrote[t]
		if summed && counted && a == after[t] && n == writes[t] {
			out.Sums = append(out.Sums, a)
		} else {
			out.Changed++
		}
	}
	return out, nil
}

// SumOf sums up tables of a server that nobody writes to. One that is not there, or cannot be
// read, has no sum in the answer.
func SumOf(ctx context.Context, db *sql.DB, names []string) ([]verify.Sum, error) {
	conn, done, err := session(ctx, db, 0)
	if err != nil {
		return nil, err
	}
	defer done()
	all, err := listed(ctx, conn, "SELECT table_schema, table_name FROM information_schema.tables"+
		" WHERE table_type = 'BASE TABLE'")
	if err != nil {
		return nil, err
	}
	known := map[string]Table{}
	for _, t := range all {
		known[t.String()] = t
	}
	var out []verify.Sum
	for _, name := range names {
		t, is := known[name]
		if !is {
			continue
		}
		sum, err := sumOf(ctx, conn, t)
		if err != nil {
			return nil, err
		}
		out = append(out, sum)
	}
	return out, nil
}

// session is a connection in which values read the same on every server, and no statement
// takes longer than limit, if that is not 0. It is nobody else's afterwards.
func session(ctx context.Context, db *sql.DB, limit time.Duration) (*sql.Conn, func(), error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("logging in to read tables: %w", err)
	}
	done := func() {
		_ = conn.Raw(func(any) error { return sqldriver.ErrBadConn })
		_ = conn.Close()
	}
	statement := fmt.Sprintf("SET SESSION time_zone = '+00:00', transaction_isolation = 'REPEATABLE-READ',"+
		" information_schema_stats_expiry = 0, max_execution_time = %d", limit.Milliseconds())
	if _, err := conn.ExecContext(ctx, statement); err != nil {
		done()
		return nil, nil, fmt.Errorf("preparing to read tables: %w", err)
	}
	return conn, done, nil
}

// choose takes some tables of applications that are small enough.
func choose(ctx context.Context, conn *sql.Conn, which string) ([]Table, error) {
	return listed(ctx, conn, "SELECT table_schema, table_name FROM information_schema.tables"+
		" WHERE table_type = 'BASE TABLE' AND engine = 'InnoDB' AND data_length <= ?"+
		" AND table_schema NOT IN ("+OwnSchemas+")"+
		" ORDER BY CRC32(CONCAT(?, '/', table_schema, '.', table_name)), table_schema, table_name LIMIT ?",
		maxBytes, which, maxSummed)
}

// sumAll leaves out tables that cannot be summed up: they were dropped meanwhile, or take too
// long.
func sumAll(ctx context.Context, conn *sql.Conn, tables []Table) (map[Table]verify.Sum, error) {
	out := map[Table]verify.Sum{}
	for _, t := range tables {
		sum, err := sumOf(ctx, conn, t)
		if err == nil {
			out[t] = sum
		} else if conn.PingContext(ctx) != nil {
			return nil, err
		}
	}
	return out, nil
}

func sumOf(ctx context.Context, conn *sql.Conn, t Table) (verify.Sum, error) {
	out := verify.Sum{Table: t.String()}
	row, err := rowSum(ctx, conn, t)
	if err != nil {
		return out, err
	}
	query := "SELECT COUNT(*), CONCAT(COALESCE(BIT_XOR(" + row + "), 0), '-', COALESCE(SUM(" + row + "), 0))" +
		" FROM " + t.Quoted()
	if err := conn.QueryRowContext(ctx, query).Scan(&out.Rows, &out.Sum); err != nil {
		return out, fmt.Errorf("summing up the rows of %s: %w", t, err)
	}
	return out, nil
}

// rowSum is an expression that tells one row from another: of each column whether it is NULL,
// and what its bytes add up to.
func rowSum(ctx context.Context, conn *sql.Conn, t Table) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT column_name FROM information_schema.columns"+
		" WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position", t.Schema, t.Name)
	if err != nil {
		return "", fmt.Errorf("listing the columns of %s: %w", t, err)
	}
	defer func() { _ = rows.Close() }()
	var parts []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return "", fmt.Errorf("listing the columns of %s: %w", t, err)
		}
		parts = append(parts, "ISNULL("+quote(name)+")", "CRC32(CAST("+quote(name)+" AS BINARY))")
	}
	return "CRC32(CONCAT_WS('#', " + strings.Join(parts, ", ") + "))", rows.Err()
}

// writes is how many rows the server counts as written, of each table that it counts.
func writes(ctx context.Context, conn *sql.Conn) (map[Table]uint64, error) {
	rows, err := conn.QueryContext(ctx, "SELECT object_schema, object_name, count_write"+
		" FROM performance_schema.table_io_waits_summary_by_table WHERE object_type = 'TABLE'")
	if err != nil {
		return nil, fmt.Errorf("asking which tables are written to: %w", err)
	}
	defer func() { _ = rows.Close() }()
	out := map[Table]uint64{}
	for rows.Next() {
		var t Table
		var n uint64
		if err := rows.Scan(&t.Schema, &t.Name, &n); err != nil {
			return nil, fmt.Errorf("asking which tables are written to: %w", err)
		}
		out[t] = n
	}
	return out, rows.Err()
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
