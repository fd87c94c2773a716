package instance

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// TestTheArchiveFollowsItsStore: who changes the store finds what is written since in the new
// one, and not in the old one.
func TestTheArchiveFollowsItsStore(t *testing.T) {
	w := newWorld(t, archives)
	before, after := storetest.Dir(t), storetest.Dir(t)
	w.files(before, "archive")
	one := w.start(1)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.awaitArchived(one)
	first := one.report().Archive.Place
	w.files(after, "archive")
	w.await(one, "archiving elsewhere", func(r core.Report) bool {
		return r.Archive != nil &&
			r.Archive.Place != first
	})
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	w.awaitArchived(one)
	newest := gtid.MustParse(one.report().Archive.GTIDs)
	for dir, want := range map[string]bool{before: false, after: true} {
		s, err := store.Open(dir)
		must(t, err)
		a, err := archive.Load(t.Context(), s, backup.LogPrefix("db"))
		must(t, err)
		if has := slices.ContainsFunc(a.Parts,
			func(p facts.Part) bool { return p.GTIDs.Contains(newest) }); has != want {
			t.Errorf("%s: the newest transaction is there: %t", dir, has)
		}
	}
	// A limit that is set later counts, too.
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Spec.Backup.MaxBytesPerSecond = 1 << 20; c.Generation++ })
	until(t, "it archives with the limit", func() bool { return one.m.archives().Limit == 1<<20 })
	w.exec(db, "INSERT INTO t (v) VALUES (2)")
	w.awaitArchived(one)
}

// An upload that would go on for hours keeps nobody from archiving otherwise.
func TestAnUploadEndsWithTheTermThatItIsOf(t *testing.T) {
	w := newWorld(t, archives)
	w.files(storetest.Dir(t), "archive")
	one := w.start(1)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v BLOB)")
	w.awaitArchived(one)
	limit := func(bytesPerSecond int64) {
		w.kube.edit(func(c *v1alpha1.Cluster) { c.Spec.Backup.MaxBytesPerSecond = bytesPerSecond; c.Generation++ })
		until(t, "it has the limit", func() bool { return one.m.archives().Limit == bytesPerSecond })
	}
	limit(64)
	w.exec(db, "INSERT INTO t (v) VALUES (CONCAT("+strings.Repeat("RANDOM_BYTES(1024), ", 32)+"''))")
	w.await(one, "uploading slowly", func(r core.Report) bool { return r.Archive != nil && r.Archive.RPO > 3 })
	limit(0)
	w.awaitArchived(one)
}

// TestAnOlderBackupIsTakenWhenTheNewestIsDamaged: with the archive it leads to the same data.
// One that was asked for is not replaced.
func TestAnOlderBackupIsTakenWhenTheNewestIsDamaged(t *testing.T) {
	inAll(t)
	from := newWorld(t, archives)
	dir := storetest.Dir(t)
	from.files(dir, "archive")
	one := from.start(1)
	from.bootstrap(one)
	db := from.app(one)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	s, err := store.Open(dir)
	must(t, err)
	older := from.backUp(one, s)
	from.exec(db, "INSERT INTO t (v) VALUES (1)")
	until(t, "another second", func() bool { return time.Since(older.End) > 1100*time.Millisecond })
	newer := from.backUp(one, s)
	from.exec(db, "INSERT INTO t (v) VALUES (2)")
	from.awaitArchived(one)
	from.crashManager(one)
	must(t, s.Delete(t.Context(), "db/base/"+newer.ID+"/"+newer.Parts[0].Name))

	w := from.restoring(dir, newer.ID)
	restored := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.await(restored, "refusing", func(r core.Report) bool {
		return r.State == core.Failed &&
			strings.Contains(r.Message, "PartMissing")
	})
	text, err := recovery.Task{Cluster: "db"}.Encode()
	must(t, err)
	w.write(filepath.Join(w.dir, "store", recovery.FileTask), string(text))
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ })
	w.awaitPrimary(restored, epoch)
	w.awaitRows(w.asApp(restored, "new-app-password"), 2)
	if id := restored.remembers().RestoredBackup; id != older.ID {
		t.Errorf("it was restored from %s, and not from %s", id, older.ID)
	}
	is := restored.report().Restore
	if is == nil || is.Stage != core.RestoreDone || is.PassedText() != newer.ID+": PartMissing" ||
		is.Files.Done != older.RawSize {
		t.Errorf("it says of the restore: %+v", is)
	}
}

