package instance

import (
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// Under quorum the only replica has lost its data, and clients go on writing: their
// commits wait for a replica, and a clone waits for the commits. The primary is closed
// until the clone has ended, as the operator has it.
func TestAClosedPrimaryGivesItsDataAlthoughClientsGoOnWriting(t *testing.T) {
	w := newWorld(t, quorum)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.exec(w.app(one), "INSERT INTO t VALUES (-1)")
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	w.await(two, "awaiting a clone", func(r core.Report) bool {
		return r.State == core.AwaitingClone && r.Server != nil
	})
	ws := w.startWriters(3)
	w.await(one, "waiting for acknowledgements", func(r core.Report) bool {
		return r.Server != nil && r.Server.SemiSync.WaitSessions > 0
	})

	began := time.Now()
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Status.Operation = &v1alpha1.OperationStatus{Kind: string(core.OperationGiveData),
			Step: string(core.StepDemote), From: "db-1", To: "db-2"}
	})
	next := w.epoch() + 1
	if r := w.order(one, control.Demote{Epoch: next}); r.WritableEpoch != 0 ||
		r.NoWritesBelow != next {
		t.Fatalf("closed, it says %+v", r)
	}
	w.await(one, "read-only again", func(r core.Report) bool {
		return r.State == core.Running && r.Server != nil && r.Server.SuperReadOnly &&
			r.Reason == core.InstanceGivesData
	})
	t.Logf("closed after %s", time.Since(began))
	w.join(two, one)
	t.Logf("given after %s", time.Since(began))
	if n := ws.count(); n != 0 {
		t.Errorf("%d writes were acknowledged, which nobody can have acknowledged", n)
	}
	if why := readyz(one.m); why != "ok\n" && time.Since(began) > agent.FollowGrace {
		t.Errorf("it is not ready for readers: %s", why)
	}
	epoch := w.grant("db-1", core.ProofManagerFenced, "db-1", w.answers(one).Server.Executed.String(), 1)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.Operation = nil })
	w.awaitPrimary(one, epoch)
	ws.awaitMore(20)
	t.Logf("the first writes are acknowledged after %s", time.Since(began))
	w.awaitFollowing(two)
	if lost := ws.lost(w.app(one)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
	// The replica has received what it acknowledged, and applies it.
	var executed string
	var timedOut int
	must(t, w.app(one).QueryRow("SELECT @@GLOBAL.gtid_executed").Scan(&executed))
	must(t, w.rootOf(two).QueryRow("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 30)", executed).Scan(&timedOut))
	if timedOut != 0 {
		t.Errorf("the replica does not get all that the primary has: %s", executed)
	}
	if r := two.report(); !r.Errant.IsEmpty() {
		t.Errorf("the replica has diverged: %s", r.Errant)
	}
}
