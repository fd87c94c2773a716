package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// The Cluster was deleted and its volumes kept; another of its name goes on with them. What
// was promised to the first means nothing to it, and its Secrets have other passwords.
func TestTheVolumesOfADeletedClusterAreAdopted(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.join(two, one)
	w.exec(w.app(one), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(two), 1)
	w.crashManager(one)
	w.crashManager(two)
	for _, account := range []string{"root", "replication", "control", "app"} {
		w.write(w.dir+"/secrets/"+account+"/password", account+"-password-2")
	}
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.UID, c.Status = "uid-2", v1alpha1.ClusterStatus{InstanceNames: []string{"db-1", "db-2"}}
	})
	r := w.await(w.start(1), "kept from another Cluster's data", func(r core.Report) bool {
		return r.State == core.Failed
	})
	if r.Reason != "ForeignData" {
		t.Errorf("without a word it says %s: %s", r.Reason, r.Message)
	}
	w.crashManager(w.nodes["db-1"])

	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.AdoptedFrom = "uid-1" })
	one, two = w.start(1), w.start(2)
	for _, n := range []*node{one, two} {
		r := w.await(n, "serving what it holds", func(r core.Report) bool {
			return r.State == core.Running && r.Server != nil
		})
		if r.Data != core.DataPopulated || r.WritableEpoch != 0 || r.NoWritesBelow != 0 ||
			n.remembers().ClusterUID != "uid-2" {
			t.Errorf("%s says %+v, and remembers %+v", n.opt.Instance, r, n.remembers())
		}
	}
	epoch := w.grant("db-2", core.ProofAdopted, "", w.answers(two).Server.Holds().String(), 0)
	w.awaitPrimary(two, epoch)
	w.awaitFollowing(one)
	db := w.asApp(two, "app-password-2")
	w.awaitRows(db, 1)
	w.exec(db, "INSERT INTO t VALUES (2)")
	w.awaitRows(w.asApp(one, "app-password-2"), 2)
}
