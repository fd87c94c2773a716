package instance

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// purged asks an instance what its binary logs do not hold of what it has executed.
func (w *world) purged(n *node) gtid.Set {
	w.t.Helper()
	var text string
	must(w.t, n.m.root.DB().QueryRow("SELECT @@GLOBAL.gtid_purged").Scan(&text))
	return gtid.MustParse(text)
}

// backedUp begins a cluster that archives, with an empty table and a backup of it.
func backedUp(t *testing.T) (from *world, source *node, db *sql.DB, dir string) {
	t.Helper()
	from, dir = newWorld(t, archives), storetest.Dir(t)
	from.files(dir, "archive")
	source = from.start(1)
	from.bootstrap(source)
	db = from.app(source)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(source, s)
	return from, source, db, dir
}

// TestAReplayIsNotLoggedAgain: the binary logs of the restored server begin behind what was
// replayed; replicas and another restore get that all the same.
func TestAReplayIsNotLoggedAgain(t *testing.T) {
	inAll(t)
	from, source, db, dir := backedUp(t)
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
	from.awaitArchived(source)
	was := from.executed(source)
	from.crashManager(source)

	w, again := from.restoring(dir, ""), storetest.Dir(t)
	w.files(again, "archive")
	w.kube.edit(archives)
	one, two := w.start(1), w.start(2)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.awaitPrimary(one, epoch)
	if has, logs := w.executed(one), w.purged(one); !has.Contains(was) || !logs.Contains(was) {
		t.Errorf("of %s it has executed %s, and its binary logs lack %s", was, has, logs)
	}
	w.crashManager(one) // the table of GTIDs is all there is of them
	one = w.start(1)
	w.awaitPrimary(one, epoch)
	s, err := store.Open(again)
	must(t, err)
	w.backUp(one, s)
	w.exec(w.asApp(one, "new-app-password"), "INSERT INTO t (v) VALUES (4)")
	w.join(two, one)
	w.awaitRows(w.asApp(two, "new-app-password"), 4)
	w.awaitArchived(one)
	if has := w.executed(two); !has.Contains(was) {
		t.Errorf("of %s the replica has executed %s", was, has)
	}
	w.crashManager(one)
	w.crashManager(two)

	third := w.restoring(again, "")
	one = third.start(1)
	third.awaitPrimary(one, third.grant("db-1", core.ProofBootstrap, "", "", 0))
	third.awaitRows(third.asApp(one, "new-app-password"), 4)
	if has := third.executed(one); !has.Contains(was) {
		t.Errorf("of %s the third cluster has executed %s", was, has)
	}
}

// TestARestoreThatFillsItsVolumeIsTold: mysqld would wait for room.
func TestARestoreThatFillsItsVolumeIsTold(t *testing.T) {
	inAll(t)
	from, dir := hardened(t)
	w := from.restoringTo(dir, "", recovery.Target{})
	var full atomic.Bool
	w.room = func() (free, size uint64, err error) {
		if full.Load() {
			return agent.SpaceNeeded - 1, 1 << 30, nil
		}
		return 1 << 30, 1 << 30, nil
	}
	full.Store(true)
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(one, "told of", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != core.InstanceDiskFull {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
	if left, _ := filepath.Glob(filepath.Join(one.opt.Dirs.Data, "*")); len(left) == 0 {
		t.Error("nothing was restored before that")
	}
	full.Store(false)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ }) // the volume grows
	w.awaitPrimary(one, epoch)
}

// restoredWhole has the source crash, and another Cluster restored to the latest: it has all that the source had
// executed.
func (w *world) restoredWhole(source *node, dir string) (to *world, one *node) {
	w.t.Helper()
	was := w.executed(source)
	w.crashManager(source)
	to = w.restoring(dir, "")
	one = to.start(1)
	to.awaitPrimary(one, to.grant("db-1", core.ProofBootstrap, "", "", 0))
	if has := to.executed(one); !has.Contains(was) {
		w.t.Errorf("of %s it has executed %s", was, has)
	}
	return to, one
}

// TestAReplayKeepsWhatXAHasPrepared: its GTID, and itself, through the restart that ends a restore.
func TestAReplayKeepsWhatXAHasPrepared(t *testing.T) {
	inAll(t)
	from, source, db, dir := backedUp(t)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{"XA START 'b'", "INSERT INTO t (v) VALUES (1)", "XA END 'b'", "XA PREPARE 'b'"} {
		from.exec(db, statement)
	}
	from.exec(from.app(source), "INSERT INTO t (v) VALUES (2), (3)")
	from.awaitArchived(source)
	w, one := from.restoredWhole(source, dir)
	w.exec(one.m.root.DB(), "XA COMMIT 'b'")
	w.awaitRows(w.asApp(one, "new-app-password"), 3)
}

// A Cluster that is there goes on to archive while its backup is fetched, which may take hours.
func TestWhatIsArchivedWhileABackupIsFetchedIsReplayed(t *testing.T) {
	inAll(t)
	from, source, db, dir := backedUp(t)
	from.exec(db, "INSERT INTO t (v) VALUES (1)")
	from.awaitArchived(source)

	w := from.restoring(dir, "")
	gate := filepath.Join(w.dir, "secrets", "root", "password") // is read between the backup and the replay
	must(t, os.Remove(gate))
	must(t, syscall.Mkfifo(gate, 0o600))
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	var opened *os.File
	var err error
	until(t, "the backup is fetched", func() bool {
		opened, err = os.OpenFile(gate, os.O_WRONLY|syscall.O_NONBLOCK, 0) // fails unless somebody reads
		return err == nil
	})
	from.exec(db, "INSERT INTO t (v) VALUES (2), (3)")
	from.awaitArchived(source)
	was := from.executed(source)
	w.write(gate+".new", "new-root-password")
	must(t, os.Rename(gate+".new", gate))
	_, err = opened.WriteString("new-root-password")
	must(t, errors.Join(err, opened.Close()))
	w.awaitPrimary(one, epoch)
	w.awaitRows(w.asApp(one, "new-app-password"), 3)
	if has := w.executed(one); !has.Contains(was) {
		t.Errorf("of %s it has executed %s", was, has)
	}
}
