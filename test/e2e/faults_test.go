//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/api/v1alpha1"
)

// endsWell: the cluster is healthy again by itself, nothing is lost, and all
// instances hold the same.
func (l *load) endsWell(within time.Duration) {
	l.w.t.Helper()
	l.w.healthy(within)
	l.ackedAfter(time.Now(), 10*time.Second)
	l.stopAndLoseNothing()
	l.sameEverywhere()
}

// hangLimit is how long writes may be refused when mysqld hangs or goes with its manager, on a machine that is
// busy with other tests.
const hangLimit = 15 * time.Second

func (w *world) mysqldOfPrimaryHangs() {
	old := w.primary()
	l := w.startWriting()
	at := w.signal(old, "mysqld", syscall.SIGSTOP)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writable %s after mysqld began to hang, by %s", outage, w.proof())
	if outage > hangLimit {
		w.t.Errorf("at most %s is wanted", hangLimit)
	}
	w.moved(old, time.Minute)
	l.endsWell(time.Minute)
}

func (w *world) managerOfPrimaryKilled() {
	old := w.primary()
	before := w.pod(old).Status.ContainerStatuses[0].RestartCount
	l := w.startWriting()
	at := w.signal(old, "cnmsql", syscall.SIGKILL)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writable %s after the manager was killed", outage)
	if outage > hangLimit {
		w.t.Errorf("at most %s is wanted", hangLimit)
	}
	w.restarted(old, before+1, "")
	l.endsWell(2 * time.Minute)
}

// stoppedLimit is how long the kubelet may take to end a container of which the manager does
// not answer: six probes 5 s apart, each of which may take a while, and 5 s of grace.
const stoppedLimit = 90 * time.Second

// managerOfPrimaryStopped: a manager that is stopped cannot fence its mysqld. The kubelet ends
// the container, and another instance takes over or the same one comes back.
func (w *world) managerOfPrimaryStopped() {
	old := w.primary()
	l := w.startWriting()
	before := w.pod(old).Status.ContainerStatuses[0].RestartCount
	at := w.signal(old, "cnmsql", syscall.SIGSTOP)
	w.restartedWithin(stoppedLimit, old, before+1, "")
	w.t.Logf("the container was ended %s after its manager was stopped", time.Since(at))
	w.t.Logf("writable %s later, by %s", l.ackedAfter(time.Now(), time.Minute), w.proof())
	l.endsWell(2 * time.Minute)
}

// restarted waits until the container of an instance was started that often again,
// the last time for that reason if one is given.
func (w *world) restarted(instance string, times int32, reason string) {
	w.t.Helper()
	w.restartedWithin(time.Minute, instance, times, reason)
}

func (w *world) restartedWithin(limit time.Duration, instance string, times int32, reason string) {
	w.t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, limit, true, func(context.Context) (bool, error) {
		for _, s := range w.pod(instance).Status.ContainerStatuses {
			if t := s.LastTerminationState.Terminated; t != nil {
				last = fmt.Sprintf("%d restarts, the last for %s", s.RestartCount, t.Reason)
				return s.RestartCount >= times && (reason == "" || t.Reason == reason), nil
			}
		}
		return false, nil
	})
	if err != nil {
		w.t.Errorf("%s: %s; wanted %d for %q", instance, last, times, reason)
	}
}

// primaryOutOfMemory eats up the memory of the container; the kernel takes the manager.
func (w *world) primaryOutOfMemory() {
	old := w.primary()
	pid, err := bed.PID(w.ctx, w.key, old, "cnmsql")
	if err == nil {
		err = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), []byte("1000"), 0)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	before := w.pod(old).Status.ContainerStatuses[0].RestartCount
	l := w.startWriting()
	at := time.Now()
	eater := exec.Command("sh", "-c", "echo $$ > "+w.memoryGroup(pid)+"/cgroup.procs && exec tail /dev/zero")
	if err := eater.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _, _ = eater.Process.Kill(), eater.Wait() })
	w.restarted(old, before+1, "OOMKilled")
	w.t.Logf("writable %s after memory began to run out", l.ackedAfter(at, time.Minute))
	l.endsWell(2 * time.Minute)
}

// memoryGroup is the control group that limits the memory of a process.
func (w *world) memoryGroup(pid int) string {
	w.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		w.t.Fatal(err)
	}
	unified := ""
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case parts[1] == "memory":
			return "/sys/fs/cgroup/memory" + parts[2]
		case parts[0] == "0":
			unified = "/sys/fs/cgroup" + parts[2]
		}
	}
	return unified
}

func (w *world) primaryAndReplicaKilled() {
	l := w.startWriting()
	primary, replica := w.primary(), w.replica()
	w.killMysqld(replica)
	at := w.killMysqld(primary)
	w.t.Logf("writable %s after both were killed", l.ackedAfter(at, time.Minute))
	l.endsWell(2 * time.Minute)
}

