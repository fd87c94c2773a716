package instance

import (
	"fmt"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/test/mysqld"
)

// Somebody imports into the primary by a replication channel of its own. It goes on while replicas are
// made and follow, and ends with the switchover, before the position is told that the next primary must have.
func TestASwitchoverEndsWhatThePrimaryReceivesFromElsewhere(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	elsewhere := mysqld.ForTest(t)
	elsewhere.Initialize()
	elsewhere.Start(99)
	elsewhere.Exec("CREATE USER import@'%' IDENTIFIED BY 'secret'")
	elsewhere.Exec("GRANT REPLICATION SLAVE ON *.* TO import@'%'")
	elsewhere.Exec("CREATE DATABASE imported")
	elsewhere.Exec("CREATE TABLE imported.t (id INT PRIMARY KEY AUTO_INCREMENT)")

	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	root := w.rootOf(one)
	w.exec(root, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=%d, "+
		"SOURCE_USER='import', SOURCE_PASSWORD='secret', GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1 "+
		"FOR CHANNEL 'import'", elsewhere.Port))
	w.exec(root, "START REPLICA FOR CHANNEL 'import'")
	insert := func() { elsewhere.Exec("INSERT INTO imported.t VALUES ()") }
	insert()
	imported := func(n *node, rows int) {
		db := w.rootOf(n)
		until(t, fmt.Sprintf("%s has %d imported rows", n.opt.Instance, rows), func() bool {
			var are int
			return db.QueryRow("SELECT COUNT(*) FROM imported.t").Scan(&are) == nil && are == rows
		})
	}
	imported(one, 1)
	w.join(two, one) // whose clone has the channel, too
	insert()
	imported(two, 2)

	w.switchover(one, two, 0)
	final := elsewhere.Executed()
	insert()
	w.awaitFollowing(one)
	w.exec(w.app(two), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.awaitRows(w.app(one), 0)
	for _, n := range []*node{one, two} {
		var running int
		must(t, w.rootOf(n).QueryRow(`SELECT COUNT(*) FROM performance_schema.replication_connection_status c
			JOIN performance_schema.replication_applier_status a ON a.CHANNEL_NAME = c.CHANNEL_NAME
			WHERE c.CHANNEL_NAME = 'import' AND (c.SERVICE_STATE <> 'OFF' OR a.SERVICE_STATE <> 'OFF')`).Scan(&running))
		if running > 0 {
			t.Errorf("%s receives from elsewhere", n.opt.Instance)
		}
		imported(n, 2)
	}
	r := w.await(one, "told", func(r core.Report) bool { return r.Server != nil })
	if more := r.Server.Executed.Of(elsewhereUUID(elsewhere)).Subtract(final); !more.IsEmpty() {
		t.Errorf("the former primary went on with %s", more)
	}

	// It goes on where somebody has it go on, and neither primary nor replica lose each other by it.
	w.exec(w.rootOf(two), "START REPLICA FOR CHANNEL 'import'")
	imported(two, 3)
	imported(one, 3)
	w.switchover(two, one, 0)
	w.awaitFollowing(two)
}

func elsewhereUUID(s *mysqld.Test) string { return strings.ToLower(s.Text("SELECT @@server_uuid")) }
