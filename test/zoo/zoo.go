// Package zoo has tables of every kind that the files of a data directory differ by, and
// statements that write to them and change them while a copy is taken. The package must not know
// how it is taken.
package zoo

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cnmsql.co/test/mysqld"
)

// made are the tables, and what is beside them.
var made = []string{
	"CREATE DATABASE zoo",
	"CREATE DATABASE `odd name-ä`",
	"CREATE DATABASE nothing",
	"CREATE DATABASE doomed",
	"CREATE TABLE doomed.t (id INT PRIMARY KEY, v VARCHAR(100))",
	"CREATE TABLE `odd name-ä`.`täble #1` (id INT PRIMARY KEY, v VARCHAR(100))",
	"CREATE TABLE zoo.plain (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0, KEY (n))",
	"CREATE TABLE zoo.nokey (v VARCHAR(500), n INT DEFAULT 0)",
	"CREATE TABLE zoo.gen (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0," +
		" twice INT AS (n * 2) STORED, thrice INT AS (n * 3) VIRTUAL, KEY (thrice))",
	"CREATE TABLE zoo.text (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0, FULLTEXT (v))",
	"CREATE TABLE zoo.parts" +
		" (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0) PARTITION BY HASH (id) PARTITIONS 4",
	"CREATE TABLE zoo.rowcomp" +
		" (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
	"CREATE TABLE zoo.pagecomp (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0) COMPRESSION='zlib'",
	"CREATE TABLESPACE general ADD DATAFILE 'general.ibd'",
	"CREATE TABLE zoo.ingeneral" +
		" (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0) TABLESPACE general",
	"CREATE TABLE zoo.swap_a (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0)",
	"CREATE TABLE zoo.swap_b (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 1)",
	"CREATE TABLE zoo.trunc (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0)",
	"CREATE TABLE zoo.blobs (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB, n INT DEFAULT 0)",
	"CREATE UNDO TABLESPACE undo_zoo ADD DATAFILE 'undo_zoo.ibu'",
}

// loaded are the tables that the load writes to; they exist all the time.
var loaded = []string{"plain", "nokey", "gen", "text", "parts", "rowcomp", "pagecomp", "ingeneral",
	"swap_a", "swap_b", "trunc", "blobs"}

// meddling is DDL of one round, # is its number. What it does to a file: makes it, drops
// it, renames it, swaps it with another, replaces it, changes it in place.
var meddling = []string{
	"CREATE DATABASE schema_#",
	"CREATE TABLE schema_#.made (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), n INT DEFAULT 0)",
	"INSERT INTO schema_#.made (v) VALUES ('one'), ('two')",
	"CREATE TABLE schema_#.comp (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500))" +
		" ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
	"INSERT INTO schema_#.comp (v) VALUES ('one'), ('two')",
	"CREATE TABLE schema_#.text (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(500), FULLTEXT (v))",
	"CREATE TABLE schema_#.dropped AS SELECT * FROM zoo.swap_b LIMIT 100",
	"DROP TABLE schema_#.dropped",
	"RENAME TABLE zoo.swap_a TO zoo.swap_c, zoo.swap_b TO zoo.swap_a, zoo.swap_c TO zoo.swap_b",
	"TRUNCATE zoo.trunc",
	"INSERT INTO zoo.trunc (v) SELECT v FROM zoo.plain LIMIT 100",
	"ALTER TABLE zoo.plain ADD COLUMN c# INT DEFAULT #, ALGORITHM=INSTANT",
	"ALTER TABLE zoo.gen ENGINE=InnoDB",
	"ALTER TABLE zoo.parts COALESCE PARTITION 1",
	"ALTER TABLE zoo.parts ADD PARTITION PARTITIONS 2",
	"ALTER TABLE zoo.blobs ADD KEY k# (n)",
	"CREATE TABLESPACE space_# ADD DATAFILE 'space_#.ibd'",
	"CREATE TABLE schema_#.inspace (id INT PRIMARY KEY) TABLESPACE space_#",
	"CREATE UNDO TABLESPACE undo_# ADD DATAFILE 'undo_#.ibu'",
	"CREATE TABLE zoo.moved_# AS SELECT * FROM zoo.swap_a LIMIT 1000",
	"RENAME TABLE zoo.moved_# TO schema_#.moved",
}

// Meddler runs rounds of DDL, one after the other, while a copy is taken. A zoo has room for
// some fifty.
type Meddler struct {
	Server *mysqld.Test
	// Slow is how many rounds were not done when Round returned.
	Slow int

	wg  sync.WaitGroup
	mu  sync.Mutex
	n   int
	err error
}

