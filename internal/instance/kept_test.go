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

// The Cluster of a group was deleted and its volumes kept. Each tells of which history of that group it is. One of them
// makes a new group from what it holds, which the others join as they are.
func TestTheVolumesOfADeletedGroupAreAdopted(t *testing.T) {
	w, n := threeMembers(t)
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	w.awaitRows(w.app(n[2]), 1)
	w.crashManager(n[2])
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (2)")
	w.awaitRows(w.app(n[1]), 2)
	w.crashManager(n[1])
	w.crashManager(n[0])
	for _, account := range []string{"root", "replication", "control", "app"} {
		w.write(w.dir+"/secrets/"+account+"/password", account+"-password-2")
	}
	of := core.LineageOf(w.kube.get().Status.GroupReplication.GroupName, nil)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		members := c.Status.GroupReplication.Members
		c.UID, c.Status = "uid-2", v1alpha1.ClusterStatus{InstanceNames: c.Status.InstanceNames, PrimaryEpoch: 1,
			AdoptedFrom: "uid-1", GroupReplication: &v1alpha1.GroupReplicationStatus{
				GroupName: "7f1a6d0e-0000-5000-8000-000000000002", Members: members}}
	})
	n = []*node{w.start(1), w.start(2), w.start(3)}
	for _, n := range n {
		r := w.await(n, "serving what it holds", func(r core.Report) bool {
			return r.State == core.Running && r.Server.HasView()
		})
		if r.Former != of || r.Server.Group.IsMember() || r.Data != core.DataPopulated {
			t.Errorf("%s tells %+v, and is not of %+v", n.opt.Instance, r, of)
		}
	}
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.GroupReplication.Bootstrapper, c.Status.TargetPrimary = "db-1", "db-1"
	})
	w.madeBy(n[0])
	w.awaitRole(n[1], core.MemberSecondary)
	w.awaitRole(n[2], core.MemberSecondary)
	w.awaitLogin(n[0], "app-password-2", "app-password")
	w.exec(w.asApp(n[0], "app-password-2"), "INSERT INTO t VALUES (3)")
	w.awaitRows(w.asApp(n[2], "app-password-2"), 3)
	until(t, "each remembers the new group alone", func() bool {
		for _, n := range n {
			if is := n.remembers(); is.GroupOf == of.Group || is.GroupRecovery == 0 || is.Former.Group != "" {
				return false
			}
		}
		return true
	})
}
