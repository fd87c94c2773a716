package instance

import (
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// etcd is restored from a backup in which db-1 was the primary; by now db-2 is, and db-1
// follows it. Nobody goes by that status: db-2 goes on taking writes, and db-1 does not
// open, even when its manager starts again and knows nothing else.
func TestAStatusOfThePastIsNotGoneBy(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.join(two, one)
	past := w.kube.get().Status.DeepCopy()
	w.switchover(one, two, 0)
	w.awaitFollowing(one)
	until(t, "db-1 remembers epoch 2", func() bool { return one.m.record.get().ViewEpoch == 2 })

	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status = *past })
	until(t, "db-2 is told", func() bool { return get(two.m, func(s *state) bool { return s.cluster.latest.Past }) })
	w.exec(w.app(two), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(one), 1)

	w.crashManager(one)
	one = w.start(1)
	r := w.await(one, "running", func(r core.Report) bool { return r.State == core.Running && r.Server != nil })
	if r.ViewEpoch != 2 || r.WritableEpoch != 0 || !r.Server.SuperReadOnly {
		t.Errorf("it says %+v", r)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if one.report().WritableEpoch != 0 {
			t.Fatal("it goes by a status of the past, and takes writes")
		}
	}
	w.exec(w.app(two), "INSERT INTO t VALUES (2)")

	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch, c.Status.CurrentPrimary = 2, "db-2" })
	w.awaitPrimary(two, w.grant("db-2", core.ProofStatusRestored, "db-1", "", 0))
	w.awaitFollowing(one)
	w.awaitRows(w.app(one), 2)
}
