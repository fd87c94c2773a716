package backups

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"cnmsql.co/api/v1alpha1"
)

func TestAGapInTheArchiveHasABackupMade(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true}
	elsewhere := aBackup("elsewhere")
	elsewhere.Spec.ObjectStore = &v1alpha1.ObjectStoreSpec{Bucket: "other"}
	w := newBackupWorld(t, c, elsewhere)
	r := &GapReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	looks := func() (ctrl.Result, []string) {
		t.Helper()
		again, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		w.Must(err)
		var all v1alpha1.BackupList
		w.Must(w.List(t.Context(), &all, client.InNamespace("ns")))
		var made []string
		for _, b := range all.Items {
			if b.Name != "elsewhere" {
				made = append(made, b.Name)
			}
		}
		return again, made
	}
	if _, made := looks(); len(made) != 0 {
		t.Errorf("without a gap there are %v", made)
	}
	found := metav1.NewTime(w.Clock)
	c.Status.ContinuousArchiving.Missing, c.Status.ContinuousArchiving.MissingSince = "a:1-5", &found
	w.Must(w.Status().Update(t.Context(), c))
	for range 3 {
		if _, made := looks(); len(made) != 1 || made[0] != "db-gap-20261123210000" {
			t.Fatalf("there are %v", made)
		}
	}
	if told := <-w.Told; !strings.Contains(told, "BackupAfterGap") || !strings.Contains(told, "a:1-5") {
		t.Errorf("told %s", told)
	}
	b := w.backup("db-gap-20261123210000")
	b.CreationTimestamp = found
	w.Must(w.Update(t.Context(), b))
	b.Status.Phase, b.Status.StoppedAt = v1alpha1.BackupFailed, &metav1.Time{Time: w.Clock.Add(time.Minute)}
	w.Must(w.Status().Update(t.Context(), b))
	w.Clock = w.Clock.Add(2 * time.Minute)
	if again, made := looks(); len(made) != 1 || again.RequeueAfter != 9*time.Minute {
		t.Errorf("after a failure: %v, again after %s", made, again.RequeueAfter)
	}
	w.Clock = w.Clock.Add(9 * time.Minute)
	if _, made := looks(); len(made) != 2 {
		t.Errorf("after the pause there are %v", made)
	}
}

// Once all instances run a later series than the newest backup is of, another is made, once.
func TestAStepToALaterSeriesHasABackupMade(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true}
	c.Status.InstanceNames = []string{"db-1", "db-2"}
	before := aBackup("before")
	ended := metav1.NewTime(backupDay)
	before.Status.Phase, before.Status.ServerVersion = v1alpha1.BackupCompleted, "8.4.6"
	before.Status.StartedAt, before.Status.StoppedAt = &ended, &ended
	w := newBackupWorld(t, c, before)
	r := &GapReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	made := func(versions ...string) int {
		t.Helper()
		c.Status.InstancesReported = nil
		for i, v := range versions {
			c.Status.InstancesReported = append(c.Status.InstancesReported, v1alpha1.InstanceStatus{
				Name: c.Status.InstanceNames[i], State: "Running", Version: v})
		}
		w.Must(w.Status().Update(t.Context(), c))
		w.reconcile(r, "db")
		var all v1alpha1.BackupList
		w.Must(w.List(t.Context(), &all, client.InNamespace("ns")))
		return len(all.Items) - 1
	}
	for _, tooEarly := range [][]string{{"8.4.6", "8.4.6"}, {"8.4.6", "9.7.4"}, {"9.7.4"}, {"9.7.4", ""}} {
		if n := made(tooEarly...); n != 0 {
			t.Errorf("while they run %q, %d are made", tooEarly, n)
		}
	}
	for range 2 {
		if n := made("9.7.4", "9.7.4"); n != 1 {
			t.Errorf("%d are made", n)
		}
	}
	if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "Normal BackupAfterUpgrade all instances run "+
		"MySQL 9.7.4") || !strings.Contains(told[0], "db-step-2026") {
		t.Errorf("told %q", told)
	}
}

func TestABackupAfterAGapThatIsRefusedIsToldOnce(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	found := metav1.NewTime(backupDay)
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true, Missing: "a:1-5",
		MissingSince: &found}
	w := newBackupWorld(t, c)
	r := &GapReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	for range 3 {
		w.Refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, madeName("db", "gap", w.Clock),
			errors.New("exceeded quota"))
		if again := w.reconcile(r, "db"); again != time.Minute {
			t.Errorf("again after %s", again)
		}
		w.Clock = w.Clock.Add(time.Minute)
	}
	if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "Warning BackupAfterGapRefused") ||
		!strings.Contains(told[0], "exceeded quota") {
		t.Errorf("told %q", told)
	}
	w.Refuse = nil
	if again := w.reconcile(r, "db"); again != 0 {
		t.Errorf("once it can be made, again after %s", again)
	}
	if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "Normal BackupAfterGap ") {
		t.Errorf("told %q", told)
	}
}

