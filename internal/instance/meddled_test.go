package instance

import (
	"testing"

	"cnmsql.co/internal/core"
)

// Somebody with the root password did to a replica what mysqld permits. It is told, and
// whoever follows another primary follows it without delay.
func TestWhatWasDoneToAReplicaIsTold(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, two, three := w.start(1), w.start(2), w.start(3)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	w.join(three, one)
	// What is received shows that the stream was asked for: one that asks for it with nothing
	// executed is sent all.
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (0)")
	w.awaitRows(w.app(three), 1)

	if _, err := w.rootOf(three).Exec("RESET BINARY LOGS AND GTIDS"); err != nil {
		w.exec(w.rootOf(three), "RESET MASTER") // as it was called before 8.4
	}
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (1)")
	w.await(three, "abreast by its own word, with holes in what it executed", func(r core.Report) bool {
		return r.Server != nil && r.Server.Replication != nil && r.Server.Replication.LagSeconds == 0 &&
			r.Server.Replication.SQLRunning && !r.Server.Executed.Holes().IsEmpty()
	})

	root := w.rootOf(two)
	two.m.polling.Lock() // its manager would start the applier again in between
	for _, statement := range []string{"STOP REPLICA SQL_THREAD", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600",
		"START REPLICA SQL_THREAD"} {
		w.exec(root, statement)
	}
	two.m.polling.Unlock()
	late := func(n *node, seconds int) {
		w.await(n, "as late as it was told to be", func(r core.Report) bool {
			return r.Server != nil && r.Server.Replication != nil && r.Server.Replication.DelaySeconds == seconds &&
				r.Server.Replication.SQLRunning
		})
	}
	late(two, 3600)
	w.exec(root, "STOP REPLICA")
	w.exec(root, "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.7.9'") // the manager points it back
	w.awaitFollowing(two)
	late(two, 0)
}

// A server that somebody made read-only commits by XA all the same, and its sessions stay
// open. They are closed before it is writable again.
func TestAPrimaryThatSomebodyMadeReadOnlyIsPromotedAgain(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
	for i, variable := range []string{"super_read_only", "read_only"} {
		former, err := w.app(one).Conn(t.Context())
		must(t, err)
		_, err = former.ExecContext(t.Context(), "INSERT INTO t VALUES ()")
		must(t, err)
		w.exec(w.rootOf(one), "SET GLOBAL "+variable+" = ON")
		w.takesWritesAgain(one)
		if _, err := former.ExecContext(t.Context(), "INSERT INTO t VALUES ()"); err == nil {
			t.Errorf("%s: a session outlived the time in which the server was read-only", variable)
		}
		w.awaitRows(w.app(one), 2*(i+1))
	}
}

// takesWritesAgain waits until a client has written one row.
func (w *world) takesWritesAgain(n *node) {
	w.t.Helper()
	db := w.app(n)
	until(w.t, n.opt.Instance+" takes writes again", func() bool {
		_, err := db.Exec("INSERT INTO t VALUES ()")
		return err == nil
	})
}

// The group itself closes nobody and opens nobody while roles stay as they are.
func TestWhatSomebodySetByHandInAGroupIsSetBack(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	w.exec(w.app(n[0]), "ALTER TABLE t MODIFY id INT AUTO_INCREMENT")
	rows := 0
	for _, variable := range []string{"super_read_only", "read_only"} {
		w.exec(w.rootOf(n[0]), "SET GLOBAL "+variable+" = ON")
		if _, err := w.app(n[0]).Exec("INSERT INTO t VALUES ()"); err == nil {
			t.Fatalf("%s does not close it", variable)
		}
		w.takesWritesAgain(n[0])
		rows++
	}
	w.awaitRows(w.app(n[1]), rows)
	w.isNotOpened(n[1])
	secondary := w.rootOf(n[1])
	c, err := w.app(n[1]).Conn(t.Context())
	must(t, err)
	w.exec(secondary, "SET GLOBAL read_only = OFF")
	until(t, "a secondary is closed again", func() (closed bool) {
		err := secondary.QueryRow("SELECT @@global.super_read_only").Scan(&closed)
		return err == nil && closed
	})
	until(t, "the session of a client there ends", func() bool {
		_, err := c.ExecContext(t.Context(), "DO 1")
		return err != nil
	})
	w.awaitRole(n[1], core.MemberSecondary)
}

// isNotOpened checks that a member of which what is known is old, and which is no primary, stays closed.
func (w *world) isNotOpened(n *node) {
	w.t.Helper()
	n.m.polling.Lock()
	defer n.m.polling.Unlock()
	must(w.t, n.m.membership.openForWrites(w.t.Context()))
	var closed bool
	must(w.t, w.rootOf(n).QueryRow("SELECT @@global.super_read_only").Scan(&closed))
	if !closed {
		w.t.Error("a secondary was made writable")
	}
}
