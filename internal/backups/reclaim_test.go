package backups

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/apiconn"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
)

// reclaimWorld is a backupWorld in which a Cluster is looked at by a ReclaimReconciler.
type reclaimWorld struct {
	*backupWorld
	r *ReclaimReconciler
}

func newReclaimWorld(t *testing.T, objs ...client.Object) *reclaimWorld {
	t.Helper()
	w := newBackupWorld(t, objs...)
	return &reclaimWorld{w, &ReclaimReconciler{Client: w, Live: w, Recorder: w.Recorder(), OperatorImage: "operator:1",
		Now: w.Now}}
}

// step has the ReclaimReconciler look once at the Cluster, which is nil once it is gone.
func (w *reclaimWorld) step() (c *v1alpha1.Cluster, again time.Duration) {
	w.Helper()
	again = w.reconcile(w.r, "db")
	return w.cluster(), again
}

func (w *reclaimWorld) cluster() *v1alpha1.Cluster {
	w.Helper()
	if c := (&v1alpha1.Cluster{}); w.found("db", c) {
		return c
	}
	return nil
}

// goingCluster is one that is deleted, and whose archive goes with it.
func goingCluster() *v1alpha1.Cluster {
	c := aCluster()
	c.Spec.Backup.ReclaimPolicy = v1alpha1.ReclaimDelete
	asked := metav1.NewTime(backupDay)
	c.Finalizers, c.DeletionTimestamp = []string{v1alpha1.FinalizerStoredArchive}, &asked
	return c
}

// instance is a Pod of the Cluster; one that a finalizer keeps takes its time to end.
func instance(name string, ends bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns",
		Labels: map[string]string{v1alpha1.LabelCluster: "db"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(aCluster(),
			v1alpha1.GroupVersion.WithKind("Cluster"))}}}
	if !ends {
		p.Finalizers = []string{"example.com/ends-later"}
	}
	return p
}

func archiveSays(c *v1alpha1.Cluster) metav1.Condition {
	if is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionArchiveStored); is != nil {
		return *is
	}
	return metav1.Condition{}
}

func TestAClusterIsKeptUntilItsArchiveIsRemovedIfItSaysSo(t *testing.T) {
	w := newReclaimWorld(t, aCluster())
	for _, policy := range []struct {
		is    string
		keeps bool
	}{{"", false}, {"Delete", true}, {"Retain", false}, {"delete", true}, {"retain", false}} {
		c := w.cluster()
		c.Spec.Backup.ReclaimPolicy = policy.is
		w.Must(w.Update(t.Context(), c))
		if c, _ := w.step(); slices.Contains(c.Finalizers, v1alpha1.FinalizerStoredArchive) != policy.keeps {
			t.Errorf("%s: %q", policy.is, c.Finalizers)
		}
	}
}

func TestTheArchiveGoesWithTheCluster(t *testing.T) {
	there, elsewhere := stored("there", "id-1"), stored("elsewhere", "id-2")
	elsewhere.Status.DestinationPath = "s3://other/db"
	namesake := stored("namesake", "id-3") // of another endpoint
	namesake.Status.ObjectStore.Endpoint = "https://cold.example.com"
	foreign := instance("foreign", true)
	foreign.OwnerReferences[0].UID = "another"
	w := newReclaimWorld(t, goingCluster(), storeSecret, there, elsewhere, namesake,
		instance("db-1", true), instance("db-2", false), foreign)
	for range 2 {
		if c, again := w.step(); again == 0 || archiveSays(c).Reason != string(core.ReasonBackupRemovalWaits) ||
			!strings.Contains(archiveSays(c).Message, "the Pod db-2") || w.job("db-remove-all") != nil {
			t.Errorf("while an instance ends: %+v", archiveSays(c))
		}
	}
	var pod corev1.Pod
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db-2"}, &pod))
	pod.Finalizers = nil
	w.Must(w.Update(t.Context(), &pod))
	w.step()
	job := w.job("db-remove-all")
	container := job.Spec.Template.Spec.Containers[0]
	if strings.Join(container.Command, " ") != "/cnmsql backup remove-archive" || len(job.OwnerReferences) != 0 {
		t.Errorf("%+v", job)
	}
	var files corev1.Secret
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db-remove-all"}, &files))
	var task backupjob.Task
	w.Must(json.Unmarshal(files.Data[backupjob.FileTask], &task))
	if task.Cluster != "db" || task.ClusterUID != "cluster-uid" || task.ID != "" {
		t.Errorf("%+v", task)
	}
	if c, again := w.step(); c == nil || again == 0 {
		t.Error("it is gone before its archive is")
	}
	w.Events()
	w.jobEnds("db-remove-all", batchv1.JobComplete)
	if c, _ := w.step(); c != nil || w.job("db-remove-all") != nil {
		t.Errorf("left are %+v and %+v", c, w.job("db-remove-all"))
	}
	if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "ArchiveRemoved") ||
		!strings.Contains(told[0], "s3://b/p/db") {
		t.Errorf("told %q", told)
	}
	if w.backup("there").Removed() == nil || w.backup("elsewhere").Removed() != nil ||
		w.backup("namesake").Removed() != nil {
		t.Error("it is not told, or told wrong, which Backups have no data any more")
	}
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "foreign"}, &pod))
}

