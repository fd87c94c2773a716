package instance

import (
	"context"
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// Somebody with the root password did to a replica what mysqld permits. It is told, and
// whoever follows another primary follows it without delay.
func TestWhatWasDoneToAReplicaIsTold(t *testing.T) {
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
	for _, statement := range []string{"STOP REPLICA SQL_THREAD", "CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 3600",
		"START REPLICA SQL_THREAD"} {
		w.exec(root, statement)
	}
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
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	former, err := w.app(one).Conn(ctx)
	must(t, err)
	if _, err := former.ExecContext(ctx, "INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	w.exec(w.rootOf(one), "SET GLOBAL super_read_only = ON")
	for db := w.app(one); ; <-time.After(10 * time.Millisecond) {
		_, err := db.ExecContext(ctx, "INSERT INTO t VALUES (2)")
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("it does not become writable again: ", err)
		}
	}
	if _, err := former.ExecContext(ctx, "INSERT INTO t VALUES (3)"); err == nil {
		t.Error("a session outlived the time in which the server was read-only")
	}
	w.awaitRows(w.app(one), 2)
}
