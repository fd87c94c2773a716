package instance

import (
	"strings"
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// grantFollowing promotes an instance that follows the server old, as grant does one that takes writes.
func (w *world) grantFollowing(name string, proof core.Proof, from, required string) int64 {
	epoch := w.grant(name, proof, from, required, 0)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.Promotion.Follows, c.Status.Promotion.LosslessSince = "old", 0 })
	return epoch
}

// TestAClusterFollowsTheServerThatItIsACopyOf has a cluster go on after a copy, change its primary meanwhile, and
// take over from a server that goes on all the time.
func TestAClusterFollowsTheServerThatItIsACopyOf(t *testing.T) {
	inAll(t)
	from, source := servedBy(t, 3) // at a host that no instance of the cluster has
	old := from.app(source)

	w := from.copying(source, "copier-password")
	one, two := w.start(1), w.start(2)
	w.awaitPrimary(one, w.grantFollowing("db-1", core.ProofBootstrap, "", ""))
	from.exec(old, "INSERT INTO t (v) VALUES (4)")
	w.awaitRows(w.asApp(one, "new-app-password"), 4)
	r := one.report()
	if r.Follows != "old" || !r.IsPrimary() || r.TakesWrites() || !r.Server.SuperReadOnly {
		t.Errorf("it is to follow, read-only, and says %+v", r)
	}
	w.await(one, "level with the server", func(r core.Report) bool {
		return r.Source != nil && r.Source.Name == "old" && !r.Source.Lacks && r.Source.Writable &&
			r.Source.Problem == "" && r.Source.Generation == 1 && r.Source.Address == source.at(source.opt.MySQLPort)
	})
	if _, err := w.asApp(one, "new-app-password").Exec("INSERT INTO t (v) VALUES (99)"); err == nil {
		t.Error("a client could write to a primary that follows a server")
	}
	w.join(two, one)
	from.exec(old, "INSERT INTO t (v) VALUES (5)")
	w.awaitRows(w.asApp(two, "new-app-password"), 5)

	final := w.demotes(one)
	if final.IsPrimary() || final.Server.Replication != nil && final.Server.Replication.IORunning {
		t.Errorf("demoted, it says %+v", final)
	}
	w.awaitPrimary(two, w.grantFollowing("db-2", core.ProofManagerFenced, "db-1", final.Server.Executed.String()))
	from.exec(old, "INSERT INTO t (v) VALUES (6)")
	w.awaitRows(w.asApp(two, "new-app-password"), 6)
	w.awaitFollowing(one)
	w.awaitRows(w.asApp(one, "new-app-password"), 6)

	r = w.await(two, "level with the server", func(r core.Report) bool { return r.Source != nil && !r.Source.Lacks })
	w.awaitPrimary(two, w.grant("db-2", core.ProofManagerFenced, "db-2", r.Server.Executed.String(), 0))
	taken := w.asApp(two, "new-app-password")
	w.exec(taken, "INSERT INTO t (v) VALUES (7)")
	from.exec(old, "INSERT INTO t (v) VALUES (8), (9)")
	w.awaitFollowing(one)
	w.awaitRows(w.asApp(one, "new-app-password"), 7)
	if r := two.report(); !r.TakesWrites() || r.Source != nil || r.Server.Replication != nil {
		t.Errorf("it has taken over, and says %+v", r)
	}
}

// TestAReplicaOfAFollowerThatReceivedNothingFollows has a donor whose channel never received anything, of which
// MySQL recovers no relay logs: the copy has to follow all the same.
func TestAReplicaOfAFollowerThatReceivedNothingFollows(t *testing.T) {
	inAll(t)
	from, source := servedBy(t, 3)
	from.exec(from.rootOf(source), "REVOKE REPLICATION SLAVE ON *.* FROM copier")

	w := from.copying(source, "copier-password")
	one, two := w.start(1), w.start(2)
	w.awaitPrimary(one, w.grantFollowing("db-1", core.ProofBootstrap, "", ""))
	r := w.await(one, "refused by the server", func(r core.Report) bool {
		return r.Reason == core.InstanceSourceUnreached
	})
	if !strings.Contains(r.Message, "does not receive from old: ") || !r.IsPrimary() {
		t.Errorf("it says %+v", r)
	}
	w.join(two, one)
	from.exec(from.rootOf(source), "GRANT REPLICATION SLAVE ON *.* TO copier")
	from.exec(from.app(source), "INSERT INTO t (v) VALUES (4)")
	w.awaitRows(w.asApp(two, "new-app-password"), 4)
}
