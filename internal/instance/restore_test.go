package instance

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// backUp takes a backup of an instance.
func (w *world) backUp(n *node, s store.Store) *backup.Manifest {
	w.t.Helper()
	cert, key := w.ca.issue(w.t, control.OrgInstance, "backup")
	leaf, err := tls.X509KeyPair([]byte(cert), []byte(key))
	must(w.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(w.ca.pem))
	a, err := readAccount(n.opt.Dirs.Replication)
	must(w.t, err)
	donor := clone.Donor{Address: net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort)), User: a.User, Password: a.Password,
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{leaf}, ServerName: n.opt.Listen}}
	m, err := backup.Take(w.t.Context(), donor, s, backup.Options{Instance: n.opt.Instance,
		Identity: backup.Identity{Cluster: "db", Namespace: "ns", UID: string(w.kube.get().UID), CreatedAt: time.Now()},
		Executed: func(ctx context.Context) (gtid.Set, error) { return n.m.roles.Executed(ctx) }})
	must(w.t, err)
	return m
}

// restoring makes another world, whose first data come from a backup; id may be "".
func (w *world) restoring(dir, id string) *world {
	t := w.t
	t.Helper()
	w = makeWorld(t, w.root, func(c *v1alpha1.Cluster) {
		c.UID = "uid-2"
		c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{Recovery: &v1alpha1.RecoverySpec{Source: "db"}}
	})
	for _, secret := range []string{"root", "replication", "control", "app"} {
		w.write(filepath.Join(w.dir, "secrets", secret, "password"), "new-"+secret+"-password")
	}
	files, err := os.ReadDir(dir)
	must(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		must(t, err)
		w.write(filepath.Join(w.dir, "store", f.Name()), string(text))
	}
	text, err := recovery.Task{Cluster: "db", BackupID: id}.Encode()
	must(t, err)
	w.write(filepath.Join(w.dir, "store", recovery.FileTask), string(text))
	return w
}

func TestAClusterBeginsWithABackup(t *testing.T) {
	from := newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	db := from.app(source)
	from.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	from.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
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
	if r := one.report(); !r.Server.Executed.Contains(m.BeginGTID) || r.Server.UUID == source.report().Server.UUID {
		t.Errorf("restored, it says %+v; the backup holds %s", r.Server, m.BeginGTID)
	}
	var events string
	must(t, restored.QueryRow("SELECT @@global.event_scheduler").Scan(&events))
	if events != "ON" {
		t.Errorf("event_scheduler is %s", events)
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
	// The operator names another backup; nobody has to delete anything.
	text, err := recovery.Task{Cluster: "db", BackupID: m.ID}.Encode()
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
	until(t, "there are some files", func() bool { _, err := os.Stat(filepath.Join(one.opt.Dirs.Data, "#clone")); return err == nil })
	w.crashManager(one)
	one = w.start(1)
	w.awaitPrimary(one, epoch)
	w.awaitRows(w.asApp(one, "new-app-password"), 3)
}
