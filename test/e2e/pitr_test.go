//go:build e2e

package e2e

import (
	"database/sql"
	"fmt"
	"time"

	"cnmsql.co/api/v1alpha1"
)

// named is another Cluster of the same namespace.
func (w *world) named(name string) *world {
	other := *w
	other.key.Name = name
	w.t.Cleanup(func() {
		if w.t.Failed() {
			other.show()
		}
	})
	return &other
}

// restoredToATime: between the backup and the time lie a switchover, a failover and a
// partition, all of them under load.
func (b *backedUp) restoredToATime() {
	l := b.startWriting()
	b.backUp("timed", "")
	b.completes("timed")
	at := b.changesHands(l)
	b.archivesAll()
	b.restoreTo(at, "timed", b.store.Encrypted())
}

// groupRestoredToATime: the same of a group, which goes on with the archive of each primary.
func (b *backedUp) groupRestoredToATime() {
	b.groupArchives()
	l := b.startWriting()
	b.backUp("of-group", "")
	if s := b.completes("of-group"); s.InstanceName == b.primary() {
		b.t.Errorf("the backup was taken from the primary: %+v", s)
	}
	at := b.changesHands(l)
	b.archivesAll()
	b.restoreTo(at, "of-group", b.store.Spec())
}

// changesHands: the primary changes by a switchover, a failover and a partition. The time that
// is returned lies in the latter.
func (b *backedUp) changesHands(l *load) time.Time {
	b.t.Helper()
	to := b.replica()
	b.switchTo(to)
	b.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && c.Status.Phase == "Healthy"
	})
	b.killMysqld(to)
	b.moved(to, time.Minute)
	b.awayFromOperator()
	old := b.primary()
	node := b.pod(old).Spec.NodeName
	cut := b.fault("partition", node)
	l.ackedAfter(cut.Add(time.Second), time.Minute)
	at := b.moment()
	l.ackedAfter(time.Now().Add(time.Second), 20*time.Second)
	b.fault("heal", node)
	b.moved(old, 3*time.Minute)
	l.stopAndLoseNothing()
	return at
}

// moment is a time between two rows: the first was acknowledged before it, and the second was
// begun after it.
func (b *backedUp) moment() time.Time {
	b.t.Helper()
	b.sql("CREATE TABLE IF NOT EXISTS app.moments (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))")
	b.sql("TRUNCATE app.moments")
	b.sql("INSERT INTO app.moments (what) VALUES ('before')")
	at := time.Now().UTC()
	<-time.After(5 * time.Millisecond)
	b.sql("INSERT INTO app.moments (what) VALUES ('after')")
	return at
}

// restoreTo makes a Cluster of one instance with the data of a time, and holds it against those
// of b, which has gone on: each row that was committed until then is there, and none besides.
func (b *backedUp) restoreTo(at time.Time, name, objectStore string) {
	b.t.Helper()
	target := at.Format("2006-01-02T15:04:05.000000Z")
	begun := time.Now()
	in := b.restored("to-"+name, objectStore, ", recoveryTarget: {targetTime: '"+target+"'}")
	b.t.Logf("apply to one instance with the data of %s: %s", target, time.Since(begun))
	db, restored := b.open("rw"), in.open("rw")
	if what := b.ask(restored, "SELECT GROUP_CONCAT(what) FROM app.moments"); what != "before" {
		b.t.Errorf("of the rows before and after the time it has: %s", what)
	}
	until := "at <= '" + at.Format("2006-01-02 15:04:05.000000") + "+00:00'"
	is, wanted := b.rows(restored), b.begun(db, until)
	b.isBeginningOf(is, b.rows(db))
	for connection, begun := range wanted {
		// A connection begins a row when the one before it is committed.
		if n := len(is[connection]); n > begun || n < begun-1 {
			b.t.Errorf("connection %s: %d rows are restored, and %d had begun until %s", connection, n, begun, target)
		}
	}
	if n := b.ask(restored, "SELECT COUNT(*) FROM app."+b.table(restored)+" WHERE NOT "+until); n != "0" {
		b.t.Errorf("%s rows were begun after %s", n, target)
	}
	b.t.Logf("%d rows of %d connections, of which %d lie before the time", count(b.rows(db)), len(wanted), count(is))
	b.remove(in)
}

// restored is a Cluster of one instance that begins with what b has in the store, to the latest
// unless target says more of its recovery.
func (b *backedUp) restored(name, objectStore, target string) *world {
	b.t.Helper()
	in := b.restoring(name, objectStore, target)
	in.healthy(3 * time.Minute)
	return in
}

// restoring asks for such a Cluster.
func (b *backedUp) restoring(name, objectStore, target string) *world {
	b.t.Helper()
	in := b.named(name)
	in.apply("\n  instances: 1\n  storage: {size: 1Gi}\n" +
		"  bootstrap: {recovery: {source: " + b.key.Name + target + "}}\n" +
		"  externalClusters: [{name: " + b.key.Name + ", objectStore: " + objectStore + "}]\n")
	return in
}

// remove deletes such a Cluster and its volume.
func (b *backedUp) remove(in *world) {
	b.t.Helper()
	b.kubectl("-n", b.key.Namespace, "delete", "cluster", in.key.Name)
	b.kubectl("-n", b.key.Namespace, "delete", "pvc", "-l", v1alpha1.LabelCluster+"="+in.key.Name, "--wait=false")
}

// begun is how many rows each connection had begun, of those that are there.
func (b *backedUp) begun(db *sql.DB, until string) map[string]int {
	b.t.Helper()
	ask := fmt.Sprintf("SELECT CONCAT(run, '/', conn), COUNT(*) FROM app.%s WHERE %s GROUP BY run, conn",
		b.table(db), until)
	rows, err := db.QueryContext(b.ctx, ask)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	out := map[string]int{}
	for rows.Next() {
		var connection string
		var n int
		if err := rows.Scan(&connection, &n); err != nil {
			b.t.Fatal(err)
		}
		out[connection] = n
	}
	if err := rows.Err(); err != nil {
		b.t.Fatal(err)
	}
	return out
}
