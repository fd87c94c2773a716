package instance

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// crash kills mysqld and returns when its manager waits for the operator, which it does until restart: after
// agent.VerdictWait it would start mysqld by itself, and whoever copies its data may need longer.
func (w *world) crash(n *node) {
	w.t.Helper()
	_ = n.proc().handle.Kill()
	w.await(n, "stopped", func(r core.Report) bool { return r.State == core.Stopped && r.Reason == "MysqldCrashed" })
	n.m.update(func(s *state) {
		s.mysqld.problem = &agent.Problem{Generation: s.cluster.view.Generation, RetryAt: time.Now().Add(time.Hour),
			Problem: core.Problem{Reason: core.InstanceStartFailed, Message: "the test is not ready"}}
	})
}

// restart is the operator's word to a manager that waits for it.
func (w *world) restart(n *node) {
	w.t.Helper()
	w.order(n, control.RestartInPlace{Epoch: w.epoch()})
	n.m.update(func(s *state) { s.mysqld.problem = nil })
}

// TestAPrimaryThatHasLostWritesStaysClosed holds that a primary whose storage lost what a replica has does not
// give the numbers again; that it is back soon while nothing was lost or nobody answers; and that it receives
// what it lost from who takes over.
func TestAPrimaryThatHasLostWritesStaysClosed(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.InstanceNames = []string{"db-1", "db-2"} })
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (1)")
	w.awaitRows(w.app(two), 1)

	w.crash(one)
	data, kept := one.opt.Dirs.Data, t.TempDir()
	copyOver(t, data, kept)
	began := time.Now()
	w.restart(one)
	w.await(one, "writable again", func(r core.Report) bool { return r.WritableEpoch == w.epoch() })
	t.Logf("a primary that has lost nothing is writable %s after its order", time.Since(began))

	w.awaitFollowing(two)
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (2), (3)")
	w.awaitRows(w.app(two), 3)
	w.crash(one)
	must(t, os.RemoveAll(data))
	must(t, os.Mkdir(data, 0o750))
	copyOver(t, kept, data)
	w.restart(one)
	r := w.await(one, "closed", func(r core.Report) bool { return r.Reason == core.InstanceTransactionsMissing })
	<-time.After(time.Second)
	r = one.report()
	if r.WritableEpoch != 0 || r.Reason != core.InstanceTransactionsMissing || !strings.Contains(r.Message, "db-2") ||
		!r.Server.SuperReadOnly {
		t.Fatalf("a primary that has lost writes says %+v", r)
	}
	w.order(one, control.Demote{Epoch: w.epoch() + 1})
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", w.answers(two).Server.Executed.String(), 0)
	w.awaitPrimary(two, epoch)
	w.awaitFollowing(one)
	w.exec(w.app(two), "INSERT INTO t (v) VALUES (4)")
	w.awaitRows(w.app(one), 4)
}

func copyOver(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("copying %s: %v: %s", from, err, out)
	}
}

// TestAPrimaryThatIsLeftAloneTakesWritesAgain holds that who does not answer shuts nobody out.
func TestAPrimaryThatIsLeftAloneTakesWritesAgain(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.InstanceNames = []string{"db-1", "db-2", "db-3"} })
	w.crash(one)
	began := time.Now()
	w.restart(one)
	w.await(one, "writable again", func(r core.Report) bool { return r.WritableEpoch == w.epoch() })
	t.Logf("a primary that is left alone is writable %s after its order", time.Since(began))
}
