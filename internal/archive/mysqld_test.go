package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
)

const prefix = "c/log/"

func allowed(context.Context) error { return nil }

// TestAgainstMysqld holds that a server which is written to while its logs are shipped can be replayed:
// others, which hold what it held at the beginning, replay its archive to several targets.
func TestAgainstMysqld(t *testing.T) {
	a := newServer(t)
	a.Initialize()
	empty := newServer(t)
	empty.copyOf(a)
	a.start(7)
	a.Exec("CREATE DATABASE d")
	a.Exec("CREATE TABLE d.other (id INT PRIMARY KEY)")
	start := gtid.Set{}
	m := newMemory()
	m.key, _ = newKey(t, 1) // four parts are encrypted, and four are not, and so on
	stop, shipper := shipping(t, a, m, start)

	h := writeHistory(t, a)
	waitArchived(t, shipper, h.final)
	stop()
	readableByMysqlbinlog(t, a, m)

	archive := bundledArchive(t, m)
	expectVaried(t, m, archive)
	drop := h.final.Subtract(h.beforeDrop)
	list, _ := drop.List(10)
	for name, c := range map[string]replayedTo{
		"latest": {facts.Target{Kind: facts.Latest}, h.final, "d.other", "2", "",
			a.Text("SELECT COALESCE(MAX(SHA2(data, 256)), '') FROM d.big")},
		"before the drop": {facts.Target{Kind: facts.BeforeGTIDs, GTIDs: gtid.MustParse(list[1])},
			h.beforeDrop.Union(gtid.MustParse(list[0])), "d.t", h.rowsBeforeDrop, h.sumBeforeDrop, ""},
		"to a time": {facts.Target{Kind: facts.ToTime, Time: h.inTime}, h.then, "d.t", h.rowsThen, "", ""},
	} {
		t.Run(name, func(t *testing.T) { c.expect(t, empty, m, archive) })
	}
	t.Run("an applier that fails", func(t *testing.T) { applierFails(t, empty, m, archive) })
	t.Run("an applier that takes long", func(t *testing.T) { applierTakesLong(t, empty, m, archive, list[2]) })
}

// history is what a server held at a moment, just before a table was dropped, and in the end.
type history struct {
	inTime                        time.Time
	then, beforeDrop, final       gtid.Set
	rowsThen                      string
	rowsBeforeDrop, sumBeforeDrop string
}

func writeHistory(t *testing.T, a *server) (h history) {
	w := load(t, a)
	begun := w.writeFor(2 * time.Second)
	h.then = a.Executed()
	h.inTime = time.UnixMicro(micros(a)).UTC()
	h.rowsThen = a.Text("SELECT COUNT(*) FROM d.t")
	a.Exec("FLUSH BINARY LOGS")
	w.writeFor(time.Second)
	a.Exec("ALTER TABLE d.t ADD COLUMN more INT NULL")
	begunToo := w.writeFor(time.Second)
	a.Exec("CREATE TABLE d.big (id INT PRIMARY KEY, data LONGBLOB)")
	a.Exec("INSERT INTO d.big VALUES (1, REPEAT(UUID(), 40000))") // larger than a part
	h.beforeDrop = a.Executed()
	h.rowsBeforeDrop = a.Text("SELECT COUNT(*) FROM d.t")
	h.sumBeforeDrop = a.Text("SELECT SUM(CRC32(CONCAT(id, ':', payload))) FROM d.t")
	a.Exec("INSERT INTO d.other VALUES (1)")
	a.Exec("DROP TABLE d.t")
	a.Exec("INSERT INTO d.other VALUES (2)")
	h.final = a.Executed()
	t.Logf("%.0f and %.0f transactions a second", begun, begunToo)
	return h
}

// expectVaried holds that an archive has a transaction that was cut, and parts of which some are encrypted.
func expectVaried(t *testing.T, m *memory, archive facts.Archive) {
	t.Helper()
	isPlain := func(p facts.Part) bool { return p.Recipient == "" }
	n := len(slices.DeleteFunc(slices.Clone(archive.Parts), isPlain))
	if n < 2 || n > len(archive.Parts)-2 {
		t.Errorf("%d of %d parts are encrypted", n, len(archive.Parts))
	}
	t.Logf("%d parts, %d objects", len(archive.Parts), len(m.objects))
	if !slices.ContainsFunc(archive.Parts, func(p facts.Part) bool { return p.Pieces > 1 }) {
		t.Error("no transaction was cut into pieces")
	}
}

// replayedTo is a target, and what a server has after it was replayed to there.
type replayedTo struct {
	target facts.Target
	set    gtid.Set
	table  string // of which the rows are
	rows   string
	sum    string // of d.t, unless it is empty
	large  string // the digest of the large row, unless it is empty
}

