package workload

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"strings"
)

// ReadWrite is sysbench's oltp_read_write with its defaults: its one table sbtest1 and its
// statements, prepared, in its order. What differs: ids are drawn uniformly (sysbench's
// default is its "special" distribution), the table has as many rows as is told (sysbench's
// default is 10,000), and a transaction that fails by a deadlock is not begun again.
type ReadWrite struct{ Rows int }

const (
	pointSelects = 10
	rangeSize    = 100
)

// Name is a Workload's.
func (ReadWrite) Name() string { return "oltp_read_write" }

// batch is how many rows one statement fills in.
const batch = 1000

// Prepare is a Workload's.
func (w ReadWrite) Prepare(ctx context.Context, db *sql.DB) error {
	err := execAll(ctx, db, "DROP TABLE IF EXISTS sbtest1",
		"CREATE TABLE sbtest1 (id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT NULL, "+
			"c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id)) ENGINE = innodb")
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for from := 1; from <= w.Rows; from += batch {
		var b strings.Builder
		b.WriteString("INSERT INTO sbtest1 (id, k, c, pad) VALUES ")
		for id := from; id <= min(from+batch-1, w.Rows); id++ {
			if id > from {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "(%d,%d,'%s','%s')", id, 1+random.IntN(w.Rows), groups(random, 10), groups(random, 5))
		}
		if err := execAll(ctx, db, b.String()); err != nil {
			return err
		}
	}
	return execAll(ctx, db, "CREATE INDEX k_1 ON sbtest1 (k)")
}

// Client is a Workload's.
func (w ReadWrite) Client(conn driver.Conn, seed uint64) (Client, error) {
	if w.Rows < 1 {
		return nil, fmt.Errorf("a table of %d rows has none to read or change: give one at least", w.Rows)
	}
	c := &readerWriter{session: newSession(conn, seed), rows: w.Rows}
	for text, into := range map[string]*statement{
		"SELECT c FROM sbtest1 WHERE id = ?":                                 &c.point,
		"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?":                     &c.simple,
		"SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?":                &c.sum,
		"SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c":          &c.order,
		"SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c": &c.distinct,
		"UPDATE sbtest1 SET k = k + 1 WHERE id = ?":                          &c.index,
		"UPDATE sbtest1 SET c = ? WHERE id = ?":                              &c.nonIndex,
		"DELETE FROM sbtest1 WHERE id = ?":                                   &c.remove,
		"INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)":            &c.insert,
	} {
		var err error
		if *into, err = c.prepare(text); err != nil {
			return nil, err
		}
	}
	return c, nil
}

type readerWriter struct {
	session
	rows                                int
	point, simple, sum, order, distinct statement
	index, nonIndex, remove, insert     statement
}

// Transaction is a Client's.
func (c *readerWriter) Transaction() error {
	for _, step := range []func() error{c.begin, c.read, c.update, c.replace} {
		if err := step(); err != nil {
			return err
		}
	}
	return c.text("COMMIT")
}

func (c *readerWriter) begin() error { return c.text("BEGIN") }

// id of a row, or k of one.
func (c *readerWriter) id() int64 { return 1 + c.random.Int64N(int64(c.rows)) }

func (c *readerWriter) read() error {
	for range pointSelects {
		if _, err := c.point.query(c.id()); err != nil {
			return err
		}
	}
	for _, st := range []statement{c.simple, c.sum, c.order, c.distinct} {
		from := c.id()
		if _, err := st.query(from, from+rangeSize-1); err != nil {
			return err
		}
	}
	return nil
}

func (c *readerWriter) update() error {
	if _, err := c.index.exec(c.id()); err != nil {
		return err
	}
	_, err := c.nonIndex.exec(groups(c.random, 10), c.id())
	return err
}

// replace deletes a row, and inserts another with its id.
func (c *readerWriter) replace() error {
	id := c.id()
	if _, err := c.remove.exec(id); err != nil {
		return err
	}
	_, err := c.insert.exec(id, c.id(), groups(c.random, 10), groups(c.random, 5))
	return err
}
