package backups

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
)

func TestTheJobIsToldWhatToKeep(t *testing.T) {
	const daily = 24 * time.Hour
	for name, c := range map[string]struct {
		change func(*v1alpha1.Cluster, *v1alpha1.Backup)
		want   *backupjob.Retention
	}{
		"no policy": {func(*v1alpha1.Cluster, *v1alpha1.Backup) {}, nil},
		"thirty days": {func(c *v1alpha1.Cluster, _ *v1alpha1.Backup) { c.Spec.Backup.RetentionPolicy = "30d" },
			&backupjob.Retention{Window: 30 * daily, Minimum: 1}},
		"a year, and at least four": {func(c *v1alpha1.Cluster, _ *v1alpha1.Backup) {
			c.Spec.Backup.RetentionPolicy, c.Spec.Backup.MinimumBackups = "12m", new(int32(4))
		}, &backupjob.Retention{Window: 372 * daily, Minimum: 4}},
		"what nobody understands": {func(c *v1alpha1.Cluster,
			_ *v1alpha1.Backup) {
			c.Spec.Backup.RetentionPolicy = "30 days"
		}, nil},
		"a store of its own": {func(c *v1alpha1.Cluster, b *v1alpha1.Backup) {
			c.Spec.Backup.RetentionPolicy, b.Spec.ObjectStore = "30d", c.Spec.Backup.ObjectStore.DeepCopy()
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cluster, b := aCluster(), aBackup("b")
			c.change(cluster, b)
			w := newBackupWorld(t, b, cluster, storeSecret, authority(t))
			w.is(w.looks("b"), v1alpha1.BackupRunning, "")
			var files corev1.Secret
			w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &files))
			var task backupjob.Task
			w.Must(json.Unmarshal(files.Data[backupjob.FileTask], &task))
			switch {
			case c.want == nil && task.Retention == nil:
			case c.want == nil || task.Retention == nil || *task.Retention != *c.want:
				t.Errorf("%+v, want %+v", task.Retention, c.want)
			}
		})
	}
}

// stored is a Completed Backup that lies in the Cluster's store.
func stored(name, id string) *v1alpha1.Backup {
	b := aBackup(name)
	b.Status = v1alpha1.BackupStatus{Phase: v1alpha1.BackupCompleted, BackupID: id, DestinationPath: "s3://b/p/db",
		ObjectStore: aCluster().Spec.Backup.ObjectStore,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionBackupCompleted, Status: metav1.ConditionTrue,
			Reason: v1alpha1.BackupCompleted}}}
	return b
}

// afterRetention is what is there when the Job of Backup new has removed two others.
func afterRetention() []client.Object {
	of := stored("new", "id-3")
	since := metav1.NewTime(backupDay.Add(-time.Hour))
	of.Status.Retention = &v1alpha1.BackupRetention{RanAt: metav1.NewTime(backupDay), RemovedBackups: []string{"id-1",
		"id-2"}, RemovedParts: 7, KeptSince: &since, UnknownObjects: 9, UnknownNames: []string{"a.txt", "b/c.txt"}}
	elsewhere, ofAnother := stored("elsewhere", "id-1"), stored("of-another", "id-1")
	elsewhere.Status.DestinationPath = "s3://b/cold/db"
	ofAnother.Spec.Cluster.Name = "other"
	return []client.Object{of, stored("old", "id-1"), stored("older", "id-2"), stored("kept", "id-0"), elsewhere,
		ofAnother, aCluster()}
}

// TestAJobThatDoesNotTellWhatHasExpiredIsTold, if that was its task, and once.
func TestAJobThatDoesNotTellWhatHasExpiredIsTold(t *testing.T) {
	for policy, want := range map[string]bool{"7d": true, "": false} {
		c := aCluster()
		c.Spec.Backup.RetentionPolicy = policy
		w := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t))
		w.looks("b")
		b := w.backup("b")
		b.Status.Phase = v1alpha1.BackupCompleted
		w.Must(w.Status().Update(t.Context(), b))
		w.looks("b")
		if meta.FindStatusCondition(w.backup("b").Status.Conditions, v1alpha1.ConditionBackupRetention) != nil {
			t.Error("told while the Job goes on")
		}
		w.Events()
		w.ends(batchv1.JobFailed)
		w.looks("b")
		is := meta.FindStatusCondition(w.looks("b").Status.Conditions, v1alpha1.ConditionBackupRetention)
		told := w.Events()
		if (is != nil) != want || want && (is.Reason != string(core.RetentionFailed) || len(told) != 1) {
			t.Errorf("policy %q: %+v, told %v", policy, is, told)
		}
	}
}

