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
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/store"
)

func TestABackupIsKeptUntilItsDataAreRemovedIfItSaysSo(t *testing.T) {
	for policy, keeps := range map[string]bool{"": false, "Retain": false, "retain": false,
		"Delete": true, "delete": true} {
		b := aBackup("b")
		b.Spec.ReclaimPolicy = policy
		w := newBackupWorld(t, b, aCluster(), storeSecret, authority(t))
		b = w.looks("b")
		w.is(b, v1alpha1.BackupRunning, "")
		if slices.Contains(b.Finalizers, v1alpha1.FinalizerStoredBackup) != keeps {
			t.Errorf("%s: %q", policy, b.Finalizers)
		}
	}
}

// going is a Completed Backup that is deleted, of which the data go with it.
func going() *v1alpha1.Backup {
	b := stored("b", "id-1")
	b.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	b.Status.ObjectStore = aCluster().Spec.Backup.ObjectStore
	asked := metav1.NewTime(backupDay)
	b.Finalizers, b.DeletionTimestamp = []string{v1alpha1.FinalizerStoredBackup}, &asked
	return b
}

// step has the Reconciler look once at b, which is nil once it is gone.
func (w *backupWorld) step() (b *v1alpha1.Backup, again time.Duration) {
	w.Helper()
	again = w.reconcile(w.r, "b")
	return w.left(), again
}

// reconcile has a controller look once at an object, and tells when it wants to look again.
func (w *backupWorld) reconcile(r reconcile.Reconciler, name string) (again time.Duration) {
	w.Helper()
	result, err := r.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	w.Must(err)
	return result.RequeueAfter
}

// found reads an object; false when it is gone.
func (w *backupWorld) found(name string, into client.Object) bool {
	w.Helper()
	err := w.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: name}, into)
	w.Must(client.IgnoreNotFound(err))
	return err == nil
}

// left is the Backup; nil when it is gone.
func (w *backupWorld) left() *v1alpha1.Backup {
	w.Helper()
	if b := (&v1alpha1.Backup{}); w.found("b", b) {
		return b
	}
	return nil
}

// job is one of a name; nil when there is none.
func (w *backupWorld) job(name string) *batchv1.Job {
	w.Helper()
	if job := (&batchv1.Job{}); w.found(name, job) {
		return job
	}
	return nil
}

// removalEnds has the Job that removes end.
func (w *backupWorld) removalEnds(as batchv1.JobConditionType) {
	w.Helper()
	w.jobEnds("b-remove", as)
}

// jobEnds has a Job end.
func (w *backupWorld) jobEnds(name string, as batchv1.JobConditionType) {
	w.Helper()
	job := w.job(name)
	job.Status.Conditions = []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue,
		Message: "BackoffLimitExceeded", LastTransitionTime: metav1.NewTime(w.Clock)}}
	w.Must(w.Status().Update(w.Context(), job))
}

func storedSays(b *v1alpha1.Backup) metav1.Condition {
	if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupStored); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func TestTheDataGoWithTheBackup(t *testing.T) {
	b := aBackup("b")
	b.Spec.ReclaimPolicy = "delete"
	w := newBackupWorld(t, b, aCluster(), storeSecret, authority(t))
	w.looks("b")
	w.Must(w.Delete(t.Context(), b))
	if b, _ := w.step(); storedSays(b).Reason != string(core.ReasonBackupRemovalWaits) || w.job("b-backup") != nil ||
		w.job("b-remove") != nil {
		t.Errorf("while it is taken: %+v", storedSays(b))
	}
	if b, again := w.step(); b == nil || again == 0 || w.job("b-remove") == nil {
		t.Fatalf("%+v", b)
	}
	job := w.job("b-remove")
	pod := job.Spec.Template.Spec
	if c := pod.Containers[0]; strings.Join(c.Command, " ") != "/cnmsql backup remove" || c.Image != "operator:1" ||
		len(c.VolumeMounts) != 1 ||
		len(pod.Volumes) != 1 || pod.Volumes[0].Secret.SecretName != "b-remove" || len(job.OwnerReferences) != 0 {
		t.Errorf("%+v", pod)
	}
	var files corev1.Secret
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-remove"}, &files))
	var task backupjob.Task
	w.Must(json.Unmarshal(files.Data[backupjob.FileTask], &task))
	if task.Cluster != "db" || task.ID != "20261123T210000Z-12345678" ||
		string(files.Data[store.FileSecretKey]) != "hidden" || files.OwnerReferences[0].Name != "b-remove" {
		t.Errorf("%+v %+v", task, files)
	}
	if b, again := w.step(); b == nil || again == 0 {
		t.Error("it is gone before its data are")
	} else if c := storedSays(b); c.Reason != string(core.ReasonBackupRemovalWaits) ||
		!strings.Contains(c.Message, "the Job b-remove removes s3://b/p/db/base/20261123T210000Z-12345678") ||
		!strings.Contains(c.Message, "kubectl cnmsql backup forget b -n ns") {
		t.Errorf("while its Job goes on: %+v", c)
	}
	w.Events()
	w.removalEnds(batchv1.JobComplete)
	if b, _ := w.step(); b != nil || w.job("b-remove") != nil {
		t.Errorf("left are %+v and %+v", b, w.job("b-remove"))
	}
	if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "Removed") ||
		!strings.Contains(told[0], "s3://b/p/db/base/20261123T210000Z-12345678") {
		t.Errorf("told %q", told)
	}
}

