package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/test/loadbench/throughput"
	"cnmsql.co/test/loadbench/workload"
)

func realServers(t *testing.T) *own {
	t.Helper()
	if os.Getenv("CNMSQL_MYSQL_ROOTFS") == "" {
		t.Skip("needs a real mysqld: set CNMSQL_MYSQL_ROOTFS to the directory that " +
			"`go run ./tools/image mysql-rootfs` prints")
	}
	o, err := newOwn(t.Context(), "") // t.TempDir is too long a path for a socket
	must(t, err)
	t.Cleanup(func() { must(t, o.close()) })
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// bareServer is one that takes writes, and a pool of connections to it.
func bareServer(t *testing.T) (*place, *sql.DB) {
	t.Helper()
	o, at := realServers(t), &place{}
	must(t, o.bare(t.Context(), at))
	t.Cleanup(func() { must(t, at.end(context.Background())) })
	db, err := open(at.primary)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return at, db
}

func number(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	must(t, db.QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// counters of statements that were executed, on a server on which nobody else works.
func counters(t *testing.T, db *sql.DB) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, c := range []string{"begin", "commit", "rollback", "select", "insert", "update", "delete", "stmt_execute"} {
		var name, value string
		must(t, db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Com_"+c+"'").Scan(&name, &value))
		n, err := strconv.Atoi(value)
		must(t, err)
		out[c] = n
	}
	return out
}

// connected is a workload's client on a connection of its own.
func connected(t *testing.T, at *place, w workload.Workload) workload.Client {
	t.Helper()
	connector, err := driver.NewConnector(at.primary)
	must(t, err)
	conn, err := connector.Connect(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c, err := w.Client(conn, 1)
	must(t, err)
	return c
}

// done are the statements of one transaction of a workload, as the server counts them.
func done(t *testing.T, c workload.Client, db *sql.DB) string {
	t.Helper()
	before := counters(t, db)
	must(t, c.Transaction())
	after := counters(t, db)
	for name := range after {
		after[name] -= before[name]
		if after[name] == 0 {
			delete(after, name)
		}
	}
	return fmt.Sprint(after)
}

const rows = 1500

func TestTransactionsOnARealMysqld(t *testing.T) {
	at, db := bareServer(t)
	t.Run("it has the operator's settings", func(t *testing.T) {
		for name, want := range map[string]int{
			"sync_binlog": 1, "innodb_flush_log_at_trx_commit": 1, "innodb_buffer_pool_size": 128 << 20,
			"max_connections": maxConnections, "super_read_only": 0,
		} {
			if got := number(t, db, "SELECT @@GLOBAL."+name); got != want {
				t.Errorf("%s is %d", name, got)
			}
		}
	})
	t.Run("insert", func(t *testing.T) {
		w := workload.Insert{}
		must(t, w.Prepare(t.Context(), db))
		c := connected(t, at, w)
		if got := done(t, c, db); got != "map[insert:1 stmt_execute:1]" {
			t.Error(got)
		}
		if n := number(t, db, "SELECT COUNT(*) FROM inserts WHERE LENGTH(v) = 120"); n != 1 {
			t.Errorf("%d rows of 120 bytes", n)
		}
	})
	t.Run("oltp_read_write", func(t *testing.T) { readWrite(t, at, db) })
}

func readWrite(t *testing.T, at *place, db *sql.DB) {
	w := workload.ReadWrite{Rows: rows}
	for range 2 { // what was there before is gone
		must(t, w.Prepare(t.Context(), db))
	}
	const whole = "SELECT COUNT(*) FROM sbtest1 " +
		"WHERE id BETWEEN 1 AND 1500 AND LENGTH(c) = 119 AND LENGTH(pad) = 59 AND k BETWEEN 1 AND 1501"
	if n := number(t, db, whole); n != rows {
		t.Errorf("%d rows are as sysbench makes them", n)
	}
	must(t, exec(t, db, "CREATE TABLE before_it AS SELECT * FROM sbtest1"))
	c := connected(t, at, w)
	if got := done(t, c, db); got != "map[begin:1 commit:1 delete:1 insert:1 select:14 stmt_execute:18 update:2]" {
		t.Error(got)
	}
	if n := number(t, db, whole); n != rows {
		t.Errorf("%d rows are left as sysbench makes them", n)
	}
	changed := number(t, db, "SELECT COUNT(*) FROM sbtest1 s JOIN before_it b USING (id) "+
		"WHERE (s.k, s.c, s.pad) <> (b.k, b.c, b.pad)")
	if changed < 1 || changed > 3 {
		t.Errorf("%d rows are others than before", changed)
	}
	t.Run("one that is refused changes nothing", func(t *testing.T) {
		must(t, exec(t, db, "ALTER TABLE sbtest1 ADD COLUMN wanted INT NOT NULL"))
		sum := number(t, db, "SELECT SUM(k) FROM sbtest1")
		if err := c.Transaction(); !workload.IsAnswer(err) {
			t.Fatalf("it says %v", err)
		}
		must(t, c.RollBack())
		if n := number(t, db, "SELECT SUM(k) FROM sbtest1"); n != sum {
			t.Errorf("the sum of k was %d, and is %d", sum, n)
		}
		must(t, exec(t, db, "ALTER TABLE sbtest1 DROP COLUMN wanted"))
		must(t, c.Transaction())
	})
}

func exec(t *testing.T, db *sql.DB, query string) error {
	t.Helper()
	_, err := db.ExecContext(t.Context(), query)
	return err
}

func TestServersWithoutAnOperatorAreMeasured(t *testing.T) {
	own := realServers(t)
	o := options{only: "bare,pair,trio", connections: "4", warm: 100 * time.Millisecond,
		window: 2 * time.Second, rows: rows}
	p, err := o.plan()
	must(t, err)
	b := &book{run: p.run(t.Context(), own.version.String()), list: &throughput.List{}}
	must(t, p.measure(t.Context(), own, b))
	if len(b.list.Rows) != 6 {
		t.Fatalf("%+v", b.list.Rows)
	}
	for _, r := range b.list.Rows {
		if r.TPS <= 0 || r.P50 <= 0 || r.P99 < r.P50 || r.Transactions == 0 || r.Connections != 4 || r.NotAwaited != 0 {
			t.Errorf("%+v", r)
		}
		if (r.Lag != nil) == (r.Durability == throughput.Bare) || r.Lag != nil && *r.Lag <= 0 {
			t.Errorf("%s under %s has a lag of %v", r.Workload, r.Durability, r.Lag)
		}
	}
	if left, err := os.ReadDir(own.dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}
