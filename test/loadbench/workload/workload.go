// Package workload is what the clients of make bench-load do: tables, and transactions on one
// connection. It must not know how many clients there are, nor what is measured of them.
package workload

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// Workload is one of those that are measured.
type Workload interface {
	Name() string
	// Prepare makes its table again in the database that the connections are in.
	Prepare(ctx context.Context, db *sql.DB) error
	// Client readies a connection. What it draws at random follows from the seed.
	Client(conn driver.Conn, seed uint64) (Client, error)
}

// Client is one connection at work. It is for one goroutine.
type Client interface {
	// Transaction does one, and returns when the server has acknowledged its commit. After an
	// error it is unknown whether it is committed, unless the error is the server's answer.
	Transaction() error
	// RollBack ends what is left of a transaction that failed by the server's answer.
	RollBack() error
}

// All workloads, with so many rows in the tables that have rows from the start.
func All(rows int) []Workload { return []Workload{Insert{}, ReadWrite{Rows: rows}} }

// IsAnswer reports whether an error is the server's answer: the connection can be used on.
func IsAnswer(err error) bool {
	var answer *mysql.MySQLError
	return errors.As(err, &answer)
}

// Statements have no context: one that was sent is waited for, until the driver's timeout.
var background = context.Background()

// session is a connection with the driver itself: database/sql might do a statement again on
// another connection, and would take its share of the machine's cores.
type session struct {
	conn   driver.Conn
	random *rand.Rand
}

func newSession(conn driver.Conn, seed uint64) session {
	return session{conn, rand.New(rand.NewPCG(seed, 1))}
}

func (s *session) text(statement string) error {
	_, err := s.conn.(driver.ExecerContext).ExecContext(background, statement, nil)
	return err
}

// RollBack is a Client's.
func (s *session) RollBack() error { return s.text("ROLLBACK") }

// statement is prepared on the server.
type statement struct{ driver.Stmt }

func (s *session) prepare(text string) (statement, error) {
	st, err := s.conn.Prepare(text)
	if err != nil {
		err = fmt.Errorf("preparing %q: %w", text, err)
	}
	return statement{st}, err
}

func named(args []any) []driver.NamedValue {
	out := make([]driver.NamedValue, len(args))
	for i, a := range args {
		out[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
	}
	return out
}

// exec does a statement, and tells how many rows it has changed.
func (st statement) exec(args ...any) (int64, error) {
	result, err := st.Stmt.(driver.StmtExecContext).ExecContext(background, named(args))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// query reads all rows, and tells how many there were.
func (st statement) query(args ...any) (n int, err error) {
	rows, err := st.Stmt.(driver.StmtQueryContext).QueryContext(background, named(args))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	into := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(into); {
		case errors.Is(err, io.EOF):
			return n, nil
		case err != nil:
			return n, err
		}
		n++
	}
}

// groups of eleven random digits, with a dash between them, as sysbench fills its columns.
func groups(random *rand.Rand, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte('-')
		}
		fmt.Fprintf(&b, "%011d", random.Uint64N(1e11))
	}
	return b.String()
}

func execAll(ctx context.Context, db *sql.DB, statements ...string) error {
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%.60s: %w", s, err)
		}
	}
	return nil
}