func TestARemovalThatFailsIsToldAndTriedAgain(t *testing.T) {
	w := newBackupWorld(t, going(), aCluster(), storeSecret)
	w.step()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns",
		Labels: map[string]string{batchv1.JobNameLabel: "b-remove"}}}
	ended := &corev1.ContainerStateTerminated{Message: "{}\ncnmsql: StoreAccessDenied: give it the right\n"}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: ended}}}
	w.Must(w.Create(t.Context(), pod))
	last := time.Duration(0)
	for _, age := range []time.Duration{time.Minute, 10 * time.Minute, time.Hour, 100 * time.Hour} {
		w.Clock = backupDay.Add(age)
		w.removalEnds(batchv1.JobFailed)
		b, again := w.step()
		if c := storedSays(b); c.Status != metav1.ConditionUnknown ||
			c.Reason != string(core.ReasonBackupRemovalFailed) ||
			!strings.Contains(c.Message, "StoreAccessDenied") ||
			!strings.Contains(c.Message, "kubectl cnmsql backup forget b -n ns") {
			t.Errorf("%+v", c)
		}
		if again <= last || again > maxPause {
			t.Errorf("after %s it waits %s, and %s before", age, again, last)
		}
		last = again
		w.Clock = w.Clock.Add(2 * again) // it grows meanwhile
		w.step()
		if w.job("b-remove") != nil {
			t.Fatalf("after %s it is not tried again", age)
		}
		if b, _ := w.step(); b == nil || w.job("b-remove") == nil {
			t.Fatalf("after %s it is not started again", age)
		}
		if b, _ := w.step(); storedSays(b).Reason != string(core.ReasonBackupRemovalFailed) {
			t.Errorf("while it is tried again, it does not say any more why it failed: %+v", storedSays(b))
		}
	}
	if told := w.Events(); len(told) != 1 {
		t.Errorf("told %q", told)
	}
}

// TestARemovalSaysNoMoreWhatHeldIt reports of one whose Secret was missing, and was made again.
func TestARemovalSaysNoMoreWhatHeldIt(t *testing.T) {
	w := newBackupWorld(t, going(), aCluster())
	w.Clock = backupDay.Add(100 * time.Hour)
	if b, soon := w.step(); storedSays(b).Reason != string(core.ReasonBackupRemovalHeld) || soon > heldPause {
		t.Errorf("without its Secret: %+v, and it is looked again after %s", storedSays(b), soon)
	}
	again := storeSecret.DeepCopy()
	again.ResourceVersion = ""
	w.Must(w.Create(t.Context(), again))
	w.step()
	if b, _ := w.step(); w.job("b-remove") == nil ||
		storedSays(b).Reason != string(core.ReasonBackupRemovalWaits) {
		t.Errorf("once the Job goes on: %+v", storedSays(b))
	}
	w.Must(w.Delete(t.Context(), again))
	if b, _ := w.step(); storedSays(b).Reason != string(core.ReasonBackupRemovalHeld) {
		t.Errorf("when it is missing again beside the Job: %+v", storedSays(b))
	}
}

func TestWhatStandsInTheWayOfARemovalIsNamed(t *testing.T) {
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "b-remove", Namespace: "ns"}}
	for words, objs := range map[string][]client.Object{
		"the Secret store, which objectStore names, does not exist":   {aCluster()},
		"the Job b-remove exists and is not this Backup's; delete it": {aCluster(), storeSecret, foreign},
		"the Secret b-remove exists and is not this Backup's; delete it": {aCluster(), storeSecret,
			secret("b-remove", map[string]string{"mine": "1"})},
	} {
		w := newBackupWorld(t, append(objs, going())...)
		for range 2 {
			if b, again := w.step(); b == nil || again == 0 || !strings.Contains(storedSays(b).Message, words) {
				t.Errorf("want %q: %+v", words, b)
			}
		}
		if told := w.Events(); len(told) != 1 || !strings.Contains(told[0], "RemovalHeld") {
			t.Errorf("told %q", told)
		}
	}
}

