package instance

import (
	"database/sql"
	"testing"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// A statement that changed an account has been acknowledged, and other commits wait: under load one
// always does. Accounts are free, and the manager finds that out.
func TestAccountsAreFreeThoughOtherCommitsWait(t *testing.T) {
	w := newWorld(t, quorum)
	one, db := w.startWhereCommitsWait()
	go func() { _, _ = db.Exec("INSERT INTO t (v) VALUES (1)") }()
	waits := func(r core.Report) bool { return r.Server != nil && r.Server.SemiSync.WaitSessions == 1 }
	w.await(one, "waiting", waits)
	one.m.update(func(s *state) { s.access.locked = true }) // as while the statement waited
	w.await(one, "heard as a whole", func(r core.Report) bool {
		return waits(r) && !r.Server.SemiSync.LocksAccounts && !one.m.accountsLocked()
	})
}

// startWhereCommitsWait starts a primary alone, whose commits wait for a replica from now on, and returns the
// application's access to it. There is a table t.
func (w *world) startWhereCommitsWait() (*node, *sql.DB) {
	one := w.start(1)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	return one, db
}
