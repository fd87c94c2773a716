package backups

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
)

// mergeWorld is a backupWorld in which a Cluster is looked at by a MergeReconciler.
type mergeWorld struct {
	*backupWorld
	r *MergeReconciler
}

// newMergeWorld has a Cluster that archives since a day.
func newMergeWorld(t *testing.T, objs ...client.Object) *mergeWorld {
	t.Helper()
	c := aCluster()
	c.CreationTimestamp = metav1.NewTime(backupDay.Add(-24 * time.Hour))
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true, TargetRPOSeconds: 1}
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{LastArchivedTime: &metav1.Time{Time: backupDay}}
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving,
		Status: metav1.ConditionTrue, LastTransitionTime: c.CreationTimestamp})
	w := newBackupWorld(t, append(objs, c, storeSecret.DeepCopy())...)
	return &mergeWorld{w, &MergeReconciler{Client: w, Live: w, Recorder: w.Recorder(), OperatorImage: "operator:1",
		Now: w.Now}}
}

func (w *mergeWorld) step() time.Duration {
	w.Helper()
	return w.reconcile(w.r, "db")
}

// job that merges; nil if there is none.
func (w *mergeWorld) job() *batchv1.Job {
	w.Helper()
	if job := (&batchv1.Job{}); w.found("db-merge-all", job) {
		return job
	}
	return nil
}

func (w *mergeWorld) secret() *corev1.Secret {
	w.Helper()
	if s := (&corev1.Secret{}); w.found("db-merge-all", s) {
		return s
	}
	return nil
}

// ends has the Job end.
func (w *mergeWorld) ends(as batchv1.JobConditionType) {
	w.Helper()
	job := w.job()
	job.Status.Conditions = []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue,
		Message: "BackoffLimitExceeded", LastTransitionTime: metav1.NewTime(w.Clock)}}
	w.Must(w.Status().Update(w.Context(), job))
}

// tells is what was told, or nothing.
func (w *mergeWorld) tells() string {
	select {
	case text := <-w.Told:
		return text
	default:
		return ""
	}
}

func TestWhereNoBackupIsTakenAJobMerges(t *testing.T) {
	w := newMergeWorld(t)
	w.Clock = w.Clock.Add(-time.Minute)
	if again := w.step(); again != time.Minute || w.job() != nil {
		t.Fatalf("before its time: %v, again after %s", w.job(), again)
	}
	w.Clock = w.Clock.Add(time.Minute)
	w.step()
	job, secret := w.job(), w.secret()
	if job == nil || secret == nil {
		t.Fatalf("there are %v and %v", job, secret)
	}
	if is := strings.Join(job.Spec.Template.Spec.Containers[0].Command, " "); is != "/cnmsql backup merge-archive" {
		t.Errorf("it runs %s", is)
	}
	if !metav1.IsControlledBy(job, w.cluster()) || !metav1.IsControlledBy(secret, job) {
		t.Errorf("the Job belongs to %v, and its Secret to %v", job.OwnerReferences, secret.OwnerReferences)
	}
	var task backupjob.Task
	w.Must(json.Unmarshal(secret.Data[backupjob.FileTask], &task))
	if task.Cluster != "db" || task.ClusterUID != string(w.cluster().UID) || task.ClusterUID == "" {
		t.Errorf("it is to %+v", task)
	}
	w.Must(w.Delete(w.Context(), secret))
	if w.step(); w.secret() == nil {
		t.Error("a Secret that went with the Job before is not made again")
	}
	w.Clock = w.Clock.Add(time.Hour)
	w.ends(batchv1.JobComplete)
	w.step()
	if told := w.tells(); !strings.Contains(told, "ArchiveMerged") {
		t.Errorf("told %q", told)
	}
	if again := w.step(); again != 24*time.Hour || w.job() == nil || w.tells() != "" {
		t.Errorf("again after %s", again)
	}
	w.Clock = w.Clock.Add(24 * time.Hour)
	if w.step(); w.job() != nil {
		t.Error("the Job that has ended is in the way")
	}
	if w.step(); w.job() == nil {
		t.Error("the next day nothing merges")
	}
}

func (w *mergeWorld) cluster() *v1alpha1.Cluster {
	w.Helper()
	c := &v1alpha1.Cluster{}
	w.found("db", c)
	return c
}

