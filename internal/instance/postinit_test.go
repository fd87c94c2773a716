package instance

import (
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// begunWith has the first instance run statements of the user's.
func begunWith(statements ...string) func(*v1alpha1.Cluster) {
	return func(c *v1alpha1.Cluster) {
		c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{InitDB: &v1alpha1.InitDBSpec{PostInitSQL: statements}}
	}
}

// TestPostInitSQLIsRunOnce shows that the statements are run as root when there is the database, and not again when
// the manager is another one.
func TestPostInitSQLIsRunOnce(t *testing.T) {
	w := newWorld(t, begunWith("CREATE TABLE app_db.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)",
		"INSERT INTO app_db.t (v) VALUES (1)", "CREATE USER reader@'%' IDENTIFIED BY 'reader-password'"))
	one := w.start(1)
	w.bootstrap(one)
	w.awaitRows(w.app(one), 1)
	must(t, w.login(one, "reader", "reader-password", "preferred"))
	w.crashManager(one)
	one = w.start(1)
	w.awaitPrimary(one, 1)
	w.awaitRows(w.app(one), 1)
}

// TestPostInitSQLThatFailsIsTold shows that it is told by its number and without its text, which may hold a password.
func TestPostInitSQLThatFailsIsTold(t *testing.T) {
	inAll(t)
	w := newWorld(t, begunWith("CREATE DATABASE mine", "CREATE USERS reader IDENTIFIED BY 'secret'"))
	one := w.start(1)
	w.grant(one.opt.Instance, core.ProofBootstrap, "", "", 0)
	r := w.await(one, "failed", func(r core.Report) bool { return r.Reason == core.InstancePostInitSQLFailed })
	if !strings.Contains(r.Message, "postInitSQL[1]") || strings.Contains(r.Message, "secret") || r.WritableEpoch != 0 {
		t.Errorf("it says %+v", r)
	}
}
