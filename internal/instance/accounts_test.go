package instance

import (
	"database/sql"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// newAcknowledged makes a primary with the table t, whose commits wait for its replica.
func newAcknowledged(t *testing.T) (w *world, one, two *node) {
	t.Helper()
	w = newWorld(t, quorum)
	one, two = w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	// A statement that changes an account and waits would keep the replica from logging in.
	w.await(one, "acknowledged", func(r core.Report) bool { return r.Server != nil && r.Server.SemiSync.Clients == 1 })
	return w, one, two
}

// Somebody dropped the replication account. Under quorum it cannot be made again by a
// commit that waits for the replicas, which need it to acknowledge: the primary makes it
// here first, and then for all.
func TestADroppedReplicationAccountIsRestoredUnderQuorum(t *testing.T) {
	inAll(t)
	w, one, two := newAcknowledged(t)
	w.exec(w.rootOf(one), "DROP USER cnmsql_replication@'%'")
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (1)") // the replica's connection outlives its account
	w.awaitRows(w.app(two), 1)
	_ = two.proc().handle.Kill() // now it has to log in
	began := time.Now()
	w.awaitFollowing(two)
	t.Logf("restored and followed after %s", time.Since(began))
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (2)")
	w.awaitRows(w.app(two), 2)
	w.awaitAccount(two, "cnmsql_replication")
	r := two.report()
	if !r.Errant.IsEmpty() {
		t.Errorf("the repair made transactions of its own: %s", r.Errant)
	}
	w.await(one, "heard of with all that the replica has", func(now core.Report) bool {
		return now.Server != nil && now.Server.Executed.Contains(r.Server.Executed)
	})
}

// TestAnAccountNamedAsTheReplicationAccountIsDroppedUnderQuorum has somebody make the replication account once
// more, for some hosts. A server asks the account of the most specific host, so that no replica is let in, and
// nothing that is done to the account for all hosts helps.
func TestAnAccountNamedAsTheReplicationAccountIsDroppedUnderQuorum(t *testing.T) {
	inAll(t)
	w, one, two := newAcknowledged(t)
	w.exec(w.rootOf(one), "CREATE USER cnmsql_replication@'127.%' IDENTIFIED BY 'another'")
	w.exec(w.rootOf(one), "CREATE USER cnmsql_manager@'192.0.2.1', bystander@'127.%' IDENTIFIED BY 'another'")
	_ = two.proc().handle.Kill() // now it has to log in
	w.awaitFollowing(two)
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (1)")
	w.awaitRows(w.app(two), 1)
	for _, n := range []*node{one, two} {
		for _, user := range []string{"cnmsql_replication", "cnmsql_manager", "bystander"} {
			w.awaitAccount(n, user)
		}
	}
	if r := two.report(); !r.Errant.IsEmpty() {
		t.Errorf("the repair made transactions of its own: %s", r.Errant)
	}
}

// awaitAccount waits until a server has one account of a user, and no other.
func (w *world) awaitAccount(n *node, user string) {
	w.t.Helper()
	var found int
	for began := time.Now(); time.Since(began) < patience; <-time.After(100 * time.Millisecond) {
		if err := w.rootOf(n).QueryRow("SELECT COUNT(*) FROM mysql.user WHERE user = ?",
			user).Scan(&found); err == nil && found == 1 {
			return
		}
	}
	w.t.Fatalf("%s has no account %s", n.opt.Instance, user)
}

// A server that is read-only restores the accounts while it starts, without a transaction.
func TestAStartRestoresTheInternalAccountsOfAServerThatIsReadOnly(t *testing.T) {
	inAll(t)
	w, _, two := newPair(t, nil)
	w.inSpite(two, "SET sql_log_bin = 0", "DROP USER cnmsql_control@'localhost', cnmsql_replication@'%'")
	_ = two.proc().handle.Kill()
	r := w.await(two, "running again", func(r core.Report) bool {
		return r.State == core.Running && r.Restarts > 0 && r.Server != nil && r.Server.Replication != nil &&
			r.Server.Replication.IORunning
	})
	w.awaitAccount(two, "cnmsql_replication")
	if !r.Errant.IsEmpty() || !r.Server.SuperReadOnly {
		t.Errorf("it says %+v", r)
	}
}

// A primary without replicas whose client changes an account: the statement waits with
// the locks of all accounts, and the server is not hung.
func TestAnAccountStatementThatWaitsIsNoHungServer(t *testing.T) {
	w := newWorld(t, quorum)
	one, _ := w.startWhereCommitsWait()
	p := one.proc()
	root := w.rootOf(one)
	go func() { _, _ = root.Exec("CREATE USER joe") }()
	w.await(one, "waiting", func(r core.Report) bool { return r.Server != nil && r.Server.SemiSync.LocksAccounts })
	for began := time.Now(); time.Since(began) < 8*time.Second; <-time.After(100 * time.Millisecond) {
		r := one.report()
		if r.State != core.Running || r.Server == nil || r.WritableEpoch != 1 ||
			r.Server.SemiSync.WaitSessions != 1 || !p.running() {
			t.Fatalf("it says %s %s: %s", r.State, r.Reason, r.Message)
		}
	}
}

// Root gets in over the network with TLS only, on a new server and on a restored one whose
// data had it otherwise. The application may choose.
func TestRootIsLetInOverTheNetworkWithTLSOnly(t *testing.T) {
	superuser := func(c *v1alpha1.Cluster) { c.Spec.EnableSuperuserAccess = true }
	from := newWorld(t, superuser)
	source := from.start(1)
	from.bootstrap(source)
	from.checkTLSOfRoot(source, "")

	from.exec(from.rootOf(source), "ALTER USER 'root'@'%' REQUIRE NONE")
	if err := from.login(source, "root", "root-password", "false"); err != nil {
		t.Fatalf("this test cannot see a missing requirement: %v", err)
	}
	dir := storetest.Dir(t)
	s, err := store.Open(dir)
	must(t, err)
	from.backUp(source, s)
	w := from.restoring(dir, "")
	w.kube.edit(superuser)
	one := w.start(1)
	w.bootstrap(one)
	w.checkTLSOfRoot(one, "new-")
}

// checkTLSOfRoot: who is let in, with and without TLS.
func (w *world) checkTLSOfRoot(n *node, prefix string) {
	w.t.Helper()
	for _, c := range []struct{ user, tls, refused string }{
		{"root", "skip-verify", ""}, {"root", "false", "Access denied"}, {"app", "skip-verify", ""},
		{"app", "false", ""},
	} {
		err := w.login(n, c.user, prefix+c.user+"-password", c.tls)
		if c.refused == "" && err != nil ||
			c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			w.t.Errorf("%s with tls=%s: %v, want %q", c.user, c.tls, err, c.refused)
		}
	}
}

// login logs in over the network.
func (w *world) login(n *node, user, password, tls string) error {
	c := driver.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort))
	c.User, c.Passwd, c.TLSConfig, c.Logger = user, password, tls, &driver.NopLogger{}
	connector, err := driver.NewConnector(c)
	must(w.t, err)
	conn, err := connector.Connect(w.t.Context())
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// rootOf connects as root, through the socket.
func (w *world) rootOf(n *node) *sql.DB {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd, c.Logger = "unix", n.opt.Dirs.socket(), "root",
		"root-password", &driver.NopLogger{}
	connector, err := driver.NewConnector(c)
	must(w.t, err)
	db := sql.OpenDB(connector)
	w.t.Cleanup(func() { _ = db.Close() })
	return db
}
