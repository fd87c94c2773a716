package instance

import (
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// hardening is what an administrator may do with an account, and a running Cluster does not mind.
const hardening = " PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 365 DAY PASSWORD REQUIRE CURRENT " +
	"FAILED_LOGIN_ATTEMPTS 1 PASSWORD_LOCK_TIME UNBOUNDED"

// asItIs is how an account is made; the server is asked as root.
func (w *world) asItIs(n *node, account string) string {
	w.t.Helper()
	var text string
	must(w.t, n.m.root.DB().QueryRow("SHOW CREATE USER "+account).Scan(&text))
	return text
}

// hardened is a store with a backup of a primary on which these statements were executed.
func hardened(t *testing.T, statements ...string) (from *world, dir string) {
	t.Helper()
	from = newWorld(t, nil)
	source := from.start(1)
	from.bootstrap(source)
	for _, statement := range statements {
		from.exec(source.m.root.DB(), statement)
	}
	dir = storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(source, s)
	from.crashManager(source)
	return from, dir
}

// The passwords of the new cluster are no better than those of the operator's are, and that of
// the application is the one that it had.
func TestABackupWithHardenedAccountsIsRestored(t *testing.T) {
	inAll(t)
	from, dir := hardened(t,
		"CREATE USER other@'%' IDENTIFIED BY 'other-Password1' REQUIRE SSL"+hardening,
		"ALTER USER root@localhost REQUIRE SSL"+hardening,
		"ALTER USER app@'%'"+hardening, "ALTER USER app@'%' IDENTIFIED BY 'new-app-password'",
		"ALTER USER cnmsql_control@localhost"+hardening, "ALTER USER cnmsql_replication@'%'"+hardening,
		"INSTALL COMPONENT 'file://component_validate_password'")
	w := from.restoring(dir, "")
	one := w.start(1)
	w.awaitPrimary(one, w.grant("db-1", core.ProofBootstrap, "", "", 0))
	must(t, w.asApp(one, "new-app-password").Ping())
	for account, want := range map[string]string{
		"other@'%'": "REQUIRE SSL PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY 5 " +
			"PASSWORD REUSE INTERVAL 365 DAY PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 1 " +
			"PASSWORD_LOCK_TIME UNBOUNDED",
		"app@'%'": "PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 365 DAY PASSWORD REQUIRE CURRENT",
		"root@localhost": "REQUIRE NONE WITH MAX_USER_CONNECTIONS 100000 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK " +
			"PASSWORD HISTORY DEFAULT PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT",
	} {
		if got := w.asItIs(one, account); !strings.Contains(got, want) {
			t.Errorf("it lacks %s: %s", want, got)
		}
	}
}

func TestARestoredServerThatDoesNotLetItsManagerInIsTold(t *testing.T) {
	inAll(t)
	from, dir := hardened(t)
	w := from.restoring(dir, "")
	w.write(filepath.Join(w.dir, "secrets", "control", "username"), strings.Repeat("long", 10))
	one := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(one, "told of", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != core.InstanceRestoreFailed || !strings.Contains(r.Message, "does not let its manager in") ||
		!strings.Contains(r.Message, "is too long for user name") {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
}

// A policy holds for people. What the Secrets have may be generated, and is set with all that
// did not change.
func TestPoliciesForPasswordsDoNotHinderTheOperator(t *testing.T) {
	inAll(t)
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		c.Spec.MySQL.Parameters = map[string]string{"password_history": "5", "password_reuse_interval": "365"}
		c.Spec.EnableSuperuserAccess = true
	})
	one := w.start(1)
	w.bootstrap(one)
	until(t, "it looks at the Secrets", func() bool { return one.remembers().Accounts != "" })
	root := one.m.root.DB()
	w.exec(root, "INSTALL COMPONENT 'file://component_validate_password'")
	w.exec(root, "DROP USER cnmsql_replication@'%'")
	w.write(filepath.Join(w.dir, "secrets/control/password"), "weak")
	w.write(filepath.Join(w.dir, "secrets/app/password"), "weak-too")
	until(t, "the application has its password", func() bool { return w.asApp(one, "weak-too").Ping() == nil })
	until(t, "the account of replication is made again", func() bool {
		var n int
		must(t, root.QueryRow("SELECT COUNT(*) FROM mysql.user WHERE user = 'cnmsql_replication'").Scan(&n))
		return n == 1
	})
	w.crashManager(one)
	one = w.start(1)
	w.awaitPrimary(one, 1)
	w.await(one, "running", func(r core.Report) bool { return r.State == core.Running && r.Server != nil })
}
