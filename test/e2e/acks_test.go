//go:build e2e

package e2e

import (
	"context"
	"database/sql"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

// bothMustAcknowledge: with one replica silent every commit waits, while the other
// replica can still take over.
const bothMustAcknowledge = `
  instances: 3
  minSyncReplicas: 2
  maxStopDelay: 20
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
  mysql:
    semiSync: {enabled: true, dataDurability: quorum}
`

// TestNoFalseAcknowledgement stops a primary on which every commit waits, in each
// way there is: no client may read success for what too few replicas hold.
func TestNoFalseAcknowledgement(t *testing.T) {
	s := newStory(t, "acks", func(w *world) {
		w.apply(bothMustAcknowledge)
		w.healthy(3 * time.Minute)
		w.sql("CREATE TABLE app.waits (id INT AUTO_INCREMENT PRIMARY KEY, step VARCHAR(64) NOT NULL)")
	})
	s.isWell = func(w *world) { w.durable(2 * time.Minute) }
	s.play([]step{
		{"NotStopped", (*world).waitingIsReleased, always, three},
		{"Switchover", (*world).waitingDuringSwitchover, always, three},
		{"PodDeleted", (*world).waitingWhenPodDeleted, inAll, three},
		{"MaxStopDelayRunsOut", (*world).waitingUntilMaxStopDelay, inAll, three},
		{"Fenced", (*world).waitingWhenFenced, inAll, three},
		{"IsolatesItself", (*world).waitingWhenCutOff, inAll, three},
		{"RollingRestart", (*world).rollingRestart, always, threeForItself},
	})
}

// durable waits until the cluster is well, and its commits wait for as many replicas as
// they should.
func (w *world) durable(within time.Duration) {
	w.t.Helper()
	w.becomes(within, func(c *v1alpha1.Cluster) bool {
		return testbed.Healthy(c) && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionDurable)
	})
}

// sql runs a statement on the primary. Where it fails, it tells which server answered.
func (w *world) sql(statement string) {
	w.t.Helper()
	conn, err := w.open("rw").Conn(w.ctx)
	if err != nil {
		w.t.Fatal(statement, err)
	}
	defer func() { _ = conn.Close() }()
	if _, err = conn.ExecContext(w.ctx, statement); err == nil {
		return
	}
	var is string
	asked := conn.QueryRowContext(w.ctx, "SELECT CONCAT(@@hostname, ', super_read_only ', @@super_read_only, "+
		"', read_only ', @@read_only)").Scan(&is)
	w.t.Fatal(statement, err, "; it was asked of ", is, asked)
}

// waiting are clients of the primary whose commits wait for acknowledgements.
type waiting struct {
	w       *world
	count   int
	results chan error
}

// startWaiting has clients write, past every Service, and returns when all wait.
func (w *world) startWaiting(primary string) *waiting {
	w.t.Helper()
	const count = 8
	db := w.openInstance(primary)
	db.SetMaxIdleConns(count + 1)
	wt := &waiting{w: w, count: count, results: make(chan error, count)}
	step := w.t.Name()
	for range count {
		conn, err := db.Conn(w.ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		go func() {
			_, err := conn.ExecContext(w.ctx, "INSERT INTO app.waits (step) VALUES (?)", step)
			wt.results <- err
		}()
	}
	wt.allWait(db)
	return wt
}

// allWait returns when every client's statement is being carried out, and the first
// of them waits for acknowledgements. (The others stand behind it in the commit.)
func (wt *waiting) allWait(db *sql.DB) {
	wt.w.t.Helper()
	running, waits := 0, 0
	err := wait.PollUntilContextTimeout(wt.w.ctx, 20*time.Millisecond, 10*time.Second, true,
		func(ctx context.Context) (bool, error) {
			err := db.QueryRowContext(ctx, `SELECT COUNT(*),
				COALESCE(SUM(state LIKE 'Waiting for semi-sync ACK%'), 0) FROM information_schema.processlist
			WHERE info LIKE 'INSERT INTO app.waits%'`).Scan(&running, &waits)
			return running == wt.count && waits > 0, err
		})
	if err != nil {
		wt.w.t.Fatalf("of %d clients %d have their statement carried out and %d wait (%d have an answer): %v", wt.count,
			running, waits, len(wt.results), err)
	}
}

// succeeded waits until every client has its answer and counts the successes.
func (wt *waiting) succeeded(within time.Duration) int {
	wt.w.t.Helper()
	n, errs := 0, map[string]int{}
	deadline := time.After(within)
	for range wt.count {
		select {
		case err := <-wt.results:
			if err == nil {
				n++
			} else {
				errs[err.Error()]++
			}
		case <-deadline:
			wt.w.t.Fatalf("after %s clients still wait for their answer", within)
		}
	}
	wt.w.t.Logf("%d of %d read success; errors: %v", n, wt.count, errs)
	return n
}

// nobodySucceeded: the silent replica has nothing of what was written.
func (wt *waiting) nobodySucceeded(within time.Duration) {
	wt.w.t.Helper()
	if n := wt.succeeded(within); n > 0 {
		wt.w.t.Errorf("I2: %d clients read success for what too few replicas hold", n)
	}
}

// hang stops the mysqld of an instance until the function that it returns is called,
// or the test ends.
func (w *world) hang(instance string) (goOn func()) {
	w.t.Helper()
	pid, err := bed.MysqldPID(w.ctx, w.key, instance)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGSTOP)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	goOn = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	w.t.Cleanup(goOn)
	return goOn
}