func TestBackupsThatHaveExpiredAreTold(t *testing.T) {
	w := newBackupWorld(t, afterRetention()...)
	for range 3 {
		w.is(w.looks("new"), v1alpha1.BackupCompleted, "")
	}
	for name, gone := range map[string]bool{"new": false, "old": true, "older": true, "kept": false, "elsewhere": false,
		"of-another": false} {
		b := w.backup(name)
		if (b.Removed() != nil) != gone || b.Status.Phase != v1alpha1.BackupCompleted {
			t.Errorf("%s: %+v", name, b.Status)
		}
	}
	if c := meta.FindStatusCondition(w.backup("old").Status.Conditions,
		v1alpha1.ConditionBackupStored); c.Reason != string(core.ReasonExpired) ||
		!strings.Contains(c.Message, "the Backup new") {
		t.Errorf("%+v", c)
	}
	told := w.Events()
	if slices.Sort(told); len(told) != 3 || !strings.Contains(told[0], "Expired") ||
		!strings.Contains(told[1], "Expired") ||
		!strings.Contains(told[2], "RetentionRan 2 backups and 7 parts") ||
		!strings.Contains(told[2], "all since 2026-11-23T20:00:00Z; other objects there stay: a.txt, b/c.txt, and 7 "+
			"more") {
		t.Errorf("told %q", told)
	}
	var c v1alpha1.Cluster
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db"}, &c))
	if ran := c.Status.LastRetentionRunTime; ran == nil || !ran.Time.Equal(backupDay) {
		t.Errorf("the Cluster says %v", ran)
	}
}

func TestWhatWasMergedIsTold(t *testing.T) {
	for reason, c := range map[core.Reason]struct{ status, says string }{
		core.ReasonMerged:   {"True", "300 small parts of the archive were merged into 2 bundles, and 7 objects"},
		"StoreAccessDenied": {"False", "less was merged than could be: look there"},
	} {
		b := stored("new", "id-3")
		b.Status.Merging = &v1alpha1.BackupMerging{MergedParts: 300, Bundles: 2, RemovedObjects: 7}
		if c.status == "False" {
			b.Status.Merging.Held = &v1alpha1.RetentionHeld{Reason: string(reason), Message: "look there"}
		}
		w := newBackupWorld(t, b, aCluster())
		for range 3 {
			w.is(w.looks("new"), v1alpha1.BackupCompleted, "")
		}
		is := meta.FindStatusCondition(w.backup("new").Status.Conditions, v1alpha1.ConditionArchiveMerged)
		if is == nil || string(is.Status) != c.status || is.Reason != string(reason) ||
			!strings.Contains(is.Message, c.says) {
			t.Errorf("%s: %+v", reason, is)
		}
		told := w.Events()
		isTold := len(told) == 1 && strings.Contains(told[0], "ArchiveNotMerged "+string(reason))
		if isTold != (c.status == "False") || len(told) > 1 {
			t.Errorf("%s: told %q", reason, told)
		}
	}
}

func TestWhatKeptRetentionFromRemovingIsTold(t *testing.T) {
	for reason, warned := range map[core.Reason]int{core.RetentionYoung: 0, core.RetentionAnchorDamaged: 1,
		"StoreAccessDenied": 1} {
		objs := afterRetention()
		done := objs[0].(*v1alpha1.Backup).Status.Retention
		done.RemovedBackups, done.RemovedParts, done.Held = nil, 0, &v1alpha1.RetentionHeld{Reason: string(reason),
			Message: "look there"}
		w := newBackupWorld(t, objs...)
		for range 2 {
			w.looks("new")
		}
		c := meta.FindStatusCondition(w.backup("new").Status.Conditions, v1alpha1.ConditionBackupRetention)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(reason) ||
			!strings.Contains(c.Message, "look there") {
			t.Errorf("%s: %+v", reason, c)
		}
		if told := w.Events(); len(told) != warned || warned > 0 && !strings.Contains(told[0],
			"RetentionHeld "+string(reason)) {
			t.Errorf("%s: told %q", reason, told)
		}
	}
}

// TestWhatHasExpiredIsToldWhateverCallFails.
func TestWhatHasExpiredIsToldWhateverCallFails(t *testing.T) {
	w := newBackupWorld(t, afterRetention()...)
	w.looks("new")
	calls := w.Calls
	for _, late := range []bool{false, true} {
		for failAt := 1; failAt <= calls; failAt++ {
			w := newBackupWorld(t, afterRetention()...)
			w.FailAt, w.Late = failAt, late
			for range 3 {
				_, _ = w.r.Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "new"}})
			}
			w.FailAt = 0
			told := meta.FindStatusCondition(w.backup("new").Status.Conditions,
				v1alpha1.ConditionBackupRetention) != nil
			if !told || w.backup("old").Removed() == nil || w.backup("older").Removed() == nil || len(w.Events()) > 3 {
				t.Errorf("call %d fails, late %t", failAt, late)
			}
		}
	}
}
