package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// prepareXA leaves transactions prepared, each of which inserts its number.
func (w *world) prepareXA(n *node, many int) {
	w.t.Helper()
	for i := range many {
		conn, err := w.app(n).Conn(context.Background())
		must(w.t, err)
		for _, statement := range []string{"XA START 'x%[1]d'", "INSERT INTO t VALUES (%[1]d)", "XA END 'x%[1]d'",
			"XA PREPARE 'x%[1]d'"} {
			_, err := conn.ExecContext(context.Background(), strings.ReplaceAll(statement, "%[1]d", fmt.Sprint(i)))
			must(w.t, err)
		}
		must(w.t, conn.Close())
	}
}

// prepared is how many XA transactions are committed one after the other: at the pace of xaCommits that takes
// longer than a demotion on a busy machine.
const prepared = 120

// xaCommits is a client that commits what prepareXA has prepared.
type xaCommits struct {
	tried         atomic.Int64
	refused       atomic.Pointer[error] // the last answer of a server that lets nobody in
	stop, stopped chan struct{}
	done          []int // is there once stopped
}

// commitsXA begins to commit; a commit that is refused is tried again.
func (w *world) commitsXA(n *node) *xaCommits {
	xa := &xaCommits{stop: make(chan struct{}), stopped: make(chan struct{})}
	db := w.app(n)
	db.SetMaxIdleConns(0) // each comes in again
	go func() {
		defer close(xa.stopped)
		for i := 0; i < prepared; {
			_, err := db.Exec(fmt.Sprintf("XA COMMIT 'x%d'", i))
			switch {
			case err == nil:
				xa.done = append(xa.done, i)
				i++
			case strings.Contains(err.Error(), "offline mode"):
				xa.refused.Store(&err)
			default:
				i++
			}
			xa.tried.Store(int64(i))
			select {
			case <-xa.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return xa
}

// mysqld commits by XA although it is read-only. What it told a client to have committed
// is part of the position that it is demoted with; from then on it refuses.
func TestWhatXACommitsDuringADemotionIsPartOfTheFinalPosition(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.prepareXA(one, prepared)
	w.join(two, one)
	xa := w.commitsXA(one)
	until(t, "some are committed", func() bool { return xa.tried.Load() >= 3 })
	watch, words := make(chan struct{}), make(chan []gtid.Set)
	go func() { words <- one.promisedWith(w.epoch()+1, watch) }()
	r := w.demotes(one)
	xa.refused.Store(nil)
	until(t, "a commit is refused from then on", func() bool { return xa.refused.Load() != nil })
	close(xa.stop)
	<-xa.stopped
	close(watch)
	for _, set := range <-words {
		if set.String() != r.Server.Executed.String() {
			t.Errorf("it promised with the position %s, and the final one is %s", set, r.Server.Executed)
		}
	}
	now, err := one.m.roles.Executed(t.Context())
	must(t, err)
	if !now.Equal(r.Server.Executed) {
		t.Errorf("after the final position %s it has executed %s", r.Server.Executed, now)
	}
	if len(xa.done) == prepared {
		t.Errorf("all of %d were committed", prepared)
	}
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", r.Server.Executed.String(), 0)
	w.awaitPrimary(two, epoch)
	has := w.ids(two)
	for _, id := range xa.done {
		if !slices.Contains(has, id) {
			t.Errorf("the commit of %d was acknowledged and is not there", id)
		}
	}
	t.Logf("%d commits were acknowledged; then: %v", len(xa.done), *xa.refused.Load())
	w.awaitFollowing(one)
	w.await(one, "let clients in", func(r core.Report) bool { return r.Server != nil && !r.Server.Offline })
	w.exec(w.app(two), fmt.Sprintf("XA COMMIT 'x%d'", prepared-1))
	w.awaitRows(w.app(one), len(xa.done)+1)
}

// promisedWith collects the positions that come with a promise.
func (n *node) promisedWith(epoch int64, stop chan struct{}) []gtid.Set {
	var out []gtid.Set
	for {
		select {
		case <-stop:
			return out
		case <-time.After(time.Millisecond):
		}
		s, _ := n.m.snapshot(time.Now())
		if r := s.Report; r.NoWritesBelow >= epoch && r.Server != nil {
			out = append(out, r.Server.Executed)
		}
	}
}

func (w *world) ids(n *node) []int {
	w.t.Helper()
	rows, err := w.app(n).Query("SELECT id FROM t")
	must(w.t, err)
	defer func() { _ = rows.Close() }()
	var out []int
	for rows.Next() {
		var id int
		must(w.t, rows.Scan(&id))
		out = append(out, id)
	}
	must(w.t, rows.Err())
	return out
}

// What SET PERSIST left is read after my.cnf. A server starts read-only all the same.
func TestWhatWasPersistedDoesNotOutrankTheOperator(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	root := w.rootOf(one)
	for _, set := range []string{"super_read_only = OFF", "read_only = OFF", "offline_mode = OFF",
		"relay_log_recovery = OFF", "sync_binlog = 0"} {
		w.exec(root, "SET PERSIST_ONLY "+set)
	}
	w.crashManager(one)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ }) // nobody may open it
	again := w.start(1)
	w.await(again, "running", func(r core.Report) bool { return r.Server != nil })
	root = w.rootOf(again)
	var persisted int
	must(t,
		root.QueryRow(
			"SELECT COUNT(*) FROM performance_schema.variables_info WHERE VARIABLE_SOURCE = 'PERSISTED'").Scan(
			&persisted))
	var readOnly, offline, recovery, sync string
	must(t, root.QueryRow("SELECT @@super_read_only, @@offline_mode, @@relay_log_recovery, @@global.sync_binlog").Scan(
		&readOnly, &offline, &recovery, &sync))
	if persisted != 0 || readOnly != "1" || offline != "1" || recovery != "1" || sync != "1" {
		t.Errorf("%d are persisted; super_read_only %s, offline_mode %s, relay_log_recovery %s, sync_binlog %s",
			persisted, readOnly, offline, recovery, sync)
	}
}

// A backup has what was prepared when it was taken, and the archive what became of that: while the data
// were copied, and later.
func TestWhatIsPreparedInABackupIsEndedByTheReplay(t *testing.T) {
	inAll(t)
	from, dir := newWorld(t, archives), storetest.Dir(t)
	from.files(dir, "archive")
	source := from.start(1)
	from.bootstrap(source)
	from.exec(from.app(source), "CREATE TABLE t (id INT PRIMARY KEY)")
	from.prepareXA(source, 5)
	s, err := store.Open(dir)
	must(t, err)
	says := func(statements ...string) {
		for _, statement := range statements {
			from.exec(source.m.root.DB(), statement)
		}
	}
	prepared := from.executed(source)
	m := from.backUpWhile(source, s, func() { says("XA COMMIT 'x0'", "XA ROLLBACK 'x1'") })
	if !m.BeginGTID.Equal(prepared) {
		t.Fatalf("the backup begins with %s, and not with %s", m.BeginGTID, prepared)
	}
	says("XA COMMIT 'x2'", "XA ROLLBACK 'x3'", "INSERT INTO app_db.t VALUES (7)")
	from.awaitArchived(source)
	w, one := from.restoredWhole(source, dir)
	w.awaitRows(w.asApp(one, "new-app-password"), 3)
	w.exec(one.m.root.DB(), "XA COMMIT 'x4'") // nobody had ended it
	w.awaitRows(w.asApp(one, "new-app-password"), 4)
	for _, ended := range []string{"x0", "x1", "x2", "x3"} {
		if _, err := one.m.root.DB().Exec("XA COMMIT '" + ended + "'"); err == nil {
			t.Errorf("%s is still prepared", ended)
		}
	}
}
