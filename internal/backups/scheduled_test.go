package backups

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/testapi"
)

var scheduleKey = types.NamespacedName{Namespace: "ns", Name: "nightly"}

// scheduleWorld is an API server, and the reconciler of ScheduledBackups on it.
type scheduleWorld struct {
	*testapi.Server
	r *ScheduledReconciler
}

func newScheduleWorld(t *testing.T, objs ...client.Object) *scheduleWorld {
	t.Helper()
	w := &scheduleWorld{Server: testapi.New(t, scheduleDay, objs...)}
	w.r = &ScheduledReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	return w
}

// look reconciles once, and returns when it wants to be woken.
func (w *scheduleWorld) look() time.Duration {
	w.Helper()
	result, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: scheduleKey})
	if err != nil && !errors.Is(err, testapi.ErrDown) {
		w.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *scheduleWorld) at(clock string) *scheduleWorld {
	w.Helper()
	w.Clock = moment(w.T, clock)
	return w
}

func (w *scheduleWorld) schedule() *v1alpha1.ScheduledBackup {
	w.Helper()
	var sb v1alpha1.ScheduledBackup
	w.Aside(func() error { return w.Get(w.Context(), scheduleKey, &sb) })
	return &sb
}

func (w *scheduleWorld) edit(change func(*v1alpha1.ScheduledBackup)) {
	w.Helper()
	sb := w.schedule()
	change(sb)
	w.Aside(func() error { return w.Update(w.Context(), sb) })
}

func (w *scheduleWorld) backups() []v1alpha1.Backup {
	w.Helper()
	var all v1alpha1.BackupList
	w.Aside(func() error { return w.List(w.Context(), &all) })
	return all.Items
}

func (w *scheduleWorld) end(phase string) {
	w.Helper()
	for _, b := range w.backups() {
		if b.Status.Phase == "" {
			b.Status.Phase = phase
			w.Aside(func() error { return w.Status().Update(w.Context(), &b) })
		}
	}
}

func (w *scheduleWorld) expectBackups(times ...string) {
	w.Helper()
	var got []string
	for _, b := range w.backups() {
		got = append(got, strings.TrimPrefix(b.Name, "nightly-"))
	}
	if !slices.Equal(got, times) {
		w.Fatalf("there are %v, not %v; status %+v", got, times, w.schedule().Status)
	}
}

// expectTold holds the events since the last time against words that are in them, in order.
func (w *scheduleWorld) expectTold(words ...string) {
	w.Helper()
	if got := w.Events(); !slices.EqualFunc(got, words, strings.Contains) {
		w.Fatalf("told is %q, not %q", got, words)
	}
}

func (w *scheduleWorld) expectProblem(word string) {
	w.Helper()
	got := w.schedule().Status.Problem
	if word == "" && got != "" || !strings.Contains(got, word) {
		w.Fatalf("the problem is %q, not %q", got, word)
	}
}

// aSchedule of every night at 02:30, made at scheduleDay.
func aSchedule() *v1alpha1.ScheduledBackup {
	sb := &v1alpha1.ScheduledBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly", UID: "schedule",
		CreationTimestamp: metav1.NewTime(scheduleDay), Labels: map[string]string{"team": "a"}}}
	sb.Spec.Cluster.Name, sb.Spec.Schedule, sb.Spec.BackupOwnerReference = "c", "0 30 2 * * *", v1alpha1.BackupOwnerSelf
	sb.Spec.Target = v1alpha1.TargetPrimary
	sb.Spec.JobTemplate = &v1alpha1.JobTemplate{PriorityClassName: "low"}
	return sb
}

func aScheduleOwnedBy(owner string) *v1alpha1.ScheduledBackup {
	sb := aSchedule()
	sb.Spec.BackupOwnerReference = owner
	return sb
}

func theCluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "cluster"}}
}

