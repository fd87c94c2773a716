package instance

import (
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/recovery"
)

// another makes another world, whose first data come from elsewhere.
func (w *world) another(from v1alpha1.ExternalCluster, task recovery.Task) *world {
	t := w.t
	t.Helper()
	w = makeWorld(t, w.root, func(c *v1alpha1.Cluster) {
		c.UID = "uid-2"
		c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{Recovery: &v1alpha1.RecoverySpec{Source: from.Name}}
		c.Spec.ExternalClusters = []v1alpha1.ExternalCluster{from}
	})
	for _, secret := range []string{"root", "replication", "control", "app"} {
		w.write(filepath.Join(w.dir, "secrets", secret, "password"), "new-"+secret+"-password")
	}
	text, err := task.Encode()
	must(t, err)
	w.write(filepath.Join(w.dir, "store", recovery.FileTask), string(text))
	return w
}

// copying makes another world, whose first data are copied from an instance of this one as from any server.
func (w *world) copying(from *node, password string) *world {
	w.t.Helper()
	server := recovery.Server{Name: "old", Host: from.opt.Listen, Port: from.opt.MySQLPort, User: "copier"}
	to := w.another(v1alpha1.ExternalCluster{Name: "old",
		ConnectionParameters: map[string]v1alpha1.ConnectionParameter{"host": "old", "user": "copier"}},
		recovery.Task{Server: &server})
	to.write(filepath.Join(to.dir, "store", recovery.FilePassword), password)
	to.write(filepath.Join(to.dir, "store", recovery.FileAuthority), w.ca.pem)
	return to
}

// served makes a primary that has rows, and an account that may copy it.
func served(t *testing.T) (*world, *node) { return servedBy(t, 1) }

func servedBy(t *testing.T, ordinal int) (*world, *node) {
	t.Helper()
	w := newWorld(t, nil)
	source := w.start(ordinal)
	w.bootstrap(source)
	db := w.app(source)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.exec(db, "INSERT INTO t (v) VALUES (1), (2), (3)")
	w.exec(db, "CREATE TABLE seen (id INT PRIMARY KEY) ENGINE=MyISAM")
	root := w.rootOf(source)
	w.exec(root, "CREATE USER copier IDENTIFIED WITH caching_sha2_password BY 'copier-password' REQUIRE SSL")
	w.exec(root, "GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO copier")
	return w, source
}

// TestAClusterBeginsWithTheDataOfARunningServer copies a server that goes on, and makes of it a cluster with
// accounts, a server UUID and replicas of its own.
func TestAClusterBeginsWithTheDataOfARunningServer(t *testing.T) {
	inAll(t)
	from, source := served(t)
	holds := from.executed(source)

	w := from.copying(source, "copier-password\n")
	one, two := w.start(1), w.start(2)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	w.awaitPrimary(one, epoch)
	copied := w.asApp(one, "new-app-password")
	w.awaitRows(copied, 3)
	r := one.report()
	if !r.Server.Executed.Contains(holds) || r.Server.UUID == source.report().Server.UUID || r.Restarts != 0 {
		t.Errorf("copied, it says %+v; the server held %s", r.Server, holds)
	}
	if is := r.Restore; is == nil || is.Source != "old" || is.Stage != core.RestoreDone || is.Files.Done < 1<<20 ||
		is.Files.Done != is.Files.Of || len(is.Lacking) != 1 || is.Lacking[0] != "app_db.seen" {
		t.Errorf("of the copy it says %+v", is)
	}
	if err := w.asApp(one, "app-password").Ping(); err == nil {
		t.Error("the password of the server is still good")
	}
	w.exec(copied, "INSERT INTO t (v) VALUES (4)")
	w.join(two, one)
	from.exec(from.app(source), "INSERT INTO t (v) VALUES (4), (5)") // it goes on by itself
	w.awaitRows(w.asApp(two, "new-app-password"), 4)
}

// TestAServerThatCannotBeCopiedIsSaidWhy holds that nothing is written before the server has let the account in,
// under a certificate that was verified, and that the copy begins anew once that is mended.
func TestAServerThatCannotBeCopiedIsSaidWhy(t *testing.T) {
	inAll(t)
	from, source := served(t)
	w := from.copying(source, "wrong")
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	says := func(why string) {
		t.Helper()
		r := w.await(one, "says "+why, func(r core.Report) bool {
			return r.State == core.Failed && strings.Contains(r.Message, why)
		})
		if r.Reason != core.InstanceRestoreFailed || r.Data == core.DataPopulated ||
			!strings.Contains(r.Message, "old, of spec.externalClusters") {
			t.Errorf("it says %s: %s", r.Reason, r.Message)
		}
	}
	again := func() { w.kube.edit(func(c *v1alpha1.Cluster) { c.Generation++ }) }
	says("LoginDenied")
	w.write(filepath.Join(w.dir, "store", recovery.FileAuthority), w.ca.pem) // of another authority
	again()
	says("unknown authority")
	w.write(filepath.Join(w.dir, "store", recovery.FileAuthority), from.ca.pem)
	w.write(filepath.Join(w.dir, "store", recovery.FilePassword), "copier-password")
	from.exec(from.rootOf(source), "REVOKE BACKUP_ADMIN ON *.* FROM copier")
	again()
	says("NoPrivilege")
	from.exec(from.rootOf(source), "GRANT BACKUP_ADMIN ON *.* TO copier")
	again()
	w.awaitPrimary(one, epoch)
}
