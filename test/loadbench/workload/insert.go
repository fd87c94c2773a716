package workload

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// Insert is one row a transaction, autocommitted, by a prepared statement: a key that the
// server counts, and 120 bytes.
type Insert struct{}

// Name is a Workload's.
func (Insert) Name() string { return "insert" }

// Prepare is a Workload's. The table is empty.
func (Insert) Prepare(ctx context.Context, db *sql.DB) error {
	return execAll(ctx, db, "DROP TABLE IF EXISTS inserts",
		"CREATE TABLE inserts (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, v VARCHAR(120) NOT NULL)")
}

// Client is a Workload's.
func (Insert) Client(conn driver.Conn, seed uint64) (Client, error) {
	c := &inserter{session: newSession(conn, seed)}
	var err error
	c.insert, err = c.prepare("INSERT INTO inserts (v) VALUES (?)")
	return c, err
}

type inserter struct {
	session
	insert statement
}

// Transaction is a Client's.
func (c *inserter) Transaction() error {
	_, err := c.insert.exec(groups(c.random, 10) + "-")
	return err
}