// A Backup that is no longer wanted was not refused any more: what is refused later is told again.
func TestARefusalIsToldAgainOnceNoBackupWasDue(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	found := metav1.NewTime(backupDay)
	gap := &v1alpha1.ContinuousArchivingStatus{Enabled: true, Missing: "a:1-5", MissingSince: &found}
	c.Status.ContinuousArchiving = gap
	w := newBackupWorld(t, c)
	w.Refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "backups"}, "a", errors.New("exceeded quota"))
	r := &GapReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	looks := func() int {
		t.Helper()
		w.reconcile(r, "db")
		return len(w.Events())
	}
	if first, second := looks(), looks(); first != 1 || second != 0 {
		t.Fatalf("told %d times, and %d times again", first, second)
	}
	refusal := w.Refuse
	w.Refuse = nil
	theirs := aBackup("theirs")
	theirs.CreationTimestamp = found
	w.Must(w.Create(t.Context(), theirs))
	w.Refuse = refusal
	if told := looks(); told != 0 {
		t.Errorf("told %d times while a Backup is under way", told)
	}
	w.Must(w.Delete(t.Context(), theirs))
	if told := looks(); told != 1 {
		t.Errorf("told %d times once none is under way any more", told)
	}
}

// Who looks for a cause lists Backups, and the status of a Cluster is written every few seconds.
func TestWhatHasACauseOfABackupLookedFor(t *testing.T) {
	at, later := metav1.NewTime(backupDay), metav1.NewTime(backupDay.Add(time.Minute))
	archiving := func(change func(*v1alpha1.ContinuousArchivingStatus)) func(*v1alpha1.Cluster) {
		return func(c *v1alpha1.Cluster) { change(c.Status.ContinuousArchiving) }
	}
	for name, of := range map[string]struct {
		change func(*v1alpha1.Cluster)
		wakes  bool
	}{
		"nothing":     {func(*v1alpha1.Cluster) {}, false},
		"its primary": {func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ }, false},
		"another part": {archiving(func(s *v1alpha1.ContinuousArchivingStatus) {
			s.LastArchivedTime, s.LastArchivedBinlog = &later, "binlog.000009"
		}), false},
		"a gap":       {archiving(func(s *v1alpha1.ContinuousArchivingStatus) { s.MissingSince = &at }), true},
		"what lacks":  {archiving(func(s *v1alpha1.ContinuousArchivingStatus) { s.Missing = "a:1" }), true},
		"the store":   {archiving(func(s *v1alpha1.ContinuousArchivingStatus) { s.Place = "s3://other" }), true},
		"no archive":  {func(c *v1alpha1.Cluster) { c.Status.ContinuousArchiving = nil }, true},
		"a version":   {func(c *v1alpha1.Cluster) { c.Status.InstancesReported[0].Version = "9.7.4" }, true},
		"an instance": {func(c *v1alpha1.Cluster) { c.Status.InstanceNames = []string{"db-1", "db-2"} }, true},
		"its spec":    {func(c *v1alpha1.Cluster) { c.Generation++ }, true},
		"its end":     {func(c *v1alpha1.Cluster) { c.DeletionTimestamp = &at }, true},
		"another":     {func(c *v1alpha1.Cluster) { c.UID = "other" }, true},
	} {
		before := aCluster()
		before.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true, LastArchivedTime: &at}
		before.Status.InstanceNames = []string{"db-1"}
		before.Status.InstancesReported = []v1alpha1.InstanceStatus{{Name: "db-1", Version: "8.4.6"}}
		after := before.DeepCopy()
		if of.change(after); changesCause(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) != of.wakes {
			t.Errorf("a Cluster, of which changes %s: looked for is %t", name, !of.wakes)
		}
	}
}

// Long names of Clusters are cut off, so that two may want a Backup of one name in the same second.
func TestABackupAfterAGapIsMadeThoughAnotherClustersHasItsName(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	found := metav1.NewTime(backupDay)
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true, MissingSince: &found}
	w := newBackupWorld(t, c)
	taken := aBackup(madeName("db", "gap", w.Clock))
	taken.Spec.Cluster.Name = "another"
	w.Must(w.Create(t.Context(), taken))
	r := &GapReconciler{Client: w, Live: w, Recorder: w.Recorder(), Now: w.Now}
	again := w.reconcile(r, "db")
	if again <= 0 || again > time.Minute {
		t.Fatalf("it is looked again after %s", again)
	}
	w.Clock = w.Clock.Add(again)
	w.reconcile(r, "db")
	if made := w.backup(madeName("db", "gap", w.Clock)); made.Spec.Cluster.Name != "db" {
		t.Errorf("a Backup of %s is made", made.Spec.Cluster.Name)
	}
}

func TestTheNameOfABackupAfterAGapIsShortEnough(t *testing.T) {
	for _, cluster := range []string{"db", strings.Repeat("a", 50), strings.Repeat("a", 36) + "-bbbbbbbbbbbbb"} {
		for _, infix := range []string{"gap", "step"} {
			name := madeName(cluster, infix, backupDay)
			if len(name) > 56 || strings.Contains(name, "--") {
				t.Errorf("%s has %d characters", name, len(name))
			}
		}
	}
}
