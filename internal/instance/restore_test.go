package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// backUp takes a backup of an instance.
func (w *world) backUp(n *node, s store.Store) *backup.Manifest {
	w.t.Helper()
	return w.backUpWhile(n, s, func() {})
}

// backUpWhile takes one, and does something while the data are copied.
func (w *world) backUpWhile(n *node, s store.Store, do func()) *backup.Manifest {
	w.t.Helper()
	a, err := n.opt.Dirs.backupAccount()
	must(w.t, err)
	donor := clone.Donor{Address: net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort)), User: a.User,
		Password: a.Password, TLS: w.tlsOfJob(n)}
	seals, err := seal.Read(n.opt.Dirs.Archive)
	must(w.t, err)
	asked := 0
	m, err := backup.Take(w.t.Context(), donor, s, backup.Options{Instance: n.opt.Instance, Key: seals,
		Identity: backup.Identity{Cluster: "db", Namespace: "ns", UID: string(w.kube.get().UID), CreatedAt: time.Now()},
		Executed: func(ctx context.Context) (gtid.Set, error) {
			if asked++; asked == 2 { // the copy is under way
				do()
			}
			return n.m.roles.Executed(ctx)
		}})
	must(w.t, err)
	return m
}

// tlsOfJob is with what the Job of a Backup reaches an instance.
func (w *world) tlsOfJob(n *node) *tls.Config {
	w.t.Helper()
	cert, key := w.ca.issue(w.t, pki.OrgInstance, "backup")
	leaf, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(w.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.ca.pem))
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{leaf},
		ServerName: n.opt.Listen}
}

// files copies the files of a store to where the instances look for them.
func (w *world) files(from, to string) {
	files, err := os.ReadDir(from)
	must(w.t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(from, f.Name()))
		must(w.t, err)
		w.write(filepath.Join(w.dir, to, f.Name()), string(text))
	}
}

// restoring makes another world, whose first data come from a backup; id may be "".
func (w *world) restoring(dir, id string) *world {
	return w.restoringTo(dir, id, recovery.Target{})
}

func (w *world) restoringTo(dir, id string, target recovery.Target) *world {
	w.t.Helper()
	to := w.another(v1alpha1.ExternalCluster{Name: "db", ObjectStore: &v1alpha1.ObjectStoreSpec{}},
		recovery.Task{Cluster: "db", BackupID: id, Target: target})
	to.files(dir, "store")
	return to
}

func TestAClusterBeginsWithABackup(t *testing.T) {
	inAll(t)
	from := newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	db := from.app(source)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
	from.exec(db, "CREATE TABLE seen (id INT PRIMARY KEY) ENGINE=MyISAM")
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	m := from.backUp(source, s)
	from.exec(db, "INSERT INTO t (v) VALUES (4)") // after it

	w := from.restoring(dir, "")
	one, two := w.start(1), w.start(2)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.await(one, "restoring", func(r core.Report) bool { return r.State == core.Restoring || r.WritableEpoch == epoch })
	w.awaitPrimary(one, epoch)
	restored := w.asApp(one, "new-app-password")
	w.awaitRows(restored, 3)
	if n := one.report().Restarts; n != 0 {
		t.Errorf("restored, it says that mysqld was restarted %d times", n)
	}
	if r := one.report(); !r.Server.Executed.Contains(m.BeginGTID) || r.Server.UUID == source.report().Server.UUID {
		t.Errorf("restored, it says %+v; the backup holds %s", r.Server, m.BeginGTID)
	}
	if got := one.report().Restore.Lacking; len(got) != 1 || got[0] != "app_db.seen" {
		t.Errorf("tables that lack rows are %q", got)
	}
	var settings string
	must(t, restored.QueryRow("SELECT CONCAT_WS(' ', @@global.event_scheduler, @@global.sync_binlog, "+
		"@@global.innodb_flush_log_at_trx_commit)").Scan(&settings))
	if settings != "ON 1 1" {
		t.Errorf("event_scheduler, sync_binlog and innodb_flush_log_at_trx_commit are %s", settings)
	}
	if err := w.asApp(one, "app-password").Ping(); err == nil {
		t.Error("the password of before is still good")
	}
	// It is a primary like any other.
	w.exec(restored, "INSERT INTO t (v) VALUES (5)")
	w.join(two, one)
	w.awaitRows(w.asApp(two, "new-app-password"), 4)
	w.crashManager(one)
	w.awaitPrimary(w.start(1), epoch)
}

func TestARestoreThatCannotBeIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	from := newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	m := from.backUp(source, s)

	w := from.restoring(dir, "20200101T000000Z-none")
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(one, "refusing", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != core.InstanceRestoreFailed || !strings.Contains(r.Message, "BackupUnknown") {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
	if entries, err := os.ReadDir(one.opt.Dirs.Data); err == nil && len(entries) > 0 {
		t.Errorf("there are data: %v", entries)
	}
	// A throw-away Cluster that tries the backups of a Cluster takes none of an earlier one's.
	text, err := recovery.Task{Cluster: "db", BackupID: m.ID, Owner: "the UID of another"}.Encode()
	must(t, err)
	w.write(filepath.Join(w.dir, "store", recovery.FileTask), string(text))
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ })
	w.await(one, "refusing what is another's", func(r core.Report) bool {
		return r.State == core.Failed && r.Reason == core.InstanceRestoreNotOurs &&
			strings.Contains(r.Message, "ArchiveTaken")
	})
	// The operator names another backup; nobody has to delete anything.
	text, err = recovery.Task{Cluster: "db", BackupID: m.ID}.Encode()
	must(t, err)
	w.write(filepath.Join(w.dir, "store", recovery.FileTask), string(text))
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ })
	w.awaitPrimary(one, epoch)
}

func TestARestoreThatWasCutOffBeginsAnew(t *testing.T) {
	from := newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	db := from.app(source)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(source, s)

	w := from.restoring(dir, "")
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.await(one, "restoring", func(r core.Report) bool { return r.State == core.Restoring })
	until(t, "there are some files",
		func() bool { _, err := os.Stat(filepath.Join(one.opt.Dirs.Data, "#clone")); return err == nil })
	w.crashManager(one)
	if one.remembers().Stage == stagePopulated {
		t.Fatal("it was not cut off")
	}
	one = w.start(1)
	w.awaitPrimary(one, epoch)
	w.awaitRows(w.asApp(one, "new-app-password"), 3)
}

// archives is a Cluster that archives its binary logs within a second.
func archives(c *v1alpha1.Cluster) {
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: &v1alpha1.ObjectStoreSpec{},
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true, TargetRPOSeconds: 1}}
}

