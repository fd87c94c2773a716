package instance

import (
	"database/sql"
	"errors"
	"syscall"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// TestAPrimaryThatWasExpelledComesBackByItself and takes no writes until then. mysqld has 15 seconds for that. On a
// machine so busy that it needs longer its manager has it leave, which mysqld may hold up in the middle of an
// attempt, so that this is not in `make test`.
func TestAPrimaryThatWasExpelledComesBackByItself(t *testing.T) {
	inAll(t)
	x := expelPrimary(t, 3)
	x.w.await(x.n[0], "expelled", func(r core.Report) bool { return r.Reason == core.MemberIsInError && isClosed(r) })
	x.refusesWrites()
	x.w.awaitRole(x.n[0], core.MemberSecondary)
	if times := x.logged("error_code = 'MY-013375' AND data LIKE '%Member was able to join the group%'"); times != 1 {
		t.Errorf("mysqld came back by itself %d times", times)
	}
}

// TestItsManagerBringsAnExpelledPrimaryBack, where mysqld makes no attempt of its own, which nobody could end: it
// leaves, and joins as a secondary when the operator says who is primary.
func TestItsManagerBringsAnExpelledPrimaryBack(t *testing.T) {
	inAll(t)
	x := expelPrimary(t, 0)
	x.w.await(x.n[0], "expelled, and out of the group", func(r core.Report) bool {
		return r.Reason == core.MemberAwaitingGroup && isClosed(r)
	})
	x.refusesWrites()
	x.w.elected(x.n[1], x.n[2])
	x.w.awaitRole(x.n[0], core.MemberSecondary)
	if x.n[0].proc() != x.process {
		t.Error("mysqld was started again")
	}
	if times := x.logged("error_code IN ('MY-013374', 'MY-013375')"); times != 0 {
		t.Errorf("mysqld tried %d times to come back by itself", times)
	}
}

// expelled is a group of three whose primary, the first, was frozen until the others expelled it.
type expelled struct {
	w       *world
	n       []*node
	db      *sql.DB
	process *process
}

func expelPrimary(t *testing.T, tries int32) expelled {
	t.Helper()
	w := newGroup(t, 3)
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Spec.Replication.GroupReplication = &v1alpha1.GroupReplicationSpec{AutoRejoinTries: &tries}
	})
	n := []*node{w.start(1), w.start(2), w.start(3)}
	w.madeBy(n[0])
	w.joinGroup(n[1], n[0])
	w.joinGroup(n[2], n[1])
	w.exec(w.app(n[0]), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.awaitSettings(n[0], int(tries), 0)
	x := expelled{w, n, w.rootOf(n[0]), n[0].proc()}
	must(t, x.process.handle.Signal(syscall.SIGSTOP))
	w.await(n[1], "a group of two", func(r core.Report) bool {
		return r.Server != nil && len(r.Server.Group.Members) == 2
	})
	must(t, x.process.handle.Signal(syscall.SIGCONT))
	return x
}

func isClosed(r core.Report) bool {
	return r.Server != nil && r.Server.SuperReadOnly && !r.TakesWrites()
}

func (x expelled) refusesWrites() {
	x.w.t.Helper()
	var refused *driver.MySQLError
	_, err := x.db.Exec("INSERT INTO app_db.t VALUES (1)")
	if !errors.As(err, &refused) || refused.Number != 1290 {
		x.w.t.Errorf("asked to write when it was expelled, it says %v", err)
	}
}

// logged counts what mysqld of the primary has written into its error log.
func (x expelled) logged(which string) (times int) {
	x.w.t.Helper()
	must(x.w.t, x.db.QueryRow("SELECT COUNT(*) FROM performance_schema.error_log WHERE "+which).Scan(&times))
	return times
}
