//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/test/testbed"
)

// outageLimit is how long writes may be refused after a crash, as the issue of
// the foundation asks for.
const outageLimit = 5 * time.Second

// moved waits until another instance than old is primary and all is well.
func (w *world) moved(old string, within time.Duration) {
	w.t.Helper()
	w.becomes(within, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary != old && c.Status.Phase == "Healthy" && c.Status.ReadyInstances == 3
	})
}

func (w *world) mysqldOfPrimaryKilled() {
	old := w.primary()
	l := w.startWriting()
	at := w.killMysqld(old)
	if outage := l.outageSince(at, time.Minute); outage > outageLimit {
		w.t.Errorf("writable again %s after kill -9; at most %s is wanted", outage, outageLimit)
	}
	w.moved(old, 2*time.Minute)
	l.stopAndLoseNothing()
}

func (w *world) mysqldOfReplicaKilled() {
	primary, replica := w.primary(), w.replica()
	l := w.startWriting()
	w.killMysqld(replica)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.Phase != "Healthy" })
	w.healthy(time.Minute)
	l.stopAndLoseNothing()
	if got := w.primary(); got != primary {
		w.t.Errorf("the primary changed from %s to %s because a replica crashed", primary, got)
	}
}

func (w *world) primaryPodForceDeleted() {
	// A replica that was just away has to receive what it missed before it acknowledges: what
	// is measured is not how far behind the step before has left it.
	w.caughtUpWith(w.settled())
	old := w.pod(w.primary())
	l := w.startWriting()
	at := time.Now()
	w.deletePod(old.Name, client.GracePeriodSeconds(0))
	w.replaced(old, time.Minute)
	outage := l.outageSince(at, time.Minute)
	w.t.Logf("writing %s after the force deletion", outage)
	w.healthy(2 * time.Minute)
	report := l.stopAndLoseNothing()
	if gap := report.LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("nothing could be written for %s; at most %s is wanted", gap, outageLimit)
	}
}

func (w *world) primaryPodDeleted() {
	old := w.pod(w.primary())
	l := w.startWriting()
	w.deletePod(old.Name)
	w.replaced(old, time.Minute)
	w.moved(old.Name, 2*time.Minute)
	report := l.stopAndLoseNothing()
	if gap := report.LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("nothing could be written for %s; at most %s is wanted", gap, outageLimit)
	}
}

func (w *world) switchoverUnderWrites() {
	old, to := w.primary(), w.replica()
	l := w.startWriting()
	l.ackedAfter(time.Now().Add(time.Second), 10*time.Second)
	w.switchTo(to)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && c.Status.Phase == "Healthy"
	})
	l.ackedAfter(time.Now(), 10*time.Second)
	report := l.stopAndLoseNothing()
	v, err := l.VerifyWithin(w.ctx, w.open("rw"), time.Minute)
	if err != nil || len(v.OutOfOrder) > 0 {
		w.t.Errorf("rows are out of order: %v %v", err, v.OutOfOrder)
	}
	if gap := report.LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("a planned switchover from %s to %s stopped writes for %s", old, to, gap)
	}
}

func (w *world) switchoverToNobodyIsRefused() {
	primary := w.primary()
	w.switchTo("nobody-7")
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool { return c.Status.TargetPrimary == primary })
	w.eventSays("TargetUnknown")
	w.healthy(time.Minute)
}

// takenOverLimit is how long writes may be refused when the leading operator is killed in a failover, on a machine
// that is busy with other tests: its Pod is there, and refuses connections, so that its lease has to run out, which
// takes ten seconds.
const takenOverLimit = 25 * time.Second

// operatorKilledDuringFailover kills the leading operator at the first status that tells of the failover: it gives
// its lease back to nobody, and another goes on with what is half done.
func (w *world) operatorKilledDuringFailover() {
	old, leading := w.primary(), w.leading()
	l := w.startWriting()
	killed := w.atTheFirst(func(c *v1alpha1.Cluster) bool {
		return c.Status.Diagnosis != string(core.PrimaryHealthy)
	}, func() { leading.all(syscall.SIGKILL) })
	at := w.killMysqld(old)
	if err := <-killed; err != nil {
		w.t.Fatalf("no status tells of the failover: %v", err)
	}
	w.t.Logf("the operator was killed %s after mysqld", time.Since(at))
	outage := l.outageSince(at, 2*time.Minute)
	w.t.Logf("writable %s after mysqld was killed", outage)
	if outage < 5*time.Second {
		w.t.Log("the failover had been through before the operator was killed: nothing was half done")
	}
	if outage > takenOverLimit {
		w.t.Errorf("at most %s is wanted", takenOverLimit)
	}
	w.healthy(2 * time.Minute)
	l.stopAndLoseNothing()
}

func (w *world) operatorKilledDuringSwitchover() {
	to := w.replica()
	l := w.startWriting()
	w.killOperatorAfter(func() { w.switchTo(to) })
	w.becomes(2*time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == to && c.Status.Phase == "Healthy"
	})
	l.ackedAfter(time.Now(), time.Minute)
	l.stopAndLoseNothing()
}

func (w *world) operatorKilledDuringReclone() {
	l := w.startWriting()
	w.loseVolume(w.replica())
	w.killOperator()
	w.healthy(3 * time.Minute)
	l.stopAndLoseNothing()
}

// statusSetBack: etcd is restored from a backup in which another was the primary. Writes go
// on, and the status is mended by itself.
func (w *world) statusSetBack() {
	past := w.cluster()
	w.switchTo(w.replica())
	w.moved(past.Status.CurrentPrimary, time.Minute)
	now := w.cluster().Status
	l := w.startWriting()
	l.ackedAfter(time.Now(), 10*time.Second)
	w.setBack(past)
	at := time.Now()
	c := w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.PrimaryEpoch > now.PrimaryEpoch && testbed.Healthy(c)
	})
	w.t.Logf("healthy %s after the status was set back from epoch %d to %d", time.Since(at), now.PrimaryEpoch,
		past.Status.PrimaryEpoch)
	if c.Status.CurrentPrimary != now.CurrentPrimary || c.Status.Promotion.Proof != string(core.ProofStatusRestored) {
		w.t.Errorf("%s is the primary by %s; %s was", c.Status.CurrentPrimary,
			c.Status.Promotion.Proof, now.CurrentPrimary)
	}
	w.eventSays(string(core.ReasonStatusRestored))
	l.ackedAfter(time.Now(), 10*time.Second)
	report := l.stopAndLoseNothing()
	if gap := report.LongestGap.Duration(); gap > outageLimit {
		w.t.Errorf("nothing could be written for %s; at most %s is wanted", gap, outageLimit)
	}
}

// setBack replaces the Cluster's status by what it was.
func (w *world) setBack(past *v1alpha1.Cluster) {
	w.t.Helper()
	past = past.DeepCopy()
	past.APIVersion, past.Kind = v1alpha1.GroupVersion.String(), "Cluster"
	past.ResourceVersion, past.ManagedFields = "", nil
	text, err := json.Marshal(past)
	if err != nil {
		w.t.Fatal(err)
	}
	if out, err := bed.Kubectl(w.ctx, bytes.NewReader(text), "-n", w.key.Namespace, "replace", "--subresource=status",
		"-f", "-"); err != nil {
		w.t.Fatalf("setting the status back: %v: %s", err, out)
	}
}