func TestAMergeThatFailsIsToldAndTriedAgain(t *testing.T) {
	w := newMergeWorld(t)
	w.step()
	w.ends(batchv1.JobFailed)
	w.step()
	told := w.tells()
	if !strings.Contains(told, "ArchiveNotMerged") || !strings.Contains(told, "BackoffLimitExceeded") {
		t.Errorf("told %q", told)
	}
	if again := w.step(); again != 6*time.Hour || w.tells() != "" {
		t.Errorf("again after %s", again)
	}
	w.Clock = w.Clock.Add(6 * time.Hour)
	w.step()
	w.step()
	if job := w.job(); job == nil || ended(job) != "" {
		t.Errorf("after a quarter of the day for which nothing was merged there is %+v", job)
	}
}

// Archiving is switched on in a Cluster that is a year old, and
// the archive was not there before its first part.
func TestNothingIsMergedBeforeThereIsAnArchive(t *testing.T) {
	w := newMergeWorld(t)
	is := func(archived time.Time, all metav1.ConditionStatus) {
		t.Helper()
		c := w.cluster()
		c.Status.ContinuousArchiving.LastArchivedTime = nil
		if !archived.IsZero() {
			c.Status.ContinuousArchiving.LastArchivedTime = &metav1.Time{Time: archived}
		}
		meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving,
			Status: all, LastTransitionTime: metav1.NewTime(w.Clock)})
		w.Must(w.Status().Update(w.Context(), c))
	}
	is(time.Time{}, metav1.ConditionFalse)
	if again := w.step(); again != 0 || w.job() != nil {
		t.Errorf("with no archive there is %v, again after %s", w.job(), again)
	}
	first := w.Clock.Add(-time.Minute)
	is(first, metav1.ConditionFalse)
	if again := w.step(); again != 24*time.Hour-time.Minute || w.job() != nil {
		t.Errorf("with a new archive there is %v, again after %s", w.job(), again)
	}
	w.Clock = first.Add(24*time.Hour - time.Second)
	is(w.Clock, metav1.ConditionTrue)
	if again := w.step(); again != time.Second || w.job() != nil {
		t.Errorf("it is forgotten when the archive was seen first: %v, again after %s", w.job(), again)
	}
	w.Clock = w.Clock.Add(time.Second)
	if w.step(); w.job() == nil {
		t.Error("nothing merges after a day")
	}
}

func TestWhoseBackupsMergeNeedsNoJobOfItsOwn(t *testing.T) {
	b := aBackup("b")
	at := metav1.NewTime(backupDay.Add(-time.Hour))
	b.Status.Phase, b.Status.StartedAt, b.Status.StoppedAt = v1alpha1.BackupCompleted, &at, &at
	if w := newMergeWorld(t, b); w.step() != 23*time.Hour || w.job() != nil {
		t.Error("a Job merges an hour after a Backup did")
	}
	for name, change := range map[string]func(c *v1alpha1.Cluster){
		"archives nothing": func(c *v1alpha1.Cluster) { c.Spec.Backup.ContinuousArchiving.Enabled = false },
		"has no backups":   func(c *v1alpha1.Cluster) { c.Spec.Backup = nil },
		"has no store":     func(c *v1alpha1.Cluster) { c.Spec.Backup.ObjectStore = nil },
	} {
		w := newMergeWorld(t)
		c := w.cluster()
		change(c)
		w.Must(w.Update(w.Context(), c))
		if again := w.step(); again != 0 || w.job() != nil {
			t.Errorf("a Cluster that %s is merged", name)
		}
	}
}

