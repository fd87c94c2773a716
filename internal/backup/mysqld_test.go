package backup

import (
	"context"
	crand "crypto/rand"
	"database/sql"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
)

const (
	accounts = 200
	balance  = 1000
)

// fill makes a bank, whose balances are always the same in all, and ballast of so many MiB,
// of which half can be compressed.
func (s *server) fill(ballast int) {
	s.T.Helper()
	s.mayBeCopied()
	s.Exec("CREATE DATABASE bank")
	s.Exec("CREATE TABLE bank.accounts (id INT PRIMARY KEY, balance INT NOT NULL)")
	s.Exec("CREATE TABLE bank.moves (id BIGINT AUTO_INCREMENT PRIMARY KEY, payer INT, payee INT, note VARCHAR(2000))")
	s.Exec("CREATE TABLE bank.ballast (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB)")
	for i := range accounts {
		s.Exec("INSERT INTO bank.accounts VALUES (?, ?)", i, balance)
	}
	for range ballast {
		v := make([]byte, 1<<20)
		_, _ = crand.Read(v[:len(v)/2])
		s.Exec("INSERT INTO bank.ballast (v) VALUES (?)", v)
	}
}

// move is one transaction, which leaves a row in moves.
func (s *server) move(ctx context.Context) error {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	payer, payee := rand.IntN(accounts), rand.IntN(accounts)
	for _, q := range []string{
		fmt.Sprintf("UPDATE bank.accounts SET balance = balance - 1 WHERE id = %d", payer),
		fmt.Sprintf("UPDATE bank.accounts SET balance = balance + 1 WHERE id = %d", payee),
		fmt.Sprintf("INSERT INTO bank.moves (payer, payee, note) VALUES (%d, %d, REPEAT(SHA2(RAND(), 224), 20))", payer,
			payee),
	} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// load moves money until the function that it returns is called.
func (s *server) load() (stop func() int64) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var n atomic.Int64
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if s.move(ctx) == nil {
					n.Add(1)
				}
			}
		})
	}
	return func() int64 { cancel(); wg.Wait(); return n.Load() }
}

// options are those for a real donor.
func (s *server) options(id string) Options {
	o := options()
	o.ID, o.PartSize, o.Epoch = id, 4<<20, 1
	o.Executed = executedOf(s.DB)
	return o
}

// executedOf asks a server through these connections.
func executedOf(db *sql.DB) func(context.Context) (gtid.Set, error) {
	return func(ctx context.Context) (gtid.Set, error) {
		var text string
		if err := db.QueryRowContext(ctx, "SELECT @@gtid_executed").Scan(&text); err != nil {
			return gtid.Set{}, err
		}
		return gtid.Parse(text)
	}
}

// TestAgainstMysqld has one donor for all of its parts.
func TestAgainstMysqld(t *testing.T) {
	donor := newServer(t)
	donor.Initialize()
	donor.start(1)
	donor.fill(64)
	prepared := donor.Executed()
	key, _ := newKey(t, 1)
	t.Run("TakenUnderLoadAndRestored", func(t *testing.T) { takenAndRestored(t, donor, prepared, seal.Key{}) })
	t.Run("Encrypted", func(t *testing.T) { takenAndRestored(t, donor, prepared, key) })
	t.Run("ConnectionIsCut", func(t *testing.T) { cutAndTakenAnew(t, donor) })
}

// takenAndRestored: a backup is taken while money is moved and the store fails now and
// then. A server on what is restored has the moves of exactly its GTID set, and catches up.
func takenAndRestored(t *testing.T, donor *server, prepared gtid.Set, key seal.Key) {
	s := newMemory()
	var puts atomic.Int64
	s.put = func(context.Context, string) error {
		if puts.Add(1)%10 == 0 {
			return errStore
		}
		return nil
	}
	peak := watchHeap(s)
	stop := donor.load()
	o := donor.options("real")
	o.Key = key
	var first, last Progress
	o.Progress = func(p Progress) {
		if last = p; first.Done == 0 {
			first = p
		}
	}
	began := time.Now()
	m, err := Take(t.Context(), donor.donor(), s, o)
	took, grown := time.Since(began), peak()
	moves := stop()
	must(t, err)
	const mib = 1 << 20
	t.Logf("%d moves; %d parts, %.1f MiB, %.1f MiB stored, in %s with %d puts; the heap was %.1f MiB beside the "+
		"store, %d uploads at most",
		moves, len(m.Parts), float64(m.RawSize)/mib, float64(m.StoredSize)/mib, took, puts.Load(),
		float64(grown)/mib, s.most)
	if last.Done != m.RawSize || first.Expected < m.RawSize/2 || first.Expected > 3*m.RawSize {
		t.Errorf("the progress begins with %+v and ends with %+v", first, last)
	}
	s.put = nil
	restored := newServer(t)
	intoDirectory(t, s, "real", restored, key)
	restored.start(2)
	has := restored.Executed()
	t.Logf("between %s and %s it has %s", m.BeginGTID, m.EndGTID, has)
	if !has.Contains(m.BeginGTID) || !m.EndGTID.Contains(has) || m.BeginGTID.Equal(m.EndGTID) {
		t.Errorf("%s is not between %s and %s", has, m.BeginGTID, m.EndGTID)
	}
	if sum := restored.Text("SELECT SUM(balance) FROM bank.accounts"); sum != fmt.Sprint(accounts*balance) {
		t.Errorf("there are %s in all", sum)
	}
	if got := restored.Text("SELECT COUNT(*) FROM bank.moves"); got != fmt.Sprint(has.Subtract(prepared).Count()) {
		t.Errorf("%s moves are of %s", got, has.Subtract(prepared))
	}
	same(t, restored, donor, "SELECT GROUP_CONCAT(id, ' ', payer, ' ', payee, ' ', CRC32(note) ORDER BY id) "+
		"FROM (SELECT * FROM bank.moves ORDER BY id LIMIT 30) AS m")
	follow(t, restored, donor)
	for _, table := range []string{"accounts", "moves", "ballast"} {
		if said := restored.check(table); said != "OK" {
			t.Errorf("CHECK TABLE bank.%s: %s", table, said)
		}
		if got, want := restored.checksum(table), donor.checksum(table); got != want {
			t.Errorf("bank.%s has %s, and that of the donor %s", table, got, want)
		}
	}
}