func TestAClusterIsRestoredToAnyTransaction(t *testing.T) {
	from := newWorld(t, archives)
	dir := storetest.Dir(t)
	from.files(dir, "archive")
	one, two := from.start(1), from.start(2)
	from.bootstrap(one)
	db := from.app(one)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
	s, err := store.Open(dir)
	must(t, err)
	// What is written while the backup is taken may be in it or not, and is restored once.
	from.exec(db, "CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	stop := from.writes(db, "INSERT INTO u (v) VALUES (1)")
	from.backUp(one, s)
	written := stop()
	from.exec(db, "INSERT INTO t (v) VALUES (4)")
	from.join(two, one)
	from.awaitRows(from.app(two), 4)
	from.awaitArchived(one)
	// A switchover: the archive goes on with the next primary.
	r := from.demotes(one)
	epoch := from.grant("db-2", core.ProofManagerFenced, "db-1", r.Server.Executed.String(), 0)
	from.awaitPrimary(two, epoch)
	db = from.app(two)
	from.exec(db, "INSERT INTO t (v) VALUES (5)")
	var at string
	must(t, db.QueryRow("SELECT DATE_FORMAT(UTC_TIMESTAMP(6), '%Y-%m-%dT%H:%i:%s.%fZ')").Scan(&at))
	until(t, "time passes", func() bool { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z") > at })
	from.exec(db, "INSERT INTO t (v) VALUES (6)")
	from.exec(db, "DROP TABLE t")
	uuid := from.answers(two).Server.UUID
	last := lastNumber(from.executed(two).Of(uuid).String())
	from.awaitArchived(two)
	until(t, "the primary holds its logs, and the former one does not", func() bool {
		return from.holdsLogs(two) && !from.holdsLogs(one)
	})
	from.await(one, "archiving no more", func(r core.Report) bool { return r.Archive == nil })
	from.crashManager(one)
	from.crashManager(two)

	moment, err := time.Parse(time.RFC3339Nano, at)
	must(t, err)
	before := stored(t, s)
	for name, c := range map[string]aim{
		"before the DROP": {recovery.Target{GTID: uuid + ":" + strconv.Itoa(last), Exclusive: true}, 6},
		"to a time":       {recovery.Target{Time: moment}, 5},
		"immediate":       {recovery.Target{Immediate: true}, 3},
	} {
		from.reaches(dir, name, c, written)
	}
	from.cannotReach(dir, recovery.Target{Time: time.Now().Add(time.Hour)}, "TargetAfterArchive")
	untouched(t, s, before)
}

// aim is where a restore is to end, and how many rows the table t has there.
type aim struct {
	target recovery.Target
	rows   int
}

// reaches restores to an aim. What was written while the backup was taken is there once: all of
// it, unless nothing of the archive is replayed.
func (w *world) reaches(dir, name string, to aim, written int) {
	t := w.t
	t.Helper()
	w = w.restoringTo(dir, "", to.target)
	restored := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.awaitPrimary(restored, 1)
	db := w.asApp(restored, "new-app-password")
	w.awaitRows(db, to.rows)
	var rows, last int
	must(t, db.QueryRow("SELECT COUNT(*), COALESCE(MAX(id), 0) FROM u").Scan(&rows, &last))
	if rows != last || rows > written || rows < written && !to.target.Immediate {
		t.Errorf("%s: there are %d rows of %d, the last is %d", name, rows, written, last)
	}
	t.Logf("%s: %d rows, and %d of %d", name, to.rows, rows, written)
	w.crashManager(restored)
}

// cannotReach tries to restore to a target, which is refused.
func (w *world) cannotReach(dir string, to recovery.Target, why string) {
	w.t.Helper()
	w = w.restoringTo(dir, "", to)
	refused := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(refused, "refusing", func(r core.Report) bool { return r.State == core.Failed })
	if !strings.Contains(r.Message, why) {
		w.t.Errorf("it says %s", r.Message)
	}
}

// TestWhatIsEncryptedIsRestoredByItsKey: nothing is archived before the key is there, nor in
// plain; and without it nothing is written on the other side.
func TestWhatIsEncryptedIsRestoredByItsKey(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	must(t, err)
	other, err := age.GenerateX25519Identity()
	must(t, err)
	from := newWorld(t, func(c *v1alpha1.Cluster) {
		archives(c)
		c.Spec.Backup.ObjectStore.Encryption = &v1alpha1.StoreEncryption{}
	})
	dir := storetest.Dir(t)
	from.files(dir, "archive")
	one := from.start(1)
	from.bootstrap(one)
	db := from.app(one)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	from.await(one, "lacking its key", func(r core.Report) bool {
		return r.Archive != nil && r.Archive.Failure == string(core.KeyMissing) && r.Archive.GTIDs == ""
	})
	from.write(filepath.Join(from.dir, "archive", seal.FileIdentity), key.String())
	from.await(one, "archiving", func(r core.Report) bool { return r.Archive != nil && r.Archive.Failure == "" })
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2)") // the archive begins where it is begun
	from.awaitArchived(one)
	s, err := store.Open(dir)
	must(t, err)
	m := from.backUp(one, s)
	from.exec(db, "INSERT INTO t (v) VALUES (3)")
	from.awaitArchived(one)
	if r := one.report(); r.Archive.EncryptedTo != m.Recipient || m.Recipient == "" {
		t.Errorf("the archive is for %q, and the backup for %q", r.Archive.EncryptedTo, m.Recipient)
	}
	from.crashManager(one)

	w := from.restoringTo(dir, "", recovery.Target{})
	restored := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	refuses := func(why *seal.Reason) {
		t.Helper()
		w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ })
		w.await(restored, why.Name, func(r core.Report) bool {
			return r.State == core.Failed && strings.Contains(r.Message, why.Name)
		})
		if entries, err := os.ReadDir(restored.opt.Dirs.Data); err == nil && len(entries) > 0 {
			t.Errorf("%s: there are data: %v", why.Name, entries)
		}
	}
	file := filepath.Join(w.dir, "store", seal.FileIdentity)
	refuses(seal.KeyMissing)
	w.write(file, "none")
	refuses(seal.KeyInvalid)
	w.write(file, other.String())
	refuses(seal.KeyWrong)
	w.write(file, other.String()+"\n"+key.String())
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ })
	w.awaitPrimary(restored, epoch)
	w.awaitRows(w.asApp(restored, "new-app-password"), 3)
}

