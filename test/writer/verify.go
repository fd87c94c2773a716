package writer

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"
)

// Row is one row of the run, as the writer knows it.
type Row struct {
	Connection int
	Seq        int64
	Outcome    Outcome   // 0: the writer never tried to write it
	At         time.Time // when its outcome was known
}

// Verification compares the table with what the server had said.
type Verification struct {
	Rows    int   // found in the table
	Missing []Row // acknowledged, but not in the table: lost
	Extra   []Row // in the table, but refused or never tried
	// acknowledged, and older by the table's time than an acknowledged row before it on its connection
	OutOfOrder     []Row
	UnknownPresent int // of the unknown ones, those that were committed
	UnknownAbsent  int
}

// OK says that nothing acknowledged is missing and nothing denied is there. The order is not part
// of it: it rests on the servers' clocks, and those of two nodes may differ by more than the time
// between two rows.
func (v Verification) OK() bool { return len(v.Missing) == 0 && len(v.Extra) == 0 }

// Verify reads the run's rows through db, which may lead to any instance; that a replica has
// caught up is for the caller to see to. It is for a writer that has been stopped.
func (w *Writer) Verify(ctx context.Context, db *sql.DB) (Verification, error) {
	return w.verify(ctx, db)
}

// reader is a pool of connections, or one of them.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func (w *Writer) verify(ctx context.Context, db reader) (Verification, error) {
	if w.record == nil {
		return Verification{}, ErrNotStarted
	}
	if !w.record.isStopped() {
		return Verification{}, errors.New("writer: still writing, so the table cannot be compared with anything; " +
			"call Stop first")
	}
	w.workers.Wait() // outcomes of statements in flight belong to it
	c := newComparison(w.record)
	if err := w.eachRow(ctx, db, c.row); err != nil {
		return Verification{}, fmt.Errorf("writer: read the rows of run %s from %s: %w",
			w.config.Run, w.config.Table, err)
	}
	return c.end(), nil
}

// VerifyWithin is Verify of a server that takes writes, tried again until it succeeds or the
// limit has passed. What the writer was there to observe may still lie in the way: the node that
// answers for a Service keeps the attempts to connect to an address that was gone for two
// minutes, and a new connection that happens to have the port of one of them goes there, too: "no
// route to host", or, once the former primary is back at its address, a replica that has not
// caught up.
func (w *Writer) VerifyWithin(ctx context.Context, db *sql.DB, limit time.Duration) (Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		v, err := w.verifyPrimary(ctx, db)
		if err == nil {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, fmt.Errorf("%w (tried for %s)", err, limit)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (w *Writer) verifyPrimary(ctx context.Context, db *sql.DB) (Verification, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return Verification{}, fmt.Errorf("writer: connect to read the rows: %w", err)
	}
	defer conn.Close()
	var readOnly bool
	if err := conn.QueryRowContext(ctx, "SELECT @@GLOBAL.super_read_only").Scan(&readOnly); err != nil {
		return Verification{}, fmt.Errorf("writer: ask whether the server takes writes: %w", err)
	}
	if readOnly {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // another may lead to another server
		return Verification{}, errors.New("writer: the rows are to be read from a server that takes writes, and this " +
			"one does not")
	}
	return w.verify(ctx, conn)
}

// Settled waits until no statement of db's account is under way on the server behind it, and
// tells what the server has executed then. A statement that the writer has given up is carried
// out all the same, after the writer was stopped: who compares servers before that compares two
// moments.
func Settled(ctx context.Context, db *sql.DB) (executed string, err error) {
	for underWay := 1; underWay > 0; {
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.processlist"+
			" WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND command <> 'Sleep' AND id <> CONNECTION_ID()").Scan(
			&underWay); err != nil {
			return "", fmt.Errorf("writer: ask what is under way: %w", err)
		}
		if underWay > 0 {
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("writer: %d statements are still under way: %w", underWay, ctx.Err())
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	err = db.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&executed)
	return executed, err
}

// eachRow gives the rows in the order of their sequence numbers, with their times in microseconds.
func (w *Writer) eachRow(ctx context.Context, db reader, visit func(connection int, seq, micros int64)) error {
	rows, err := db.QueryContext(ctx, "SELECT conn, seq, CAST(UNIX_TIMESTAMP(at) * 1000000 AS SIGNED) FROM "+
		w.config.quotedTable()+
		" WHERE run = '"+w.config.Run+"' ORDER BY conn, seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var connection int
		var seq, micros int64
		if err := rows.Scan(&connection, &seq, &micros); err != nil {
			return err
		}
		visit(connection, seq, micros)
	}
	return rows.Err()
}

// comparison walks table and record side by side; both ascend by sequence number within a connection.
type comparison struct {
	record   *record
	result   Verification
	compared []int   // by connection: how far into the record
	lastTime []int64 // by connection: the table's time of the last acknowledged row
}

func newComparison(r *record) *comparison {
	connections := len(r.attempts)
	return &comparison{record: r, lastTime: make([]int64, connections), compared: make([]int, connections)}
}

func (c *comparison) row(connection int, seq, micros int64) {
	c.result.Rows++
	if connection < 0 || connection >= len(c.compared) || seq < 1 || seq > int64(len(c.record.attempts[connection])) {
		c.result.Extra = append(c.result.Extra, Row{Connection: connection, Seq: seq})
		return
	}
	c.absentUpTo(connection, int(seq)-1)
	c.compared[connection] = int(seq)
	switch row := c.at(connection, int(seq)); row.Outcome {
	case Unknown:
		c.result.UnknownPresent++
	case Refused:
		c.result.Extra = append(c.result.Extra, row)
	case Acknowledged:
		if micros < c.lastTime[connection] {
			c.result.OutOfOrder = append(c.result.OutOfOrder, row)
		}
		c.lastTime[connection] = max(micros, c.lastTime[connection])
	}
}

// absentUpTo judges the attempts that the table has no rows for.
func (c *comparison) absentUpTo(connection, last int) {
	for seq := c.compared[connection] + 1; seq <= last; seq++ {
		switch row := c.at(connection, seq); row.Outcome {
		case Acknowledged:
			c.result.Missing = append(c.result.Missing, row)
		case Unknown:
			c.result.UnknownAbsent++
		}
	}
	c.compared[connection] = max(c.compared[connection], last)
}

// end judges what comes after the last row of each connection.
func (c *comparison) end() Verification {
	for connection, attempts := range c.record.attempts {
		c.absentUpTo(connection, len(attempts))
	}
	return c.result
}

func (c *comparison) at(connection, seq int) Row {
	a := c.record.attempts[connection][seq-1]
	return Row{Connection: connection, Seq: int64(seq), Outcome: a.outcome, At: c.record.started.Add(a.end)}
}