func (s *server) check(table string) string {
	s.T.Helper()
	var name, op, kind, text string
	must(s.T, s.DB.QueryRow("CHECK TABLE bank."+table).Scan(&name, &op, &kind, &text))
	return text
}

func (s *server) checksum(table string) string {
	s.T.Helper()
	var name, sum string
	must(s.T, s.DB.QueryRow("CHECKSUM TABLE bank."+table).Scan(&name, &sum))
	return sum
}

func same(t *testing.T, a, b *server, query string) {
	t.Helper()
	if x, y := a.Text(query), b.Text(query); x != y {
		t.Errorf("%s: %s is not %s", query, x, y)
	}
}

// intoDirectory restores a backup into the directory of a server.
func intoDirectory(t *testing.T, s *memory, id string, to *server, key seal.Key) {
	t.Helper()
	m, err := Read(t.Context(), s, cluster, id)
	must(t, err)
	root, err := os.OpenRoot(to.Data())
	must(t, err)
	defer func() { must(t, root.Close()) }()
	peak := watchHeap(s)
	began := time.Now()
	must(t, Restore(t.Context(), s, m, root, RestoreOptions{Server: strings.SplitN(m.Server, "-", 2)[0], Key: key}))
	t.Logf("restored in %s; the heap was %.1f MiB beside the store", time.Since(began), float64(peak())/(1<<20))
}

// watchHeap measures how much more the heap holds at most than the store's objects.
func watchHeap(s *memory) (peak func() uint64) {
	stop, most := make(chan struct{}), uint64(0)
	var wg sync.WaitGroup
	wg.Go(func() {
		var stats runtime.MemStats
		for {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			runtime.ReadMemStats(&stats)
			s.mu.Lock()
			held := uint64(0)
			for _, b := range s.objects {
				held += uint64(len(b))
			}
			s.mu.Unlock()
			if stats.HeapInuse > held {
				most = max(most, stats.HeapInuse-held)
			}
		}
	})
	return func() uint64 { close(stop); wg.Wait(); return most }
}

// follow waits until the restored server has applied all that the donor has done since.
func follow(t *testing.T, restored, donor *server) {
	t.Helper()
	restored.Exec("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=?, SOURCE_USER='backup', "+
		"SOURCE_PASSWORD='secret', "+
		"SOURCE_SSL=1, SOURCE_AUTO_POSITION=1", donor.Port)
	restored.Exec("START REPLICA")
	want := donor.Text("SELECT @@gtid_executed")
	if got := restored.Text("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 30)", want); got != "0" {
		t.Fatalf("it does not catch up: it has %s, and the donor %s; %s", restored.Executed(), want,
			restored.Text("SELECT GROUP_CONCAT(last_error_message) FROM "+
				"performance_schema.replication_applier_status_by_worker"))
	}
}

// cutAndTakenAnew: the connections are cut in the middle of the data, and once more it is
// begun. That is another snapshot, and nothing of the first is left.
func cutAndTakenAnew(t *testing.T, donor *server) {
	s := newMemory()
	m, err := Take(t.Context(), cutAfter(t, donor.donor(), 20<<20), s, donor.options("cut"))
	must(t, err)
	if keys := s.keys("part-"); len(keys) != len(m.Parts) || s.puts <= len(m.Parts)+2 {
		t.Errorf("%d puts; %d objects are left of %d parts", s.puts, len(keys), len(m.Parts))
	}
	must(t, Check(t.Context(), s, m))
	root := directory(t)
	must(t, Restore(t.Context(), s, m, root, RestoreOptions{Server: m.Server}))
}

// cutAfter is a way to a donor whose first connection is cut after so many bytes.
func cutAfter(t *testing.T, d clone.Donor, bytes int64) clone.Donor {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go carry(l, d.Address, bytes)
	d.Address = l.Addr().String()
	return d
}

// carry takes connections to a donor; the first ends as a network does, after so many bytes.
func carry(l net.Listener, to string, limit int64) {
	var conns []net.Conn
	for n := 0; ; n++ {
		in, err := l.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		conns = append(conns, in, out)
		all := conns[:len(conns):len(conns)]
		go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
		go func() {
			if n > 0 {
				_, _ = io.Copy(in, out)
			} else if _, err := io.CopyN(in, out, limit); err == nil {
				for _, c := range all {
					_ = c.Close()
				}
			}
			_ = in.Close()
		}()
	}
}