// TestWhyNothingIsMergedIsToldOnce, and it is tried again.
func TestWhyNothingIsMergedIsToldOnce(t *testing.T) {
	w := newMergeWorld(t)
	c := w.cluster()
	c.Spec.Backup.ObjectStore.Credentials.AccessKeyID.Name = "nowhere"
	w.Must(w.Update(w.Context(), c))
	if again := w.step(); again != time.Hour || w.job() != nil {
		t.Errorf("again after %s, with %v", again, w.job())
	}
	if told := w.tells(); !strings.Contains(told, "ArchiveNotMerged") || !strings.Contains(told, "nowhere") {
		t.Errorf("told %q", told)
	}
	if w.step(); w.tells() != "" {
		t.Error("it is told twice")
	}
	names := func(secret string) {
		t.Helper()
		c := w.cluster()
		c.Spec.Backup.ObjectStore.Credentials.AccessKeyID.Name = secret
		w.Must(w.Update(w.Context(), c))
	}
	names("store")
	if w.step(); w.job() == nil {
		t.Fatal("it is not tried again")
	}
	w.Must(w.Delete(w.Context(), w.job()))
	w.Must(w.Delete(w.Context(), w.secret()))
	names("nowhere")
	if w.step(); !strings.Contains(w.tells(), "nowhere") {
		t.Error("it is not told when it comes back after a Job was made")
	}
	w.Must(w.Delete(w.Context(), w.cluster()))
	w.step()
	w.r.seen.Range(func(key, _ any) bool {
		t.Errorf("%v is remembered, which is gone", key)
		return true
	})
	other := newMergeWorld(t, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-merge-all", Namespace: "ns"}})
	if other.step(); !strings.Contains(other.tells(), "is not this Cluster's") {
		t.Error("it is not told that the name is taken")
	}
}

// TestAnArchiveIsNotRemovedWhileItIsMerged: the Job would write into what goes.
func TestAnArchiveIsNotRemovedWhileItIsMerged(t *testing.T) {
	merging := newMergeWorld(t)
	merging.step()
	job := merging.job()
	job.ResourceVersion, job.Finalizers = "", []string{"example.com/ends-later"}
	w := newReclaimWorld(t, goingCluster(), storeSecret.DeepCopy(), job)
	c, again := w.step()
	if is := archiveSays(c); is.Reason != "RemovalWaits" || !strings.Contains(is.Message, "the Job db-merge-all") ||
		again != writersEnd {
		t.Errorf("%+v, again after %s", is, again)
	}
	if is := (&batchv1.Job{}); !w.found("db-merge-all", is) || is.DeletionTimestamp == nil {
		t.Errorf("the Job is not ended: %+v", is)
	}
	if is := (&batchv1.Job{}); w.found("db-remove-all", is) {
		t.Error("it is removed meanwhile")
	}
}

// A Cluster's status is written every few seconds, and who looks lists Backups.
func TestWhatHasTheMergingOfAnArchiveLookedAt(t *testing.T) {
	at := metav1.NewTime(backupDay)
	for name, c := range map[string]struct {
		change func(*v1alpha1.Cluster)
		wakes  bool
	}{
		"nothing":             {func(*v1alpha1.Cluster) {}, false},
		"its status":          {func(c *v1alpha1.Cluster) { c.Status.PrimaryEpoch++ }, false},
		"the first part":      {func(c *v1alpha1.Cluster) { archives(c, at) }, true},
		"its spec":            {func(c *v1alpha1.Cluster) { c.Generation++ }, true},
		"its annotations":     {func(c *v1alpha1.Cluster) { c.Annotations = map[string]string{"a": "b"} }, true},
		"its deletion":        {func(c *v1alpha1.Cluster) { c.DeletionTimestamp = &at }, true},
		"another of its name": {func(c *v1alpha1.Cluster) { c.UID = "other" }, true},
	} {
		after := aCluster()
		if c.change(after); changesMerging(event.UpdateEvent{ObjectOld: aCluster(), ObjectNew: after}) != c.wakes {
			t.Errorf("a Cluster, of which changes %s: looked at is %t", name, !c.wakes)
		}
	}
	before, after := aCluster(), aCluster()
	archives(before, at)
	archives(after, metav1.NewTime(backupDay.Add(time.Minute)))
	if changesMerging(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("each part that is archived has it looked at")
	}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Backup)
		wakes  bool
	}{
		"its progress": {func(b *v1alpha1.Backup) { b.Status.JobName = "j" }, false},
		"its phase":    {func(b *v1alpha1.Backup) { b.Status.Phase = v1alpha1.BackupFailed }, true},
		"its begin":    {func(b *v1alpha1.Backup) { b.Status.StartedAt = &at }, true},
		"its end":      {func(b *v1alpha1.Backup) { b.Status.StoppedAt = &at }, true},
		"what it has":  {func(b *v1alpha1.Backup) { b.Status.BeginGTID = "a:1" }, true},
		"its server":   {func(b *v1alpha1.Backup) { b.Status.ServerVersion = "9.7.4" }, true},
		"its deletion": {func(b *v1alpha1.Backup) { b.DeletionTimestamp = &at }, true},
		"another":      {func(b *v1alpha1.Backup) { b.UID = "other" }, true},
	} {
		after := aBackup("b")
		if c.change(after); changesTaken(event.UpdateEvent{ObjectOld: aBackup("b"), ObjectNew: after}) != c.wakes {
			t.Errorf("a Backup, of which changes %s: looked at is %t", name, !c.wakes)
		}
	}
}

func archives(c *v1alpha1.Cluster, at metav1.Time) {
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{LastArchivedTime: &at}
}