// writes executes a statement over and over until it is stopped, and tells how often.
func (w *world) writes(db *sql.DB, statement string) (stop func() int) {
	ctx, cancel := context.WithCancel(context.Background())
	times := make(chan int, 1)
	go func() {
		n := 0
		for ctx.Err() == nil {
			if _, err := db.Exec(statement); err != nil {
				w.t.Errorf("%s: %v", statement, err)
				break
			}
			n++
		}
		times <- n
	}()
	return func() int { cancel(); return <-times }
}

// holdsLogs tells whether binary logs that have expired are kept.
func (w *world) holdsLogs(n *node) bool {
	w.t.Helper()
	var purges bool
	must(w.t, n.m.root.DB().QueryRow("SELECT @@global.binlog_expire_logs_auto_purge").Scan(&purges))
	return !purges
}

func TestBinaryLogsGoOnceTheyAreArchived(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		archives(c)
		c.Spec.Instances = 1 // it has no peers that would vouch for it on a busy machine
		c.Spec.Backup.ContinuousArchiving.BinlogExpireSeconds = new(int64(1))
	})
	// The store is away at first: what the manager purges by itself, as it looks every half minute, is nothing.
	dir := storetest.Dir(t)
	w.files(dir, "archive")
	w.write(filepath.Join(w.dir, "archive", store.FileConfig), `{"endpoint":"file:///nowhere/at/all","bucket":"b"}`)
	one := w.start(1)
	w.bootstrap(one)
	until(t, "the server's own purge is held back", func() bool { return w.holdsLogs(one) })
	root := one.m.root.DB()
	for range 3 {
		w.exec(root, "CREATE TABLE IF NOT EXISTS app_db.t (id INT PRIMARY KEY)")
		w.exec(root, "FLUSH BINARY LOGS")
	}
	until(t, "they have expired", func() bool {
		logs := w.logs(one)
		return len(logs) > 3 && time.Since(logs[len(logs)-2].Written) > time.Second
	})
	before := w.logs(one)
	must(t, one.m.archiver.lookAfterLogs(t.Context(), before[1].Name))
	if after := w.logs(one); len(after) != len(before)-1 || after[0].Name != before[1].Name {
		t.Errorf("there were %v, and are %v", before, after)
	}
	// What it has archived, it purges by itself.
	w.files(dir, "archive")
	w.await(one, "archiving", func(r core.Report) bool { return r.Archive != nil && r.Archive.Failure == "" })
	w.exec(root, "INSERT INTO app_db.t VALUES (1)") // the archive begins where it is begun
	w.awaitArchived(one)
	until(t, "all but the last are archived", func() bool {
		to := one.m.archiver.archivedTo()
		return to == before[len(before)-1].Name && one.m.archiver.lookAfterLogs(t.Context(), to) == nil
	})
	if after := w.logs(one); len(after) != 1 {
		t.Errorf("there are %v", after)
	}
}

// executed asks an instance.
func (w *world) executed(n *node) gtid.Set {
	w.t.Helper()
	set, err := n.m.roles.Executed(w.t.Context())
	must(w.t, err)
	return set
}
