package tablecheck

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// Table is the name of a base table.
type Table struct{ Schema, Name string }

// String is the name as people write it, which no other table has: with a dot or a quote in it
// only quotes tell where the schema ends.
func (t Table) String() string {
	if strings.ContainsAny(t.Schema+t.Name, ".`") {
		return t.Quoted()
	}
	return t.Schema + "." + t.Name
}

// Quoted is the name as a statement has it.
func (t Table) Quoted() string { return quote(t.Schema) + "." + quote(t.Name) }

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// OwnSchemas are the server's own ones, as a list in a statement has them.
const OwnSchemas = "'mysql', 'sys', 'information_schema', 'performance_schema'"

// Finding is what the server said of a table that is not sound.
type Finding struct {
	Table   Table
	Message string
}

// Tables are all base tables that hold data on a disk, those of the server's own accounts and
// settings among them, in the order of their names.
func Tables(ctx context.Context, db *sql.DB) ([]Table, error) {
	return listed(ctx, db, "SELECT table_schema, table_name FROM information_schema.tables"+
		" WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('information_schema', 'performance_schema')"+
		" ORDER BY table_schema, table_name")
}

// querier is a connection, or a pool of them.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// listed are the tables that a query names.
func listed(ctx context.Context, from querier, query string, args ...any) ([]Table, error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("listing the tables: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var out []Table
	for rows.Next() {
		var t Table
		if err := rows.Scan(&t.Schema, &t.Name); err != nil {
			return nil, fmt.Errorf("listing the tables: %w", err)
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// Check has the server check a table: nil when it says that the table is sound. The error is
// that it could not be asked to the end.
func Check(ctx context.Context, db *sql.DB, t Table) (*Finding, error) {
	rows, err := db.QueryContext(ctx, "CHECK TABLE "+t.Quoted())
	if err != nil {
		return nil, fmt.Errorf("CHECK TABLE %s: %w", t, err)
	}
	defer func() { _ = rows.Close() }()
	var said []string
	sound := false
	for rows.Next() {
		var table, op, kind, text sql.NullString
		if err := rows.Scan(&table, &op, &kind, &text); err != nil {
			return nil, fmt.Errorf("CHECK TABLE %s: reading the answer: %w", t, err)
		}
		// The last row is the verdict. A note may stand for it: of an engine that has
		// nothing to check.
		sound = strings.EqualFold(kind.String, "status") && isSound(text.String) ||
			strings.EqualFold(kind.String, "note")
		said = append(said, kind.String+": "+text.String)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("CHECK TABLE %s: reading the answer: %w", t, err)
	}
	if sound {
		return nil, nil
	}
	return &Finding{Table: t, Message: strings.Join(said, ", ")}, nil
}

func isSound(status string) bool {
	return status == "OK" || status == "Table is already up to date"
}
