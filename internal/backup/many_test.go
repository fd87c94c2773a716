package backup

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"cnmsql.co/internal/seal"
)

// TestTenThousandTables: each is a file of its own, and all of them are there again.
func TestTenThousandTables(t *testing.T) {
	const tables, makers = 10_000, 4
	donor := newServer(t)
	donor.Initialize()
	donor.start(1, "--innodb-flush-method=nosync")
	donor.mayBeCopied()
	donor.Exec("CREATE DATABASE many")
	began := time.Now()
	var wg sync.WaitGroup
	errs := make(chan error, makers)
	for m := range makers {
		wg.Go(func() {
			for i := m; i < tables; i += makers {
				made := fmt.Sprintf("CREATE TABLE many.t%d (id INT PRIMARY KEY, v CHAR(56)) "+
					"AS SELECT %[1]d AS id, SHA2(%[1]d, 224) AS v", i)
				if _, err := donor.DB.Exec(made); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	if len(errs) > 0 {
		t.Fatal(<-errs)
	}
	t.Logf("%d tables were made in %s", tables, time.Since(began))

	s := newMemory()
	peak := watchHeap(s)
	o := donor.options("many")
	began = time.Now()
	m, err := Take(t.Context(), donor.donor(), s, o)
	took, grown := time.Since(began), peak()
	must(t, err)
	t.Logf("%d parts, %d MiB, %d MiB stored, in %s; the heap was %d MiB beside the store",
		len(m.Parts), m.RawSize>>20, m.StoredSize>>20, took, grown>>20)
	if grown > 256<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	restored := newServer(t)
	intoDirectory(t, s, "many", restored, seal.Key{})
	began = time.Now()
	restored.start(2)
	t.Logf("mysqld started on it in %s", time.Since(began))
	is := restored.Text("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'many'")
	if is != strconv.Itoa(tables) {
		t.Errorf("there are %s tables", is)
	}
	for i := 0; i < tables; i += 97 {
		ask := fmt.Sprintf("SELECT CONCAT(COUNT(*), ' ', SUM(id = %d AND v = SHA2(%[1]d, 224))) FROM many.t%[1]d", i)
		if v := restored.Text(ask); v != "1 1" {
			t.Errorf("table %d has %s", i, v)
		}
	}
}
