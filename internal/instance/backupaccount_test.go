package instance

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/mysql"
)

// asJob logs in to an instance as the Job of a Backup does, in one session.
func (w *world) asJob(n *node) *sql.Conn {
	w.t.Helper()
	a, err := n.opt.Dirs.backupAccount()
	must(w.t, err)
	c := driver.NewConfig()
	c.Net, c.Addr, c.TLS = "tcp", net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort)), w.tlsOfJob(n)
	c.User, c.Passwd, c.Logger = a.User, a.Password, &driver.NopLogger{}
	connector, err := driver.NewConnector(c)
	must(w.t, err)
	db := sql.OpenDB(connector)
	w.t.Cleanup(func() { _ = db.Close() })
	conn, err := db.Conn(w.t.Context())
	must(w.t, err)
	return conn
}

// TestThePrimaryMakesTheAccountOfBackups where the data are of a release that had none, once its Secret has come; the
// replica gets it, and it may do no more than a copy needs.
func TestThePrimaryMakesTheAccountOfBackups(t *testing.T) {
	inAll(t)
	w := newWorld(t, quorum)
	keys := map[string]string{}
	for _, key := range []string{"backup-username", "backup-password"} {
		file := filepath.Join(w.dir, "secrets", "control", key)
		text, err := os.ReadFile(file)
		must(t, err)
		keys[file] = string(text)
		must(t, os.Remove(file))
	}
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.join(two, one)
	w.awaitFollowing(two)
	var before int
	must(t, w.rootOf(one).QueryRow("SELECT COUNT(*) FROM mysql.user WHERE user = 'cnmsql_backup'").Scan(&before))
	if before != 0 {
		t.Fatal("this test cannot see the account being made")
	}
	for file, text := range keys {
		w.write(file, text)
	}
	w.awaitAccount(one, "cnmsql_backup")
	w.awaitAccount(two, "cnmsql_backup")
	for _, n := range []*node{one, two} {
		w.mayOnlyCopy(n)
	}
	if r := two.report(); !r.Errant.IsEmpty() {
		t.Errorf("it made transactions of its own: %s", r.Errant)
	}
}

// mayOnlyCopy holds what the account of Backups may do at an instance.
func (w *world) mayOnlyCopy(n *node) {
	w.t.Helper()
	a, err := n.opt.Dirs.backupAccount()
	must(w.t, err)
	address := net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort))
	until(w.t, "it is let in", func() bool {
		err := mysql.CheckBackup(w.t.Context(), address, w.tlsOfJob(n), a)
		return err == nil
	})
	bare := w.tlsOfJob(n)
	bare.Certificates = nil
	var wrong *mysql.AccountError
	if err := mysql.CheckBackup(w.t.Context(), address, bare, a); !errors.As(err, &wrong) {
		w.t.Errorf("%s without a certificate: %v", n.opt.Instance, err)
	}
	rows, err := w.asJob(n).QueryContext(w.t.Context(), "SHOW GRANTS")
	must(w.t, err)
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var one string
		must(w.t, rows.Scan(&one))
		all = append(all, strings.ReplaceAll(one, "`", "'"))
	}
	must(w.t, rows.Err())
	if got := strings.Join(all, "; "); got != "GRANT USAGE ON *.* TO 'cnmsql_backup'@'%'; "+
		"GRANT BACKUP_ADMIN,CONNECTION_ADMIN ON *.* TO 'cnmsql_backup'@'%'" {
		w.t.Errorf("%s: it may %s", n.opt.Instance, got)
	}
}

// TestABackupOutlivesAChangeOfThePrimary holds that neither the closing of clients' sessions nor offline mode ends the
// connection of a Job that copies the primary.
func TestABackupOutlivesAChangeOfThePrimary(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	job := w.asJob(one)
	ask := func() (offline bool, err error) {
		err = job.QueryRowContext(context.WithoutCancel(t.Context()), "SELECT @@global.super_read_only").Scan(&offline)
		return offline, err
	}
	if readOnly, err := ask(); err != nil || readOnly {
		t.Fatalf("before: read-only %t, %v", readOnly, err)
	}
	w.switchover(one, two, 0)
	if readOnly, err := ask(); err != nil || !readOnly {
		t.Errorf("after: read-only %t, %v", readOnly, err)
	}
}