func TestADueSlotBecomesABackup(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	if wake := w.look(); wake != 10*time.Minute {
		t.Errorf("wakes after %s", wake)
	}
	w.at("2026-11-22T02:30:00Z").look()
	w.expectBackups("20261122023000")
	w.expectTold("Normal BackupScheduled Backup nightly-20261122023000")
	b := w.backups()[0]
	labels := map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelScheduledBackup: "nightly"}
	if !apiequality.Semantic.DeepEqual(b.Labels, labels) || len(b.Annotations) > 0 {
		t.Errorf("labels %v, annotations %v", b.Labels, b.Annotations)
	}
	spec := v1alpha1.BackupSpec{Cluster: aSchedule().Spec.Cluster, BackupWishes: aSchedule().Spec.BackupWishes}
	if !apiequality.Semantic.DeepEqual(b.Spec, spec) {
		t.Errorf("spec %+v", b.Spec)
	}
	if o := metav1.GetControllerOf(&b); o == nil || o.Kind != "ScheduledBackup" || o.UID != "schedule" {
		t.Errorf("the controller is %+v", o)
	}
	st := w.schedule().Status
	now, tomorrow := metav1.NewTime(w.Clock), metav1.NewTime(w.Clock.AddDate(0, 0, 1))
	want := v1alpha1.ScheduledBackupStatus{LastCheckTime: &now, LastScheduleTime: &now,
		NextScheduleTime: &tomorrow, LastBackup: b.Name}
	if !apiequality.Semantic.DeepEqual(st, want) {
		t.Errorf("status %+v", st)
	}
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	w.end(v1alpha1.BackupCompleted)
	w.Writes = nil
	for _, clock := range []string{"2026-11-22T02:30:01Z", "2026-11-22T09:00:00Z", "2026-11-23T02:29:59Z"} {
		w.at(clock).look()
	}
	if len(w.Writes) > 0 {
		t.Errorf("written is %v", w.Writes)
	}
}

func TestTheEndOfABackupLetsTheNextOneGo(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	w.expectTold("BackupScheduled")
	for _, clock := range []string{"2026-11-23T02:30:00Z", "2026-11-23T09:00:00Z", "2026-11-24T02:30:00Z"} {
		w.at(clock).look()
	}
	w.expectTold("Warning BackupHeldBack Backup nightly-20261122023000 has not ended")
	w.expectProblem("has not ended")
	w.end(v1alpha1.BackupFailed)
	w.look()
	w.expectBackups("20261122023000", "20261124023000")
	w.expectProblem("")
}

func TestWhoOwnsTheBackups(t *testing.T) {
	w := newScheduleWorld(t, aScheduleOwnedBy(v1alpha1.BackupOwnerNone))
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	if b := w.backups()[0]; len(b.OwnerReferences) > 0 {
		t.Errorf("owners are %+v", b.OwnerReferences)
	}
	w = newScheduleWorld(t, aScheduleOwnedBy(v1alpha1.BackupOwnerCluster), theCluster())
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	if o := w.backups()[0].OwnerReferences; len(o) != 1 || o[0].UID != "cluster" || o[0].Kind != "Cluster" ||
		o[0].Controller != nil {
		t.Errorf("owners are %+v", o)
	}
}

func TestAClusterThatIsToOwnIsAwaited(t *testing.T) {
	going := theCluster()
	going.DeletionTimestamp, going.Finalizers = new(metav1.NewTime(scheduleDay)), []string{"x/y"}
	for word, objs := range map[string][]client.Object{"does not exist": nil, "is being deleted": {going}} {
		w := newScheduleWorld(t, append(objs, aScheduleOwnedBy(v1alpha1.BackupOwnerCluster))...)
		w.look()
		w.at("2026-11-22T02:30:00Z").look()
		w.at("2026-11-22T02:31:00Z").look()
		w.expectBackups()
		w.expectTold("Warning BackupHeldBack Cluster c " + word)
		w.expectProblem(word)
		if objs != nil {
			continue
		}
		w.Aside(func() error { return w.Create(t.Context(), theCluster()) })
		w.look()
		w.expectBackups("20261122023000")
		w.expectProblem("")
	}
}

