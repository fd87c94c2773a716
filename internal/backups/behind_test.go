package backups

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

func TestOneThatIsNotSeenYetIsNotMadeTwice(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	sb := w.schedule()
	sb.Status = v1alpha1.ScheduledBackupStatus{LastCheckTime: sb.Status.LastCheckTime,
		NextScheduleTime: sb.Status.LastScheduleTime}
	w.Aside(func() error { return w.Status().Update(t.Context(), sb) }) // as if it never was written
	w.Blind = true
	w.look()
	w.Blind = false
	w.expectBackups("20261122023000")
	if st := w.schedule().Status; st.LastBackup != "nightly-20261122023000" {
		t.Errorf("status %+v", st)
	}
}

// behind is a client whose cache has what was there at some time.
type behind struct {
	client.WithWatch
	then client.Reader
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	return b.then.Get(ctx, key, obj, o...)
}

func (b behind) List(ctx context.Context, list client.ObjectList, o ...client.ListOption) error {
	return b.then.List(ctx, list, o...)
}

// remembers has the reconciler read from a cache that has what is there now.
func (w *scheduleWorld) remembers() {
	objs := []client.Object{w.schedule()}
	for _, b := range w.backups() {
		objs = append(objs, &b)
	}
	w.r.Client = behind{w, newScheduleWorld(w.T, objs...)}
}

func TestACacheThatIsBehindMakesNothingTwice(t *testing.T) {
	sb := aSchedule()
	sb.Spec.SuccessfulBackupsHistoryLimit = new(int32)
	w := newScheduleWorld(t, sb)
	w.look()
	w.remembers() // no Backup yet
	w.at("2026-11-22T02:30:00Z").look()
	w.look()
	w.end(v1alpha1.BackupCompleted)
	w.remembers()
	w.at("2026-11-23T02:30:00Z").look()
	w.look()
	w.end(v1alpha1.BackupCompleted)
	w.remembers() // both have ended
	w.look()
	w.look() // the first is gone already
	w.expectBackups("20261123023000")
	w.expectTold("BackupScheduled", "BackupScheduled")

	w = newScheduleWorld(t, sb.DeepCopy())
	w.look()
	w.remembers()
	w.at("2026-11-22T02:30:00Z").look()
	w.Aside(func() error { return w.DeleteAllOf(t.Context(), &v1alpha1.Backup{}, client.InNamespace("ns")) })
	w.look()
	w.expectBackups()
}

func TestAStatusThatIsNotTheNewestIsReadAgain(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	w.look()
	w.remembers()
	w.edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.Suspend = true })
	w.edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.Suspend = false })
	w.r.Client.(behind).then.(*scheduleWorld).edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.Schedule = "never" })
	if wake := w.look(); wake != readAgain {
		t.Errorf("wakes after %s", wake)
	}
	w.expectTold()
}