// twoFailuresInARow: the second primary goes the moment it takes writes.
func (w *world) twoFailuresInARow() {
	l := w.startWriting()
	first := w.primary()
	at := w.killMysqld(first)
	l.ackedAfter(at, time.Minute)
	second := w.cluster().Status.Promotion.Instance
	at = w.killMysqld(second)
	w.t.Logf("writable %s after %s and then %s were killed", l.ackedAfter(at, time.Minute), first, second)
	l.endsWell(2 * time.Minute)
}

// replicasLagFarBehind: what was acknowledged is in relay logs that nobody has
// applied when the primary dies. Whoever takes over applies all of it first.
func (w *world) replicasLagFarBehind() {
	l := w.startWritingOn(connections)
	w.haveTheTable()
	var unlock []func()
	for _, replica := range w.replicas() {
		unlock = append(unlock, w.holdUpApplier(replica))
	}
	l.ackedAfter(time.Now().Add(8*time.Second), time.Minute)
	behind := w.ask(w.openInstance(w.replica()), "SELECT COUNT(*) FROM app.writer_rows WHERE run = '"+l.Run()+"'")
	old := w.primary()
	at := w.killMysqld(old)
	// The one that takes over closes the session that locks the table.
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.CurrentPrimary != old })
	for _, f := range unlock {
		f()
	}
	w.t.Logf("of %d acknowledged rows a replica had applied %s; writable %s after the crash", l.Snapshot().Acknowledged,
		behind, l.ackedAfter(at, 2*time.Minute))
	l.endsWell(2 * time.Minute)
}

// haveTheTable waits until the replicas have the table to which clients write.
func (w *world) haveTheTable() {
	w.t.Helper()
	w.caughtUpWith(w.ask(w.open("rw"), "SELECT @@GLOBAL.gtid_executed"))
}

// holdUpApplier locks the writer's table on a replica, until the function that it
// returns is called or the session is closed: what is received cannot be applied.
func (w *world) holdUpApplier(replica string) (letGo func()) {
	w.t.Helper()
	conn, err := w.openInstance(replica).Conn(w.ctx)
	if err == nil {
		_, err = conn.ExecContext(w.ctx, "LOCK TABLES app.writer_rows READ")
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() { _, _ = conn.ExecContext(w.ctx, "UNLOCK TABLES") }
}

// allKilled: every mysqld at once. The positions of all are known, so that the most
// advanced goes on.
func (w *world) allKilled() {
	l := w.startWriting()
	at := time.Now()
	for _, name := range w.cluster().Status.InstanceNames {
		w.killMysqld(name)
	}
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after every mysqld was killed", outage)
	if outage > startLimit {
		w.t.Errorf("at most %s is wanted", startLimit)
	}
	l.endsWell(2 * time.Minute)
}

// allPodsDeleted without a goodbye, the primary's last.
func (w *world) allPodsDeleted() {
	l := w.startWriting()
	var old []*corev1.Pod
	for _, name := range append(w.replicas(), w.primary()) {
		old = append(old, w.pod(name))
		w.kubectl("-n", w.key.Namespace, "delete", "pod", name, "--grace-period=0", "--force", "--wait=false")
	}
	at := time.Now()
	for _, pod := range old {
		w.replaced(pod, time.Minute)
	}
	w.t.Logf("writable %s after every Pod was deleted by force", l.ackedAfter(at, 3*time.Minute))
	l.endsWell(3 * time.Minute)
}

// TestFullOutage takes the power of all nodes, and gives it back to one after the
// other, the former primary's last.
func TestFullOutage(t *testing.T) {
	onlyInAll(t)
	w := newWorld(t, "outage")
	w.apply(quorumSpec)
	w.healthy(3 * time.Minute)
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	primary := w.primary()
	nodes := []string{w.pod(w.replicas()[1]).Spec.NodeName, w.pod(w.replicas()[0]).Spec.NodeName,
		w.pod(primary).Spec.NodeName}
	for _, node := range nodes {
		w.fault("poweroff", node)
	}
	at := time.Now()
	w.fault("poweron", nodes[0])
	// One of three knows of too little, and says so.
	c := w.becomes(4*time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase == "Blocked" })
	t.Logf("one node back, %s after the outage began: %s", time.Since(at), c.Status.PhaseReason)
	if !strings.Contains(c.Status.PhaseReason, "Bring ") && !strings.Contains(c.Status.PhaseReason, "no proof") {
		t.Errorf("the refusal does not say what to do: %s", c.Status.PhaseReason)
	}
	w.fault("poweron", nodes[1])
	t.Logf("two nodes back: writable %s after that, by %s", l.ackedAfter(time.Now(), 4*time.Minute), w.proof())
	w.fault("poweron", nodes[2])
	l.endsWell(4 * time.Minute)
}