func TestAnInvalidScheduleIsToldAndMended(t *testing.T) {
	sb := aSchedule()
	sb.Spec.Schedule = "30 2 * * *"
	w := newScheduleWorld(t, sb)
	w.look()
	w.at("2026-11-22T09:00:00Z").look()
	w.expectBackups()
	w.expectTold(`Warning ScheduleInvalid spec.schedule "30 2 * * *" has five fields`)
	w.expectProblem(`"0 30 2 * * *"`)
	w.edit(func(sb *v1alpha1.ScheduledBackup) {
		sb.Spec.Schedule, sb.Spec.TimeZone = "0 30 2 * * *", "Europe/Paradise"
	})
	w.look()
	w.expectTold("Warning ScheduleInvalid spec.timeZone")
	w.edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.TimeZone = "Europe/Berlin" })
	w.look()
	w.expectProblem("")
	w.at("2026-11-23T01:30:00Z").look()
	w.expectBackups("20261123013000")
}

func TestASuspendedScheduleIsLeftAloneButTidied(t *testing.T) {
	sb := aSchedule()
	sb.Spec.SuccessfulBackupsHistoryLimit = new(int32)
	w := newScheduleWorld(t, sb)
	w.look()
	w.at("2026-11-22T02:30:00Z").look()
	w.edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.Suspend = true })
	w.end(v1alpha1.BackupCompleted)
	w.look()
	w.expectBackups("20261122023000") // the last one stays, whatever the limit
	w.at("2026-11-25T02:30:00Z").look()
	w.edit(func(sb *v1alpha1.ScheduledBackup) { sb.Spec.Suspend = false })
	w.look()
	w.expectBackups("20261122023000")
	w.at("2026-11-26T02:30:00Z").look()
	w.end(v1alpha1.BackupCompleted)
	w.look()
	w.expectBackups("20261126023000")
}

func TestABackupOfTheNameThatSomebodyElseMadeIsLeftAlone(t *testing.T) {
	for name, owners := range map[string][]metav1.OwnerReference{
		"no label": nil, "another controller": {{APIVersion: "v1", Kind: "X", Name: "x", UID: "x",
			Controller: new(true)}},
	} {
		foreign := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "nightly-20261122023000",
			OwnerReferences: owners}}
		if owners != nil {
			foreign.Labels = map[string]string{v1alpha1.LabelScheduledBackup: "nightly"}
		}
		w := newScheduleWorld(t, aSchedule(), foreign)
		w.look()
		w.at("2026-11-22T02:30:00Z").look()
		w.at("2026-11-22T03:30:00Z").look()
		w.expectTold("Warning BackupHeldBack Backup nightly-20261122023000 exists")
		w.expectProblem("did not make it")
		w.at("2026-11-23T02:30:00Z").look()
		w.expectBackups("20261122023000", "20261123023000")
		w.expectProblem("")
		if b := w.backups()[0]; b.Spec.Cluster.Name != "" || b.UID != foreign.UID {
			t.Errorf("%s: it was changed: %+v", name, b)
		}
	}
}

func TestWhatKubernetesRefusesIsTold(t *testing.T) {
	w := newScheduleWorld(t, aSchedule())
	w.look()
	w.Refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, "x", errors.New("exceeded quota"))
	if wake := w.at("2026-11-22T02:30:00Z").look(); wake != time.Minute {
		t.Errorf("wakes after %s", wake)
	}
	w.at("2026-11-22T02:31:00Z").look()
	w.expectTold("Warning BackupHeldBack Backup nightly-20261122023000 is refused")
	w.expectProblem("exceeded quota")
	w.Refuse = nil
	w.look()
	w.expectBackups("20261122023000")
	w.expectProblem("")
}