func TestABackupThatIsTakenEndsBeforeTheArchiveGoes(t *testing.T) {
	// A Job merges parts of the archive after its Backup is complete.
	for _, phase := range []string{v1alpha1.BackupRunning, v1alpha1.BackupCompleted} {
		b := stored("b", "id-1")
		b.Status.Phase, b.Status.JobName = phase, "b-backup"
		job := resources.BackupJob(aCluster(), b, "operator:1")
		job.Finalizers = []string{"foregroundDeletion"}
		w := newReclaimWorld(t, goingCluster(), storeSecret, b, job)
		if c, again := w.step(); again == 0 || !strings.Contains(archiveSays(c).Message, "the Job b-backup") ||
			w.job("db-remove-all") != nil || w.job("b-backup").DeletionTimestamp == nil {
			t.Errorf("%s: %+v", phase, archiveSays(c))
		}
	}
}

func TestNoBackupBeginsOfAClusterThatGoes(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), goingCluster(), storeSecret, authority(t))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoCluster, "is being deleted")
}

func TestAnArchiveThatCannotBeRemovedIsToldWithTheWayOut(t *testing.T) {
	for words, objs := range map[string][]client.Object{
		"the Secret store, which objectStore names, does not exist": nil,
		"the Job db-remove-all exists and is not this Cluster's": {storeSecret,
			&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-remove-all", Namespace: "ns"}}},
	} {
		w := newReclaimWorld(t, append(objs, goingCluster())...)
		for range 2 {
			c, again := w.step()
			if c == nil || again == 0 || !strings.Contains(archiveSays(c).Message, words) ||
				!strings.Contains(archiveSays(c).Message, "kubectl cnmsql backup forget --cluster db -n ns") {
				t.Errorf("want %q: %+v", words, c)
			}
		}
		if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "RemovalHeld") {
			t.Errorf("told %q", told)
		}
	}
}

func TestAnArchiveStaysIfItIsNotToGoAnyMore(t *testing.T) {
	now := metav1.NewTime(backupDay)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &now,
		Finalizers: []string{"kubernetes"}}}
	for why, change := range map[string]func(*v1alpha1.Cluster) []client.Object{
		"spec.backup says so": func(c *v1alpha1.Cluster) []client.Object {
			c.Spec.Backup.ReclaimPolicy = "Retain"
			return nil
		},
		"spec.backup says so by now": func(c *v1alpha1.Cluster) []client.Object {
			c.Spec.Backup = nil
			return nil
		},
		"the namespace is being deleted": func(*v1alpha1.Cluster) []client.Object { return []client.Object{namespace} },
	} {
		c := goingCluster()
		left := resources.ArchiveRemoval(c).Job("operator:1")
		w := newReclaimWorld(t, append(change(c), c, storeSecret, left)...)
		if c, _ := w.step(); c != nil || w.job("db-remove-all") != nil {
			t.Errorf("%s: left are %+v and %+v", why, c, w.job("db-remove-all"))
		}
		if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "ArchiveKept") ||
			!strings.Contains(told[0], why) {
			t.Errorf("told %q", told)
		}
	}
}

// TestNoClusterGoesBeforeItsArchiveWhateverCallFails, nor does the archive while an instance writes.
func TestNoClusterGoesBeforeItsArchiveWhateverCallFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		for failAt := 1; failAt <= 25; failAt++ {
			w := newReclaimWorld(t, goingCluster(), storeSecret, stored("b", "id-1"), instance("db-1", true))
			removed := false
			for range 12 {
				w.FailAt, w.Late = failAt, late
				_, _ = w.r.Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "db"}})
				calls := w.Calls
				w.FailAt = 0
				if job := w.job("db-remove-all"); job != nil && !removed && len(w.secrets()) == 2 {
					err := w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db-1"}, &corev1.Pod{})
					if !apierrors.IsNotFound(err) {
						t.Fatalf("call %d fails, late %t: it is removed while db-1 writes: %v", failAt, late, err)
					}
					w.jobEnds("db-remove-all", batchv1.JobComplete)
					removed = true
				}
				c := w.cluster()
				if c == nil && (!removed || w.backup("b").Removed() == nil) {
					t.Fatalf("call %d fails, late %t: it is gone, and its archive is not, or nobody told", failAt, late)
				}
				if w.Calls = calls; c == nil {
					break
				}
			}
			if c := w.cluster(); c != nil || !removed || w.job("db-remove-all") != nil {
				t.Errorf("call %d fails, late %t: it stays: %+v", failAt, late, c)
			}
		}
	}
}