// Round begins one, and waits a little for its end: DDL may wait itself for the copy to go on.
func (m *Meddler) Round(before ...string) {
	done := make(chan struct{})
	m.wg.Go(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		defer close(done)
		m.n++
		for _, ddl := range slices.Concat(before, meddling) {
			ddl = strings.ReplaceAll(ddl, "#", strconv.Itoa(m.n))
			if _, err := m.Server.DB.Exec(ddl); err != nil && m.err == nil {
				m.err = fmt.Errorf("%s: %w", ddl, err)
			}
		}
	})
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		m.Slow++
	}
}

// Wait waits for the end of all rounds, and returns the first error since the last Wait.
func (m *Meddler) Wait() error {
	m.wg.Wait()
	err := m.err
	m.err = nil
	return err
}

// Fill makes the zoo, with some MiB in it for each of rounds.
func Fill(s *mysqld.Test, rounds int) {
	s.T.Helper()
	for _, statement := range made {
		s.Exec(statement)
	}
	s.Exec("INSERT INTO doomed.t VALUES (1, 'one')")
	s.Exec("INSERT INTO `odd name-ä`.`täble #1` VALUES (1, 'one')")
	for _, table := range loaded {
		for range rounds {
			s.Exec("INSERT INTO zoo."+table+" (v) WITH RECURSIVE r AS "+
				"(SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 800) "+
				"SELECT CONCAT(SHA2(CONCAT(i, ?), 512), ' ', REPEAT(SHA2(i, 224), 6)) FROM r", table)
		}
	}
	for range 6 * rounds {
		s.Exec("INSERT INTO zoo.blobs (v) VALUES (?)", randomBytes(1<<20))
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// Load writes until the function that it returns is called, which tells how many
// statements there were. What fails while the server is away is not counted.
func Load(s *mysqld.Test) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	counts := make([]int, 3)
	for w := range counts {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				table := loaded[(i+w*5)%len(loaded)]
				query := fmt.Sprintf("INSERT INTO zoo.%s (v) VALUES (CONCAT('word%d ', REPEAT(SHA2(RAND(), 224), 5)))",
					table, i%50)
				switch i % 7 {
				case 3:
					query = fmt.Sprintf("UPDATE zoo.%s SET n = n + 1 ORDER BY n LIMIT 5", table)
				case 6:
					query = fmt.Sprintf("DELETE FROM zoo.%s ORDER BY n LIMIT 2", table)
				}
				if _, err := s.DB.ExecContext(ctx, query); err == nil {
					counts[w]++
				}
			}
		})
	}
	return func() int {
		cancel()
		wg.Wait()
		return counts[0] + counts[1] + counts[2]
	}
}

// Tables are those of users, quoted, in order.
func Tables(s *mysqld.Test) (names []string) {
	s.T.Helper()
	rows, err := s.DB.Query("SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables " +
		"WHERE table_type = 'BASE TABLE' AND table_schema NOT IN " +
		"('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1")
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			s.T.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		s.T.Fatal(err)
	}
	return names
}

// Checksums are those of all tables of users; each has to be well by its own check, too.
func Checksums(s *mysqld.Test) map[string]string {
	s.T.Helper()
	out := map[string]string{}
	for _, table := range Tables(s) {
		var name, op, kind, text string
		if err := s.DB.QueryRow("CHECK TABLE "+table).Scan(&name, &op, &kind, &text); err != nil {
			s.T.Fatal(err)
		}
		if text != "OK" {
			s.T.Errorf("CHECK TABLE %s: %s %s", table, kind, text)
		}
		var sum sql.NullString
		if err := s.DB.QueryRow("CHECKSUM TABLE "+table).Scan(&name, &sum); err != nil {
			s.T.Fatal(err)
		}
		out[table] = sum.String
	}
	return out
}

// Innochecksum has MySQL's own tool look at each page of all tablespaces of a server that has
// ended, and returns how many files those were.
func Innochecksum(s *mysqld.Test) (files int) {
	s.T.Helper()
	err := filepath.WalkDir(s.Data(), func(path string, d fs.DirEntry, err error) error {
		isSpace := slices.Contains([]string{".ibd", ".ibu"}, filepath.Ext(path)) ||
			d.Name() == "ibdata1" || strings.HasPrefix(d.Name(), "undo_00")
		if err != nil || d.IsDir() || !isSpace {
			return err
		}
		files++
		if out, err := s.Files.Program(context.Background(), "bin/innochecksum", path).CombinedOutput(); err != nil {
			s.T.Errorf("innochecksum %s: %v: %s", path, err, out)
		}
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
	return files
}
