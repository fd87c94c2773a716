package instance

import (
	"os"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestAFormerPrimaryWhoseVolumeWasSetBackReceivesItsOwnTransactions reports that volumes that were restored from
// snapshots of different moments become equal: what a former primary wrote itself, and does not have any more, it
// receives from who took over. mysqld leaves out what bears its own server_id, unless it is told not to.
func TestAFormerPrimaryWhoseVolumeWasSetBackReceivesItsOwnTransactions(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) { c.Spec.Instances = 2 })
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.exec(w.app(one), "INSERT INTO t VALUES (1)")
	w.join(two, one)
	w.awaitRows(w.app(two), 1)
	w.crashManager(one)
	volume, snapshot := one.opt.Dirs.Data, t.TempDir()+"/data"
	must(t, os.CopyFS(snapshot, os.DirFS(volume)))

	one = w.start(1)
	w.await(one, "writable again", func(r core.Report) bool { return r.WritableEpoch == 1 })
	w.exec(w.app(one), "INSERT INTO t VALUES (2)")
	w.awaitRows(w.app(two), 2)
	w.crashManager(one)
	must(t, os.RemoveAll(volume))
	must(t, os.CopyFS(volume, os.DirFS(snapshot)))
	w.awaitPrimary(two, w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0))
	w.exec(w.app(two), "INSERT INTO t VALUES (3)")

	one = w.start(1)
	w.awaitRows(w.app(one), 3)
	if lacks := w.executed(two).Subtract(w.executed(one)); !lacks.IsEmpty() {
		t.Errorf("it lacks %s", lacks)
	}
}