func TestTheJobThatRemovesAnArchiveWakesItsCluster(t *testing.T) {
	c := goingCluster()
	if all := archiveRemovedBy(t.Context(), resources.ArchiveRemoval(c).Job("operator:1")); len(all) != 1 ||
		all[0].String() != "ns/db" {
		t.Errorf("wakes %v", all)
	}
	if all := archiveRemovedBy(t.Context(), resources.BackupJob(c, aBackup("b"), "operator:1")); len(all) != 0 {
		t.Errorf("wakes %v", all)
	}
}

// Kubernetes deletes a claim with the Cluster that it has as owner, whatever the spec says by then.
func TestNoClusterGoesBeforeItsClaimsThatStayAreFreed(t *testing.T) {
	for name, policy := range map[string]string{"archive stays": "Retain", "archive goes": v1alpha1.ReclaimDelete} {
		c := goingCluster()
		c.Spec.Backup.ReclaimPolicy = policy
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: "ns",
			OwnerReferences: instance("db-1", true).OwnerReferences}}
		w := newReclaimWorld(t, c, storeSecret, claim)
		w.step()
		if job := w.job("db-remove-all"); job != nil {
			w.jobEnds(job.Name, batchv1.JobComplete)
		}
		for range 2 {
			if c, again := w.step(); c == nil || again != writersEnd {
				t.Fatalf("%s: it is gone, or is not looked at again: %v, %s", name, c != nil, again)
			}
		}
		claim.OwnerReferences = nil
		w.Must(w.Update(t.Context(), claim))
		if c, _ := w.step(); c != nil {
			t.Errorf("%s: no claim goes with it, and it stays: %+v", name, c)
		}
	}
}

func TestClaimsThatGoKeepNoClusterThere(t *testing.T) {
	c := goingCluster()
	c.Spec.Backup.ReclaimPolicy, c.Spec.Storage.WhenDeleted = "Retain", v1alpha1.DeleteVolume
	w := newReclaimWorld(t, c, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-1",
		Namespace: "ns", OwnerReferences: instance("db-1", true).OwnerReferences}})
	if c, _ := w.step(); c != nil {
		t.Errorf("it stays: %+v", c)
	}
}

// What a Pod of a lost node costs does not grow with how long it is not mended; its end wakes the Cluster.
func TestADeletedClusterLooksLessOftenTheLongerAPodStays(t *testing.T) {
	w := newReclaimWorld(t, goingCluster(), storeSecret, instance("db-1", false))
	for age, want := range map[time.Duration]time.Duration{0: writersEnd, 2 * time.Second: writersEnd,
		20 * time.Second: 5 * time.Second, time.Minute: lookAgain, 24 * time.Hour: lookAgain} {
		w.r.Now = func() time.Time { return backupDay.Add(age) }
		if _, again := w.step(); again != want {
			t.Errorf("after %s it is looked again in %s, want %s", age, again, want)
		}
	}
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer q.ShutDown()
	unlabelled := instance("db-1", true)
	unlabelled.Labels = nil
	h, pod := writerEnded(), instance("db-1", true)
	h.Create(t.Context(), event.CreateEvent{Object: pod}, q)
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: pod}, q)
	h.Delete(t.Context(), event.DeleteEvent{Object: unlabelled}, q)
	if q.Len() != 0 {
		t.Errorf("%d are woken, and nothing that wrote has ended", q.Len())
	}
	h.Delete(t.Context(), event.DeleteEvent{Object: pod}, q)
	if q.Len() != 1 {
		t.Fatalf("%d are woken", q.Len())
	}
	if is, _ := q.Get(); is.String() != "ns/db" {
		t.Errorf("%s is woken", is)
	}
}

// TestTheRemovalOfAnArchiveHasANameThatAJobMayHave: 63 characters, for the label of its Pods.
func TestTheRemovalOfAnArchiveHasANameThatAJobMayHave(t *testing.T) {
	if name := resources.ArchiveRemovalJobName(strings.Repeat("a", 50)); len(name) > 63 {
		t.Error(fmt.Sprint(name, " has ", len(name)))
	}
}

// unreadBackups is an API server of whose Backups one cannot be read.
type unreadBackups struct{ client.Client }

func (u unreadBackups) List(ctx context.Context, all client.ObjectList, opts ...client.ListOption) error {
	err := u.Client.List(ctx, all, opts...)
	if is, are := all.(*v1alpha1.BackupList); are {
		is.Items = append(is.Items, v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "odd", Namespace: "ns"},
			UnreadWhy: "spec.jobTemplate: unknown unit"})
	}
	return err
}

func TestAClusterThatWaitsForAnUnreadableBackupSaysSo(t *testing.T) {
	w := newReclaimWorld(t, goingCluster(), storeSecret)
	w.r.Live = apiconn.Whole(unreadBackups{w})
	c, again := w.step()
	if is := archiveSays(c); again == 0 || is.Reason != string(core.ReasonBackupRemovalWaits) ||
		!strings.Contains(is.Message, "Backup odd ") || !strings.Contains(is.Message, "spec.jobTemplate") {
		t.Errorf("looked at again after %s; it says: %+v", again, is)
	}
	if w.job("db-remove-all") != nil {
		t.Error("the archive is removed, while it is not known who writes there")
	}
}