// waitingIsReleased: the commits of the other steps wait for nothing else.
func (w *world) waitingIsReleased() {
	goOn := w.hang(w.replica())
	wt := w.startWaiting(w.primary())
	goOn()
	if n := wt.succeeded(10 * time.Second); n != wt.count {
		w.t.Errorf("%d of %d clients read success once all replicas answer", n, wt.count)
	}
	w.healthy(time.Minute)
}

func (w *world) waitingDuringSwitchover() {
	replicas, old := w.replicas(), w.primary()
	goOn := w.hang(replicas[0])
	wt := w.startWaiting(old)
	w.switchTo(replicas[1])
	wt.nobodySucceeded(20 * time.Second)
	w.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary == replicas[1] })
	goOn()
	w.healthy(2 * time.Minute)
}

func (w *world) waitingWhenPodDeleted() {
	replicas, old := w.replicas(), w.pod(w.primary())
	goOn := w.hang(replicas[0])
	wt := w.startWaiting(old.Name)
	w.deletePod(old.Name)
	wt.nobodySucceeded(20 * time.Second)
	w.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary == replicas[1] })
	goOn()
	w.replaced(old, time.Minute)
	w.healthy(2 * time.Minute)
}

// waitingUntilMaxStopDelay: nobody can take over, until the time to stop has run out.
func (w *world) waitingUntilMaxStopDelay() {
	old := w.pod(w.primary())
	replicas := w.replicas()
	goOn := []func(){w.hang(replicas[0]), w.hang(replicas[1])}
	wt := w.startWaiting(old.Name)
	w.deletePod(old.Name)
	wt.nobodySucceeded(time.Minute)
	for _, f := range goOn {
		f()
	}
	w.replaced(old, 2*time.Minute)
	w.healthy(2 * time.Minute)
}

func (w *world) waitingWhenFenced() {
	primary := w.primary()
	goOn := w.hang(w.replica())
	wt := w.startWaiting(primary)
	w.kubectl("-n", w.key.Namespace, "annotate", "pod", primary, "cnmsql.cnmsql.co/fencing=on")
	wt.nobodySucceeded(20 * time.Second)
	w.becomes(20*time.Second, func(c *v1alpha1.Cluster) bool {
		return len(c.Status.FencedInstances) == 1 && strings.Contains(c.Status.PhaseReason, "fenced")
	})
	w.becomes(30*time.Second, isFenced(primary))
	goOn()
	w.kubectl("-n", w.key.Namespace, "annotate", "pod", primary, "cnmsql.cnmsql.co/fencing-")
	w.healthy(2 * time.Minute)
}

// waitingWhenCutOff: the clients are on the primary's side of the partition.
func (w *world) waitingWhenCutOff() {
	w.awayFromOperator()
	old := w.primary()
	node := w.pod(old).Spec.NodeName
	w.fault("partition", node+" --from nodes")
	w.fault("partition", node+" --from api")
	wt := w.startWaiting(old)
	wt.nobodySucceeded(30 * time.Second)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary != old })
	w.fault("heal", node)
	w.healthy(3 * time.Minute)
}

// rollingRestart restarts one instance after the other for a parameter that the
// server reads at its start only.
func (w *world) rollingRestart() {
	l := w.startWritingOn(connections)
	w.apply(bothMustAcknowledge + "    parameters: {back_log: \"200\"}\n")
	w.healthy(3 * time.Minute)
	if got := w.ask(w.open("rw"), "SELECT @@GLOBAL.back_log"); got != "200" {
		w.t.Errorf("back_log is %s on the primary", got)
	}
	l.stopAndLoseNothing()
	l.sameEverywhere()
}