// TestBinaryLogsAreHeldWhileTheStoreIsAway: nothing was ever archived, and nothing goes.
func TestBinaryLogsAreHeldWhileTheStoreIsAway(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		archives(c)
		c.Spec.Backup.ContinuousArchiving.BinlogExpireSeconds = new(int64(1))
	})
	dir := storetest.Dir(t)
	w.files(dir, "archive")
	w.write(filepath.Join(w.dir, "archive", store.FileConfig), `{"endpoint":"file:///nowhere/at/all","bucket":"b"}`)
	one := w.start(1)
	w.bootstrap(one)
	w.await(one, "failing", func(r core.Report) bool { return r.Archive != nil && r.Archive.Failure != "" })
	until(t, "the server's own purge is held back", func() bool { return w.holdsLogs(one) })
	// The store is back, and who takes no writes any more purges by himself.
	w.files(dir, "archive")
	w.await(one, "archiving", func(r core.Report) bool { return r.Archive != nil && r.Archive.Failure == "" })
	w.order(one, control.Demote{Epoch: w.epoch() + 1})
	until(t, "it goes by its own rule again", func() bool { return !w.holdsLogs(one) })
}

// TestAVolumeThatFillsLetsGoOfWhatIsNotArchived: first of what has expired, then of more. Writes
// go on; and once the store is back, what was lost is named.
func TestAVolumeThatFillsLetsGoOfWhatIsNotArchived(t *testing.T) {
	const size, enough, little, dire = 20_000, 2000, 1999, 100
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		archives(c)
		c.Spec.Instances = 1
		c.Spec.Backup.ContinuousArchiving.BinlogExpireSeconds = new(int64(3600))
	})
	var free atomic.Uint64
	free.Store(enough)
	w.room = func() (uint64, uint64, error) { return free.Load(), size, nil }
	root := t.TempDir()
	bucket := filepath.Join(root, storetest.Bucket)
	must(t, os.Mkdir(bucket, 0o755))
	dir := storetest.Configure(t, store.Config{Endpoint: "file://" + root, Bucket: storetest.Bucket}, nil)
	w.files(dir, "archive")
	one := w.start(1)
	w.bootstrap(one)
	db, rotate := w.app(one), func() { w.exec(one.m.root.DB(), "FLUSH BINARY LOGS") }
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.awaitArchived(one)
	base := w.executed(one)

	must(t, os.Rename(bucket, bucket+"-away"))
	w.exec(db, "INSERT INTO t (v) VALUES (1)") // it is read already, and shipped later
	w.await(one, "failing", func(r core.Report) bool { return r.Archive != nil && r.Archive.Failure != "" })
	kept := w.executed(one)
	rotate()
	for range 2 {
		w.exec(db, "INSERT INTO t (v) VALUES (2)")
		rotate()
	}
	for logs, long := w.logs(one), time.Now().Add(-2*time.Hour); len(logs) > 1; logs = logs[1:] {
		must(t, os.Chtimes(filepath.Join(one.opt.Dirs.Data, logs[0].Name), long, long))
	}
	w.looksAfterLogs(one, 4) // that of the bootstrap is archived, and goes
	w.exec(db, "INSERT INTO t (v) VALUES (3)")
	rotate()
	w.looksAfterLogs(one, 5)
	free.Store(little)
	w.looksAfterLogs(one, 5)
	w.exec(db, "INSERT INTO t (v) VALUES (4)")
	lost := w.executed(one).Subtract(kept)
	rotate() // the server purges by itself what has expired: three of them
	w.looksAfterLogs(one, 3)
	free.Store(dire)
	w.looksAfterLogs(one, 1)

	must(t, os.Rename(bucket+"-away", bucket))
	w.exec(db, "INSERT INTO t (v) VALUES (5)")
	w.await(one, "naming what was lost", func(r core.Report) bool {
		return r.Archive != nil && r.Archive.Missing == lost.String()
	})
	w.awaitArchived(one)
	refusesToPass(t, dir, base, lost)
}

