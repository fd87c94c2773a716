//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"cnmsql.co/test/testbed"
)

// giveWayLimit is how long writes may wait while the manager of the primary is replaced, on
// a machine whose disk takes in the images of a release meanwhile. That nobody restarted or
// left its group is asked of the processes and of the group.
const giveWayLimit = 5 * time.Second

// managersReplacedInPlace: another release of the operator takes the managers' places, and the one before takes
// them back. No process ends, no Pod changes, no member leaves its group, and nobody waits.
func (w *world) managersReplacedInPlace() {
	w.replacesManagers(true)
	w.healthy(time.Minute)
	before, view, managers := w.lives(), w.cluster().Status.GroupReplication, w.managers()
	w.t.Cleanup(func() {
		if w.t.Failed() { // the tests that follow want the release they know
			_ = bed.Install(w.ctx, testbed.OperatorImage, testbed.MySQLImage)
		}
	})
	l := w.startWriting()
	for _, release := range []func(context.Context) error{
		func(ctx context.Context) error { return bed.Release(ctx, "localhost/cnmsql/operator:next") },
		func(ctx context.Context) error { return bed.Install(ctx, testbed.OperatorImage, testbed.MySQLImage) },
	} {
		old := w.binaries(managers)
		if err := release(w.ctx); err != nil {
			w.t.Fatal(err)
		}
		begun := time.Now()
		w.awaitOtherBinaries(managers, old)
		w.t.Logf("all managers were replaced %s after the operator was there", time.Since(begun))
		w.healthy(time.Minute)
	}
	report := l.stopAndLoseNothing()
	w.t.Logf("longest gap: %s", report.LongestGap.Duration())
	if gap := report.LongestGap.Duration(); gap > giveWayLimit {
		w.t.Errorf("writes waited %s", gap)
	}
	if after := w.lives(); !maps.Equal(before, after) {
		w.t.Errorf("before there were\n%v\nand after\n%v", before, after)
	}
	if g := w.cluster().Status.GroupReplication; g != nil && g.ViewID != view.ViewID {
		w.t.Errorf("the group's view was %s and is %s: somebody left it", view.ViewID, g.ViewID)
	}
	w.eventSays("ManagerReplaced")
	w.replacesManagers(false)
}

// replacesManagers says whether the operator may replace managers without restarting anything.
func (w *world) replacesManagers(inPlace bool) {
	w.t.Helper()
	w.kubectl("-n", w.key.Namespace, "patch", "cluster", w.key.Name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"inPlaceInstanceManagerUpdates":%t}}`, inPlace))
}

// lives tells by instance which Pod, container, manager and mysqld it is.
func (w *world) lives() map[string]string {
	out := map[string]string{}
	for _, name := range w.cluster().Status.InstanceNames {
		pod := w.pod(name)
		out[name] = fmt.Sprintf("Pod %s, restarted %d times, manager %d, mysqld %d", pod.UID,
			pod.Status.ContainerStatuses[0].RestartCount, w.pid(name, "cnmsql"), w.pid(name, "mysqld"))
	}
	return out
}

// managers tells by instance which process its manager is. It stays that while its binary
// is replaced; only its name does not.
func (w *world) managers() map[string]int {
	out := map[string]int{}
	for _, name := range w.cluster().Status.InstanceNames {
		out[name] = w.pid(name, "cnmsql")
	}
	return out
}

// binaries tells by instance which file its manager runs from. A process that is just being
// given another binary has none for a moment (proc(5): its first thread has ended).
func (w *world) binaries(managers map[string]int) map[string]string {
	out := map[string]string{}
	for name, pid := range managers {
		file, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}
		out[name] = file
	}
	return out
}

func (w *world) awaitOtherBinaries(managers map[string]int, old map[string]string) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.ctx, 100*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) {
			for name, file := range w.binaries(managers) {
				if file == "" || file == old[name] {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		w.t.Fatalf("the managers ran from %v and run from %v: %v", old, w.binaries(managers), err)
	}
}

func (w *world) pid(name, program string) int {
	w.t.Helper()
	pid, err := bed.PID(w.ctx, w.key, name, program)
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}