func TestHistoryLimitsDeleteOnlyWhatTheScheduleMade(t *testing.T) {
	sb := aSchedule()
	sb.Spec.SuccessfulBackupsHistoryLimit, sb.Spec.FailedBackupsHistoryLimit = new(int32(1)), new(int32(0))
	objs := []client.Object{sb}
	for i, phase := range []string{"Completed", "Failed", "Running", "Completed", "Completed", "Failed"} {
		b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("nightly-%d", i),
			UID:               types.UID(fmt.Sprint(i)),
			CreationTimestamp: metav1.NewTime(scheduleDay.Add(time.Duration(i) * time.Hour))}}
		b.Status.Phase = phase
		if b.Labels = map[string]string{v1alpha1.LabelScheduledBackup: "nightly"}; i == 5 {
			b.Labels = nil // a user's
		}
		objs = append(objs, b)
	}
	w := newScheduleWorld(t, objs...)
	w.look()
	w.expectBackups("2", "4", "5")
}

func TestAScheduleThatIsGoingDoesNothing(t *testing.T) {
	sb := aSchedule()
	sb.DeletionTimestamp, sb.Finalizers = new(metav1.NewTime(scheduleDay)), []string{"x/y"}
	sb.Spec.Immediate = true
	w := newScheduleWorld(t, sb)
	w.look()
	if len(w.Writes) > 0 {
		t.Errorf("written is %v", w.Writes)
	}
	w = newScheduleWorld(t)
	w.look()
}

// Whichever call fails, before or after it was carried out, every slot has its Backup once
// in the end, the status knows the last one, and history is kept.
func TestWhicheverCallFailsEverySlotIsMadeOnce(t *testing.T) {
	nights := []string{"2026-11-21T10:20:31Z", "2026-11-22T02:30:00Z", "2026-11-23T02:30:00Z", "2026-11-24T02:30:00Z"}
	run := func(failAt int, late bool) *scheduleWorld {
		sb := aScheduleOwnedBy(v1alpha1.BackupOwnerCluster)
		sb.Spec.Immediate, sb.Spec.SuccessfulBackupsHistoryLimit = true, new(int32(2))
		w := newScheduleWorld(t, sb, theCluster())
		w.FailAt, w.Late = failAt, late
		made := map[types.UID]string{}
		for _, night := range nights {
			w.at(night)
			for range 3 {
				w.look()
			}
			for _, b := range w.backups() {
				made[types.UID(b.Name+b.CreationTimestamp.String())] = b.Name
			}
			w.end(v1alpha1.BackupCompleted)
		}
		w.look()
		w.look()
		w.expectBackups("20261123023000", "20261124023000")
		if st := w.schedule().Status; len(made) != 4 || st.LastBackup != "nightly-20261124023000" || st.Problem != "" {
			t.Fatalf("call %d fails (carried out: %t): made are %v; status %+v", failAt, late, made, st)
		}
		return w
	}
	clean := run(0, false)
	if n := len(clean.Writes); n != 10 { // 4 Backups, a status for each, 2 deleted
		t.Errorf("written is %v", clean.Writes)
	}
	for n := 1; n <= clean.Calls; n++ {
		run(n, false)
		run(n, true)
	}
}

func TestWhoIsWoken(t *testing.T) {
	other := aSchedule()
	other.Name, other.Spec.Cluster.Name = "other", "d"
	w := newScheduleWorld(t, aSchedule(), other)
	if got := w.r.schedulesFor(t.Context(), theCluster()); len(got) != 1 || got[0].NamespacedName != scheduleKey {
		t.Errorf("a Cluster wakes %v", got)
	}
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x"}}
	if got := scheduleOf(t.Context(), b); len(got) > 0 {
		t.Errorf("a user's Backup wakes %v", got)
	}
	b.Labels = map[string]string{v1alpha1.LabelScheduledBackup: "nightly"}
	if got := scheduleOf(t.Context(), b); len(got) != 1 || got[0].NamespacedName != scheduleKey {
		t.Errorf("a Backup wakes %v", got)
	}
}