func TestABackupGoesAtOnceWhenThereIsNothingToRemove(t *testing.T) {
	now := metav1.NewTime(backupDay)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &now,
		Finalizers: []string{"kubernetes"}}}
	for name, c := range map[string]struct {
		change func(*v1alpha1.Backup)
		objs   []client.Object
		told   string
	}{
		"it never began": {change: func(b *v1alpha1.Backup) { b.Status = v1alpha1.BackupStatus{} }},
		"it had expired": {change: func(b *v1alpha1.Backup) {
			meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupStored,
				Status: metav1.ConditionFalse, Reason: string(core.ReasonExpired)})
		}},
		"the namespace goes": {objs: []client.Object{namespace}, told: "s3://b/p/db/base/id-1 stays"},
	} {
		t.Run(name, func(t *testing.T) {
			b := going()
			if c.change != nil {
				c.change(b)
			}
			w := newBackupWorld(t, append(c.objs, b, aCluster(), storeSecret)...)
			if b, _ := w.step(); b != nil || w.job("b-remove") != nil {
				t.Errorf("left are %+v and %+v", b, w.job("b-remove"))
			}
			if told := strings.Join(w.Events(), " "); c.told == "" && told != "" || !strings.Contains(told, c.told) {
				t.Errorf("told %q", told)
			}
		})
	}
}

func TestDataAreRemovedWithoutTheirCluster(t *testing.T) {
	w := newBackupWorld(t, going(), storeSecret)
	w.step()
	if w.job("b-remove") == nil {
		t.Error("no Job")
	}
}

// TestARemovalPullsItsImageAsTheClusterDid holds that a Job which removes a Backup's data from a Cluster's store
// has the Cluster's pull secrets, though the Cluster is gone.
func TestARemovalPullsItsImageAsTheClusterDid(t *testing.T) {
	c := aCluster()
	c.Spec.ImagePullSecrets = []v1alpha1.LocalObjectReference{{Name: "registry"}}
	taking := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t))
	record := resources.RecordOf(taking.looks("b"))
	b := going()
	if err := record.WriteTo(b); err != nil {
		t.Fatal(err)
	}
	w := newBackupWorld(t, b, storeSecret)
	w.step()
	want := []corev1.LocalObjectReference{{Name: "registry"}}
	if job := w.job("b-remove"); job == nil || !slices.Equal(job.Spec.Template.Spec.ImagePullSecrets, want) {
		t.Errorf("the Job does not pull with the Cluster's Secret: %v", job)
	}
}

// TestNoBackupGoesBeforeItsDataWhateverCallFails.
func TestNoBackupGoesBeforeItsDataWhateverCallFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		for failAt := 1; failAt <= 25; failAt++ {
			w := newBackupWorld(t, going(), aCluster(), storeSecret)
			removed := false
			for range 12 {
				w.FailAt, w.Late = failAt, late
				_, _ = w.r.Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "b"}})
				calls := w.Calls
				w.FailAt = 0
				job := w.job("b-remove")
				if job != nil && !removed && len(w.secrets()) == 2 {
					w.removalEnds(batchv1.JobComplete)
					removed = true
				}
				if w.left() == nil && !removed {
					t.Fatalf("call %d fails, late %t: it is gone, and its data are not", failAt, late)
				}
				if w.Calls = calls; w.left() == nil {
					break
				}
				w.Calls = calls
			}
			if w.left() != nil || !removed || w.job("b-remove") != nil {
				t.Errorf("call %d fails, late %t: it stays: %+v", failAt, late, w.left())
			}
		}
	}
}

// secrets are the names of all.
func (w *backupWorld) secrets() (names []string) {
	var all corev1.SecretList
	w.Must(w.List(w.Context(), &all))
	for _, s := range all.Items {
		if s.Name != resources.Names("db").ControlSecret() { // which is of the Cluster, and in every world
			names = append(names, s.Name)
		}
	}
	return names
}