func (c replayedTo) expect(t *testing.T, empty *server, m *memory, archive facts.Archive) {
	plan, err := place(m).Choose(t.Context(), &archive, facts.Base{Epoch: 1}, c.target)
	must(t, err)
	if !plan.Set.Equal(c.set) {
		t.Fatalf("the plan is for %s, not %s", plan.Set, c.set)
	}
	b := newServer(t)
	b.copyOf(empty)
	b.start(7, "--replica-parallel-workers=4", "--replica-preserve-commit-order=ON", "--super-read-only=ON",
		"--relay-log-recovery=OFF")
	replayed(t, b, m, plan)
	if got := b.Executed(); !got.Equal(c.set) {
		t.Errorf("it has %s, not %s", got, c.set)
	}
	if got := b.Text("SELECT COUNT(*) FROM " + c.table); got != c.rows {
		t.Errorf("it has %s rows, not %s", got, c.rows)
	}
	if c.large != "" && b.Text("SELECT COALESCE(MAX(SHA2(data, 256)), '') FROM d.big") != c.large {
		t.Error("the large row is another one")
	}
	if c.sum != "" && b.Text("SELECT SUM(CRC32(CONCAT(id, ':', payload))) FROM d.t") != c.sum {
		t.Error("the rows are not the same")
	}
	b.Kill()
}

// applierTakesLong: the last transaction takes longer than an applier may rest that has nothing
// in hand.
func applierTakesLong(t *testing.T, empty *server, m *memory, archive facts.Archive, last string) {
	b := newServer(t)
	b.copyOf(empty)
	b.start(7, "--replica-parallel-workers=4", "--replica-preserve-commit-order=ON", "--relay-log-recovery=OFF")
	defer b.Kill()
	to := func(target facts.Target) {
		t.Helper()
		plan, err := place(m).Choose(t.Context(), &archive, facts.Base{Epoch: 1}, target)
		must(t, err)
		replayed(t, b, m, plan)
	}
	to(facts.Target{Kind: facts.BeforeGTIDs, GTIDs: gtid.MustParse(last)})
	conn, err := b.DB.Conn(t.Context())
	must(t, err)
	_, err = conn.ExecContext(t.Context(), "LOCK TABLES d.other READ")
	must(t, err)
	const held = 5 * time.Second
	began := time.Now()
	time.AfterFunc(held, func() { _, _ = conn.ExecContext(context.Background(), "UNLOCK TABLES") })
	to(facts.Target{Kind: facts.Latest})
	if took := time.Since(began); took < held {
		t.Errorf("it took %s, although the table was locked for %s", took, held)
	}
}

// bundledArchive is what is found of an archive after most of it was merged: the same as before.
func bundledArchive(t *testing.T, m *memory) facts.Archive {
	t.Helper()
	before := loaded(t, m)
	for hours := range 2 {
		_, err := Merge(t.Context(), m, prefix, time.Now().Add(time.Duration(2*hours+2)*time.Hour))
		must(t, err)
	}
	after, err := Load(t.Context(), m, prefix)
	must(t, err)
	singles, bundles, _ := count(m)
	isSame := reflect.DeepEqual(before, expanded(t, m, facts.Archive{Branches: after.Branches,
		Parts: slices.Clone(after.Parts), Unreadable: after.Unreadable, Mark: after.Mark}))
	if !slices.ContainsFunc(after.Parts, facts.Part.IsRun) {
		t.Error("there are no runs")
	}
	if singles > len(before.Parts)/2 || bundles == 0 || !isSame {
		t.Errorf("%d of %d parts are in no bundle, and what is found is the same: %v", singles, len(before.Parts),
			isSame)
	}
	return after
}

func replayed(t *testing.T, b *server, m *memory, plan facts.Plan) {
	t.Helper()
	began := time.Now()
	var last Progress
	r := &Replay{Place: place(m), DB: b.DB, BatchBytes: 200 << 10, Progress: func(p Progress) { last = p }}
	must(t, r.Run(t.Context(), plan))
	took := time.Since(began)
	t.Logf("%d of %d transactions, %d bytes in %s: %.0f/s", last.Transactions, last.Of, last.Bytes, took,
		float64(last.Transactions)/took.Seconds())
	pieces := plan.Steps[len(plan.Steps)-1].Pieces
	span := pieces[len(pieces)-1].Span()
	end := facts.Key{Epoch: span.Epoch, Sequence: span.Last}
	if last.Bytes != last.OfBytes || last.Part != end || last.Reached.IsZero() {
		t.Errorf("it ends with %+v, and not with part %v", last, end)
	}
	if last.Transactions != last.Of || b.Text("SELECT @@GLOBAL.server_id") != "7" {
		t.Errorf("it ends with %+v, as server %s", last, b.Text("SELECT @@GLOBAL.server_id"))
	}
	for _, pattern := range []string{"/*archive*", "/*staged*"} {
		if left, _ := filepath.Glob(b.Data() + pattern); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
	}
}

