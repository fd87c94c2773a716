package instance

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// beginsToCopy has the second instance copy the first one's data, slowly, and returns in the middle of it.
func (w *world) beginsToCopy() (one, two *node) {
	w.t.Helper()
	one, two = w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE large (id INT PRIMARY KEY AUTO_INCREMENT, v LONGBLOB)")
	for range 16 { // so that the copy takes many looks at how far it is, on a busy machine, too
		w.exec(db, "INSERT INTO large (v) VALUES (REPEAT('x', 4 << 20))")
	}
	w.await(two, "awaiting a clone", func(r core.Report) bool {
		return r.State == core.AwaitingClone && r.Server != nil
	})
	// As root has no password yet: it is scratch data.
	must(w.t, slowCopies(two))
	w.order(two, control.CloneFrom{Epoch: 1, Donor: one.opt.Listen})
	w.await(two, "in the middle of a copy", func(r core.Report) bool {
		return r.Clone != nil && r.Clone.Stage == "FILE COPY" && r.Clone.Percent > 0
	})
	return one, two
}

// slowCopies has a recipient write a MiB a second.
func slowCopies(n *node) error {
	_, err := n.m.roles.DB().ExecContext(context.Background(), "SET GLOBAL clone_max_concurrency = 1, "+
		"clone_autotune_concurrency = 0, clone_max_data_bandwidth = 1, clone_max_network_bandwidth = 1")
	return err
}

// movedBefore has what the node does stand still for so long already.
func (n *node) movedBefore(long time.Duration) {
	n.m.activities.mu.Lock()
	defer n.m.activities.mu.Unlock()
	n.m.activities.moved = time.Now().Add(-long)
}

// mysqld hangs in the middle of a copy. It is killed, and what it has copied does not keep the next copy
// from being made.
func TestACopyInWhichMysqldHangsIsBrokenOffAndMadeAnew(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, two := w.beginsToCopy()
	hung := two.proc()
	must(t, hung.handle.Signal(syscall.SIGSTOP))
	until(t, "mysqld is silent", func() bool { return !two.m.facts().Mysqld.Answers })
	if f := two.m.facts(); f.Activity != agent.Cloning || f.Data != core.DataScratch {
		t.Fatalf("silent for a moment, it does %q with %s", f.Activity, f.Data)
	}
	two.m.update(func(s *state) { s.status.answered = time.Now().Add(-core.HungLimit) })
	r := w.await(two, "awaiting another copy", func(r core.Report) bool { return r.State == core.AwaitingClone })
	if hung.running() || r.Clone == nil || r.Clone.Failures != 1 || !strings.Contains(r.Clone.Error, "NoAnswer") {
		t.Errorf("hung: %t; it says %+v", hung.running(), r.Clone)
	}
	w.join(two, one)
}

// A donor hangs: its recipient's mysqld answers all the while.
func TestACopyToWhichNothingComesIsToldAndBrokenOff(t *testing.T) {
	// The donor is alone, for otherwise it isolates itself while it is stopped, and ends the copy.
	w := newWorld(t, func(c *v1alpha1.Cluster) { c.Spec.Instances = 1 })
	one, two := w.beginsToCopy()
	must(t, one.proc().handle.Signal(syscall.SIGSTOP))
	// What was under way may still move, until it has come.
	until(t, "it is told that nothing moves", func() bool {
		two.movedBefore(agent.StuckTold)
		r := two.report()
		return r.State == core.Cloning && r.Reason == core.InstanceNoProgress
	})
	until(t, "the copy is broken off", func() bool {
		two.movedBefore(agent.StuckLimit)
		return two.m.facts().Activity == agent.NoActivity
	})
	r := w.await(two, "awaiting another copy", func(r core.Report) bool { return r.State == core.AwaitingClone })
	if !strings.Contains(r.Clone.Error, "NoProgress") {
		t.Errorf("it says %+v", r.Clone)
	}
	must(t, one.proc().handle.Signal(syscall.SIGCONT))
	w.join(two, one)
}

// mysqld --initialize hangs. It is no mysqld that could be asked.
func TestAnInitialisationThatHangsBeginsAnew(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil).initialises()
	one := w.start(1)
	epoch := w.grant("db-1", core.ProofBootstrap, "", "", 0)
	child := func() *process {
		one.m.launcher.starting.Lock()
		defer one.m.launcher.starting.Unlock()
		return one.m.launcher.child
	}
	until(t, "it is initialised", func() bool {
		_, err := os.Stat(filepath.Join(one.opt.Dirs.Data, "ibdata1"))
		return err == nil && child().running()
	})
	hung := child()
	must(t, hung.handle.Signal(syscall.SIGSTOP))
	one.movedBefore(agent.StuckLimit)
	r := w.await(one, "failed", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != core.InstanceNoProgress || hung.running() || r.Data != core.DataEmpty {
		t.Errorf("hung: %t; it says %s %s with %s", hung.running(), r.Reason, r.Message, r.Data)
	}
	one.m.update(func(s *state) { s.mysqld.problem.RetryAt = time.Now() })
	w.awaitPrimary(one, epoch)
}

func TestFilesThatChangeAreProgress(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) footprint {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return printOf(dir)
	}
	empty := printOf(dir)
	made := write("ibdata1", "x")
	grown := write("ibdata1", "xx")
	if made == empty || grown == made || printOf(dir) != grown {
		t.Errorf("of %v came %v, then %v, then %v", empty, made, grown, printOf(dir))
	}
	at := time.Now().Add(time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, "ibdata1"), at, at))
	if p := printOf(dir); p == grown {
		t.Errorf("written over in place: %v", p)
	}
}

func TestWhatIsBrokenOffHasFailed(t *testing.T) {
	o := newOccupant()
	must(t, o.of.begin(agent.Stopping, func(ctx context.Context) error { <-ctx.Done(); return io.EOF }))
	<-o.of.cancel(failureOf(agent.Abort{Reason: core.InstanceNoProgress, Why: "nothing moved"}))
	if o.err == nil || o.err.Error() != "NoProgress: nothing moved" {
		t.Errorf("it noted %v", o.err)
	}
}
