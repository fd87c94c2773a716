package instance

import (
	"testing"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// An ordinary user runs statements of maintenance on a replica. Refused or not, they have
// GTIDs of the replica's own there. They are known for what they are, the primary adopts
// their numbers, and the histories are equal again.
func TestAReplicaThatAUserRanMaintenanceOnIsForgiven(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.join(two, one)
	db := w.app(two)
	for _, statement := range []string{"ANALYZE TABLE t UPDATE HISTOGRAM ON id", "REPAIR TABLE t"} {
		rows, err := db.Query(statement)
		if err == nil {
			_ = rows.Close()
		}
	}
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.DivergedInstances = []string{"db-2"} })
	r := w.await(two, "forgiven", func(r core.Report) bool { return !r.Maintenance.IsEmpty() && r.Errant.IsEmpty() })
	if r.Maintenance.Count() != 2 {
		t.Errorf("it forgives %s", r.Maintenance)
	}
	order := control.AdoptTransactions{Epoch: w.epoch(), Transactions: r.Maintenance.String()}
	w.order(one, order)
	adopted := w.order(one, order) // once more changes nothing
	if !adopted.Server.Executed.Contains(r.Maintenance) {
		t.Errorf("it has not adopted %s: %s", r.Maintenance, adopted.Server.Executed)
	}
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.DivergedInstances = nil })
	w.exec(w.app(one), "INSERT INTO t VALUES (1)")
	w.awaitFollowing(two)
	w.awaitRows(db, 1)
	w.await(two, "equal to the primary", func(r core.Report) bool {
		return r.Server != nil && r.Server.Executed.Equal(one.report().Server.Executed)
	})
	order.Transactions = one.report().Server.UUID + ":99999"
	if _, err := w.tryOrder(one, order); err == nil {
		t.Error("it gave a number of its own away")
	}

	// A real write beside them is no maintenance.
	w.inSpite(two, "CREATE TABLE app_db.x (id INT PRIMARY KEY)")
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.DivergedInstances = []string{"db-2"} })
	w.await(two, "diverged", func(r core.Report) bool { return r.Errant.Count() == 1 && r.Reason == "Diverged" })
}

// In a group, such statements on a secondary have numbers that the group gives, refused or
// not: all members have them, and nobody diverges.
func TestMaintenanceOnASecondaryIsTheGroups(t *testing.T) {
	inAll(t)
	w, n := threeMembers(t)
	for _, statement := range []string{"ANALYZE TABLE t UPDATE HISTOGRAM ON id", "REPAIR TABLE t"} {
		rows, err := w.app(n[1]).Query(statement)
		must(t, err)
		must(t, rows.Close())
	}
	w.exec(w.app(n[0]), "INSERT INTO t VALUES (1)")
	var executed [3]string
	for i, m := range n {
		w.awaitRows(w.app(m), 1)
		must(t, w.rootOf(m).QueryRow("SELECT @@global.gtid_executed").Scan(&executed[i]))
	}
	if executed[1] != executed[0] || executed[2] != executed[0] {
		t.Errorf("the members have executed %q", executed)
	}
}
