package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// patience is for what takes as long as the machine takes.
const patience = 2 * time.Minute

const (
	tables = 4
	rowLen = 1 << 10
	// batch is how many rows a transaction loads.
	batch = 16 << 10
)

// fill makes the accounts, the tables, and so many bytes of rows in them, which the binary
// log does not get. At its end nothing is left in the buffer pool that is not on disk.
func (s *server) fill(ctx context.Context, size int64) error {
	if err := s.exec(ctx, "CREATE USER backup IDENTIFIED WITH caching_sha2_password BY 'secret'",
		"GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO backup", "CREATE DATABASE bench",
		"CREATE TABLE bench.inserts (id BIGINT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(200))",
		"SET GLOBAL innodb_flush_log_at_trx_commit = 0"); err != nil {
		return err
	}
	if err := eachTable(func(n int) error { return s.fillTable(ctx, n, size/tables/rowLen) }); err != nil {
		return err
	}
	if err := s.exec(ctx, "SET GLOBAL innodb_flush_log_at_trx_commit = 1"); err != nil {
		return err
	}
	return s.flushed(ctx)
}

// table is the name of one of those that are compared.
func table(n int) string { return "bench.rows" + strconv.Itoa(n) }

func (s *server) fillTable(ctx context.Context, n int, rows int64) error {
	conn, err := s.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	create := "CREATE TABLE " + table(n) +
		" (id BIGINT AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c VARCHAR(800), pad VARCHAR(250), KEY (k))"
	for _, q := range []string{create, "SET sql_log_bin = 0"} {
		if _, err := conn.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	source := rand.New(rand.NewPCG(1, uint64(n)))
	for left := rows; left > 0; left -= batch {
		name := fmt.Sprintf("%d-%d", n, left)
		mysql.RegisterReaderHandler(name, func() io.Reader {
			return &rowReader{source: source, left: min(left, batch)}
		})
		_, err := conn.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::"+name+"' INTO TABLE "+table(n)+" (k, c, pad)")
		mysql.DeregisterReaderHandler(name)
		if err != nil {
			return fmt.Errorf("filling %s: %w", table(n), err)
		}
	}
	return nil
}

// rowReader gives rows for LOAD DATA: groups of random digits, as those of sysbench.
type rowReader struct {
	source *rand.Rand
	left   int64
	buf    bytes.Buffer
}

// Read gives the rows that are left, and then io.EOF.
func (r *rowReader) Read(p []byte) (int, error) {
	for ; r.left > 0 && r.buf.Len() < len(p); r.left-- {
		r.buf.WriteString(strconv.Itoa(r.source.IntN(1 << 20)))
		r.buf.WriteByte('\t')
		r.digits(64)
		r.buf.WriteByte('\t')
		r.digits(20)
		r.buf.WriteByte('\n')
	}
	return r.buf.Read(p)
}

// digits writes groups of eleven, with a dash behind each.
func (r *rowReader) digits(groups int) {
	for range groups {
		n := r.source.Uint64() % 1e11
		var group [12]byte
		for i := 10; i >= 0; i-- {
			group[i], n = byte('0'+n%10), n/10
		}
		group[11] = '-'
		r.buf.Write(group[:])
	}
}

// flushed waits until all that was written is in the data files.
func (s *server) flushed(ctx context.Context) error {
	if err := s.exec(ctx, "SET GLOBAL innodb_max_dirty_pages_pct_lwm = 0",
		"SET GLOBAL innodb_max_dirty_pages_pct = 0"); err != nil {
		return err
	}
	for deadline := time.Now().Add(patience); ; {
		left, err := s.text(ctx, "SELECT variable_value FROM performance_schema.global_status "+
			"WHERE variable_name = 'Innodb_buffer_pool_pages_dirty'")
		if err != nil {
			return err
		}
		if left == "0" {
			return s.exec(ctx, "SET GLOBAL innodb_max_dirty_pages_pct = 90",
				"SET GLOBAL innodb_max_dirty_pages_pct_lwm = 10")
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s pages are still not on disk", left)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// checksums of all tables that were filled.
func (s *server) checksums(ctx context.Context) (sums [tables]string, err error) {
	err = eachTable(func(n int) error {
		var name string
		if err := s.DB.QueryRowContext(ctx, "CHECKSUM TABLE "+table(n)).Scan(&name, &sums[n]); err != nil {
			return fmt.Errorf("CHECKSUM TABLE %s: %w", table(n), err)
		}
		return nil
	})
	return sums, err // only now are they known
}

// eachTable does something with all of them at the same time.
func eachTable(do func(n int) error) error {
	var wg sync.WaitGroup
	var errs [tables]error
	for n := range tables {
		wg.Go(func() { errs[n] = do(n) })
	}
	wg.Wait()
	return errors.Join(errs[:]...)
}
