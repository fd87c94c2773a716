package operator

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// told is a Cluster whose status says what an instance reports of a restore.
func told(c *v1alpha1.Cluster, r core.Report) *v1alpha1.Cluster {
	next, now := c.DeepCopy(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	describeRestore(&next.Status, c, core.Observation{Now: now, Cluster: core.Cluster{FirstData: core.OriginRestored},
		Instances: []core.Instance{{Name: "c-1", Report: core.Known(r, now, now)}}})
	return next
}

func TestTheStatusFollowsARestoreByPercents(t *testing.T) {
	r := core.Report{State: core.Restoring, Restore: &core.Restore{Backup: "b2", Stage: core.RestoreFiles,
		Files: core.Amount{Done: 100, Of: 10000, PerSecond: 7}}}
	c := told(&v1alpha1.Cluster{}, r)
	if b := c.Status.Restore.Backup; b.Percent != "1%" || b.Bytes != 100 || b.BytesPerSecond != 7 {
		t.Errorf("it says %+v", b)
	}
	r.Restore.Files.Done = 150
	if again := told(c, r); again.Status.Restore.Backup.Bytes != 100 {
		t.Error("the status is written for less than a percent")
	}
	r.Restore.Stage, r.Restore.Files.Done, r.Restore.Part = core.RestoreReplay, 10000, "1/2"
	r.Restore.Replay = core.Amount{Done: 30, Of: 60, Ends: time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)}
	c = told(c, r)
	if a := c.Status.Restore.Archive; a.Percent != "50%" || a.LastPart != "1/2" || a.ExpectedEnd == nil {
		t.Errorf("it says %+v", a)
	}
	c = told(c, core.Report{State: core.Failed})
	if is := c.Status.Restore; is.Stage != v1alpha1.RestoreWaiting || is.Archive.ExpectedEnd != nil {
		t.Errorf("of a restore that could not go on, it says %+v", is)
	}
	r.Restore.Stage, r.Restore.Lacking = core.RestoreDone, []string{"shop.sessions"}
	c = told(told(c, r), core.Report{State: core.Failed})
	if c.Status.Restore.Stage != v1alpha1.RestoreCompleted {
		t.Error("a failure long after it is told as one of the restore")
	}
	if got := c.Status.Restore.LackingTables; len(got) != 1 || got[0] != "shop.sessions" {
		t.Errorf("tables that lack rows are %q", got)
	}
	none := told(&v1alpha1.Cluster{}, core.Report{State: core.Running}).Status
	if none.Restore != nil || len(none.Conditions) > 0 {
		t.Error("a Cluster that restores nothing says how it does")
	}
}

func TestABackupThatIsPassedOverIsToldOnce(t *testing.T) {
	recorder := &events.FakeRecorder{Events: make(chan string, 9)}
	registry := prometheus.NewRegistry()
	r := &Reconciler{Recorder: recorder, Metrics: NewMetrics(registry)}
	report := core.Report{State: core.Restoring, Restore: &core.Restore{Backup: "b1", Stage: core.RestoreFiles}}
	plain := told(&v1alpha1.Cluster{}, report)
	r.tellRestore(plain, nil)
	said := plain.Status.Conditions
	if len(recorder.Events) > 0 || !meta.IsStatusConditionTrue(said, v1alpha1.ConditionNewestRestored) {
		t.Error("the newest backup is told as if it were not")
	}
	report.Restore.PassedOver = []core.PassedOver{{Backup: "b2", Reason: "PartMissing"}}
	c := told(plain, report)
	r.tellRestore(c, plain.Status.Conditions)
	r.tellRestore(c, c.Status.Conditions)
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events", len(recorder.Events))
	}
	text := <-recorder.Events
	if !strings.Contains(text, "Warning BackupPassedOver") || !strings.Contains(text, "b2: PartMissing") {
		t.Error(text)
	}
	counted, err := registry.Gather()
	if err != nil || len(counted) != 1 || counted[0].GetMetric()[0].GetCounter().GetValue() != 1 {
		t.Errorf("it counts %v, %v", counted, err)
	}
	cond := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionNewestRestored)
	if cond == nil || cond.Reason != string(core.ReasonBackupPassedOver) {
		t.Errorf("the condition is %+v", cond)
	}
}