// TestNoDataAreWrittenThatNothingWouldRemove: whichever call fails, a Backup that runs has
// the finalizer.
func TestNoDataAreWrittenThatNothingWouldRemove(t *testing.T) {
	ca := authority(t)
	for _, late := range []bool{false, true} {
		for failAt := 1; failAt <= 15; failAt++ {
			b := aBackup("b")
			b.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
			w := newBackupWorld(t, b, aCluster(), storeSecret, ca)
			w.FailAt, w.Late = failAt, late
			for range 2 {
				_, _ = w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)})
				if b := w.backup("b"); b.Status.Phase == v1alpha1.BackupRunning && len(b.Finalizers) == 0 {
					t.Fatalf("call %d fails, late %t: it is %s, and is not kept", failAt, late, b.Status.Phase)
				}
			}
		}
	}
}

// TestAnAmbientRoleRemovesWhatItHasStored: the role is given to the ServiceAccount by its name.
func TestAnAmbientRoleRemovesWhatItHasStored(t *testing.T) {
	for _, spec := range []*v1alpha1.ObjectStoreSpec{nil,
		{Credentials: &v1alpha1.StoreCredentials{InheritFromIAMRole: true}},
		{GoogleCredentials: &v1alpha1.GoogleCredentials{GKEEnvironment: true}},
		{AzureCredentials: &v1alpha1.AzureCredentials{InheritFromAzureAD: true}},
	} {
		b, ambient := going(), spec != nil
		if ambient {
			b.Status.ObjectStore = spec
		}
		w := newBackupWorld(t, b, aCluster(), storeSecret, authority(t))
		w.step()
		pod := w.job("b-remove").Spec.Template.Spec
		account := &corev1.ServiceAccount{}
		err := w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, account)
		if (pod.ServiceAccountName == "b-backup") != ambient || (err == nil) != ambient ||
			*pod.AutomountServiceAccountToken {
			t.Errorf("ambient %t: it runs as %q; the account: %v", ambient, pod.ServiceAccountName, err)
		}
		if ambient && (len(account.OwnerReferences) != 1 || account.OwnerReferences[0].Kind != "Job") {
			t.Errorf("the account goes with %v", account.OwnerReferences)
		}
	}
}

// ambientGoing is one whose store is reached by the Pod's own identity.
func ambientGoing() *v1alpha1.Backup {
	b := going()
	b.Status.ObjectStore = &v1alpha1.ObjectStoreSpec{Credentials: &v1alpha1.StoreCredentials{InheritFromIAMRole: true}}
	return b
}

// anAccount is the ServiceAccount that the Job of the Backup b would run as.
func anAccount(owner metav1.Object, kind string) *corev1.ServiceAccount {
	s := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b-backup"}}
	if owner != nil {
		s.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner,
			v1alpha1.GroupVersion.WithKind(kind))}
	}
	return s
}

// Who may create Backups names them, and may not choose by that whose role their Jobs have.
func TestNothingIsRemovedByTheRoleOfSomebodyElse(t *testing.T) {
	another := going()
	another.UID = "another"
	for name, account := range map[string]*corev1.ServiceAccount{
		"a user's": anAccount(nil, ""), "another Backup's": anAccount(another, "Backup"),
	} {
		w := newBackupWorld(t, ambientGoing(), aCluster(), storeSecret, authority(t), account)
		b, again := w.step()
		stored := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionBackupStored)
		if w.job("b-remove") != nil || again != heldPause && again != firstPause || stored == nil ||
			stored.Reason != string(core.ReasonBackupRemovalHeld) ||
			!strings.Contains(stored.Message, "the ServiceAccount b-backup, by which") {
			t.Errorf("%s: there is a Job: %t; again after %s; it says %+v",
				name, w.job("b-remove") != nil, again, stored)
		}
		w.Must(w.Delete(t.Context(), account))
		if w.step(); w.job("b-remove") == nil {
			t.Errorf("%s is gone, and there is no Job", name)
		}
		w.Must(w.Delete(t.Context(), w.account("b-backup")))
		account.ResourceVersion = ""
		w.Must(w.Create(t.Context(), account))
		if w.step(); w.job("b-remove") != nil {
			t.Errorf("%s: a Job goes on as it", name)
		}
	}
	w := newBackupWorld(t, ambientGoing(), aCluster(), storeSecret, authority(t), anAccount(going(), "Backup"))
	if w.step(); w.job("b-remove") == nil {
		t.Error("there is no Job, though the account is the Backup's own")
	}
}

func (w *backupWorld) account(name string) *corev1.ServiceAccount {
	w.Helper()
	account := &corev1.ServiceAccount{}
	if !w.found(name, account) {
		w.Fatalf("there is no ServiceAccount %s", name)
	}
	return account
}