// applierFails: the message of the server comes out, and the replay can be run again.
func applierFails(t *testing.T, empty *server, m *memory, archive facts.Archive) {
	b := newServer(t)
	b.copyOf(empty)
	b.start(8)
	b.Exec("SET SESSION sql_log_bin = 0")
	b.Exec("CREATE DATABASE d")
	plan, err := place(m).Choose(t.Context(), &archive, facts.Base{Epoch: 1}, facts.Target{})
	must(t, err)
	r := &Replay{Place: place(m), DB: b.DB}
	err = r.Run(t.Context(), plan)
	if !errors.Is(err, ApplierFailed) || !strings.Contains(err.Error(), "database exists") {
		t.Fatalf("got %v", err)
	}
	t.Log(err)
	b.DB.SetMaxOpenConns(1)
	b.Exec("SET SESSION sql_log_bin = 0")
	b.Exec("DROP DATABASE d")
	b.Exec("SET SESSION sql_log_bin = 1")
	b.DB.SetMaxOpenConns(0)
	must(t, r.Run(t.Context(), plan))
	b.Kill()
}

func shipping(t *testing.T, a *server, m *memory, start gtid.Set) (stop func(), s *Shipper) {
	t.Helper()
	parts := 0
	s, err := NewShipper(Config{Store: m, Prefix: prefix, Cluster: "uid", Epoch: 1, Instance: "a",
		ServerUUID: a.Text("SELECT @@server_uuid"), Start: start,
		Index: a.Data() + "/binlog.index", May: allowed, TargetRPO: time.Second, MaxBytes: 64 << 10,
		Key: func() (seal.Key, error) {
			if parts++; parts/4%2 == 1 {
				return m.key, nil
			}
			return seal.Key{}, nil
		},
		Executed: func(ctx context.Context) (gtid.Set, error) {
			var text string
			if err := a.DB.QueryRowContext(ctx, "SELECT @@GLOBAL.gtid_executed").Scan(&text); err != nil {
				return gtid.Set{}, err
			}
			return gtid.Parse(text)
		}})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("shipping: %v", err)
		}
	})
	var worst, sum time.Duration
	var n int
	wg.Go(func() {
		for sleep(ctx, 20*time.Millisecond) == nil {
			rpo := s.Status().RPO(time.Now())
			worst, sum, n = max(worst, rpo), sum+rpo, n+1
		}
	})
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		t.Logf("RPO: mean %s, worst %s", sum/time.Duration(max(n, 1)), worst)
		if worst > 3*time.Second {
			t.Errorf("the RPO was %s", worst)
		}
	})
	t.Cleanup(stop)
	return stop, s
}

func waitArchived(t *testing.T, s *Shipper, set gtid.Set) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !s.Status().Archived.Contains(set); <-time.After(
		20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v lacks %s", s.Status(), set.Subtract(s.Status().Archived))
		}
	}
}

// readableByMysqlbinlog: what zstd makes of a part is a log to MySQL's own tool.
func readableByMysqlbinlog(t *testing.T, a *server, m *memory) {
	t.Helper()
	archive := loaded(t, m)
	for _, p := range archive.Parts[:min(len(archive.Parts), 3)] {
		if p.Piece > 0 {
			continue
		}
		path := filepath.Join(t.TempDir(), "part")
		must(t, os.WriteFile(path, rawOf(t, m, p), 0o600))
		out, err := a.Program(t.Context(), "bin/mysqlbinlog", "--verify-binlog-checksum", path).CombinedOutput()
		if got := int64(strings.Count(string(out), "SET @@SESSION.GTID_NEXT= '") - 1); err != nil ||
			got != p.Transactions {
			t.Errorf("mysqlbinlog finds %d transactions in a part of %d: %v\n%.3000s", got, p.Transactions, err, out)
		}
	}
}

func micros(s *server) int64 {
	var n int64
	must(s.T, s.DB.QueryRow("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)").Scan(&n))
	return n
}

// writer writes tiny transactions.
type writer struct {
	t *testing.T
	s *server
	n int
}

func load(t *testing.T, s *server) *writer {
	s.Exec("CREATE TABLE d.t (id BIGINT PRIMARY KEY AUTO_INCREMENT, payload VARCHAR(200))")
	return &writer{t: t, s: s}
}

// writeFor so long, with four clients and at most 2,000 times a second; it returns how often.
func (w *writer) writeFor(d time.Duration) float64 {
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(d)
	before := w.n
	pace := time.NewTicker(500 * time.Microsecond)
	defer pace.Stop()
	for range 4 {
		wg.Go(func() {
			for time.Now().Before(end) {
				if _, err := w.s.DB.Exec("INSERT INTO d.t (payload) VALUES (REPEAT(UUID(), 3))"); err != nil {
					w.t.Error(err)
					return
				}
				mu.Lock()
				w.n++
				mu.Unlock()
				<-pace.C
			}
		})
	}
	wg.Wait()
	return float64(w.n-before) / d.Seconds()
}