// refusesToPass looks whether no restore to the latest comes from base past a gap.
func refusesToPass(t *testing.T, dir string, base, gap gtid.Set) {
	t.Helper()
	s, err := store.Open(dir)
	must(t, err)
	a, err := archive.Load(t.Context(), s, backup.LogPrefix("db"))
	must(t, err)
	place := archive.NewPlace(s, backup.LogPrefix("db"), seal.Key{})
	_, err = place.Choose(t.Context(), &a, facts.Base{Epoch: 1, End: base}, facts.Target{})
	var refusal *facts.Refusal
	if !errors.As(err, &refusal) || refusal.Reason != facts.ArchiveGap || !refusal.GTIDs.Equal(gap) {
		t.Errorf("what lacks is %s; a restore is refused so: %v", gap, err)
	}
}

// looksAfterLogs has a manager do it, and looks how many logs are left.
func (w *world) looksAfterLogs(n *node, left int) {
	w.t.Helper()
	must(w.t, n.m.archiver.lookAfterLogs(w.t.Context(), n.m.archiver.archivedTo()))
	if logs := w.logs(n); len(logs) != left {
		w.t.Fatalf("there are %d binary logs, not %d: %v", len(logs), left, logs)
	}
}

func (w *world) logs(n *node) []facts.Log {
	w.t.Helper()
	logs, err := n.m.archiver.binaryLogs()
	must(w.t, err)
	return logs
}

// TestAPrimaryThatIsQuietSaysThatItsArchiveIsComplete: with what a real server has executed.
func TestAPrimaryThatIsQuietSaysThatItsArchiveIsComplete(t *testing.T) {
	w := newWorld(t, archives)
	dir := storetest.Dir(t)
	w.files(dir, "archive")
	w.write(filepath.Join(w.dir, "archive", store.FileConfig), `{"endpoint":"file:///nowhere/at/all","bucket":"b"}`)
	one := w.start(1)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.files(dir, "archive") // the first word is of all that was written
	s, err := store.Open(dir)
	must(t, err)
	var mark *facts.Mark
	until(t, "it says so", func() bool {
		a, err := archive.Load(t.Context(), s, backup.LogPrefix("db"))
		must(t, err)
		mark = a.Mark
		return mark != nil
	})
	if mark.Executed.IsEmpty() || !w.executed(one).Equal(mark.Executed) || time.Since(mark.Until) > time.Minute {
		t.Errorf("it says %+v", mark)
	}
}

// TestAServerThatStartsHoldsItsBinaryLogs until its manager knows that it archives nothing: it
// would purge while it starts. One that crashes later is let go again.
func TestAServerThatStartsHoldsItsBinaryLogs(t *testing.T) {
	w := newWorld(t, archives)
	w.files(storetest.Dir(t), "archive")
	one := w.start(1)
	w.bootstrap(one)
	text, err := os.ReadFile(one.opt.Dirs.config())
	must(t, err)
	if !strings.Contains(string(text), "binlog_expire_logs_auto_purge = OFF") {
		t.Errorf("mysqld was started with\n%s", text)
	}
	w.order(one, control.Demote{Epoch: w.epoch() + 1})
	until(t, "it goes by its own rule", func() bool { return !w.holdsLogs(one) })
	before := get(one.m, func(s *state) *process { return s.mysqld.proc })
	must(t, before.handle.Kill())
	w.await(one, "started again", func(r core.Report) bool { return r.Restarts > 0 && r.Server != nil })
	until(t, "the new one goes by its own rule", func() bool { return !w.holdsLogs(one) })
}
