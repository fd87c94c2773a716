package backups

import (
	"encoding/json"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/store"
)

// jobFiles are what the Job of the Backup b reads.
func (w *backupWorld) jobFiles() *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	w.Must(w.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, s))
	return s
}

// changesKey has the user change the store's key.
func (w *backupWorld) changesKey(to string) *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	w.Must(w.Get(w.Context(), client.ObjectKeyFromObject(storeSecret), s))
	s.Data["key"] = []byte(to)
	w.Must(w.Update(w.Context(), s))
	return s
}

func TestAJobThatRunsGetsChangedCredentials(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret.DeepCopy(), authority(t))
	w.looks("b")
	before := w.jobFiles()
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	if w.jobFiles().ResourceVersion != before.ResourceVersion {
		t.Error("files that are as they should be were written")
	}

	users := w.changesKey("another")
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	after := w.jobFiles()
	if string(after.Data[store.FileSecretKey]) != "another" ||
		string(after.Data[backupjob.FileTask]) != string(before.Data[backupjob.FileTask]) {
		t.Errorf("the Job has %q", after.Data)
	}

	// What cannot be read is no reason to stop what runs.
	w.Must(w.Delete(t.Context(), users))
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	if w.jobFiles().ResourceVersion != after.ResourceVersion {
		t.Error("files were written although there are none")
	}
}

// TestAJobThatRunsKeepsWhatIsToBeKeptByNow has the user lengthen the policy, and take it out.
func TestAJobThatRunsKeepsWhatIsToBeKeptByNow(t *testing.T) {
	c := aCluster()
	c.Spec.Backup.RetentionPolicy = "7d"
	w := newBackupWorld(t, aBackup("b"), c, storeSecret.DeepCopy(), authority(t))
	w.looks("b")
	for _, policy := range []string{"7d", "30d", ""} {
		w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		c.Spec.Backup.RetentionPolicy = policy
		w.Must(w.Update(t.Context(), c))
		w.is(w.looks("b"), v1alpha1.BackupRunning, "")
		var task backupjob.Task
		w.Must(json.Unmarshal(w.jobFiles().Data[backupjob.FileTask], &task))
		if want := retentionOf(w.backup("b"), c.Spec.Backup); !ptr.Equal(task.Retention, want) || task.ID == "" {
			t.Errorf("with %q it keeps %+v", policy, task.Retention)
		}
	}
}

// It removes what has expired, and merges.
func TestAJobGetsChangedCredentialsAlsoOnceItsBackupIsComplete(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret.DeepCopy(), authority(t))
	b := w.looks("b")
	b.Status.Phase = v1alpha1.BackupCompleted
	w.Must(w.Status().Update(t.Context(), b))
	w.changesKey("another")
	if _, again := w.step(); again != renewEvery || string(w.jobFiles().Data[store.FileSecretKey]) != "another" {
		t.Errorf("again after %s, and the Job has %q", again, w.jobFiles().Data)
	}
	w.changesKey("a third")
	w.jobEnds("b-backup", batchv1.JobComplete)
	if _, again := w.step(); again != 0 || string(w.jobFiles().Data[store.FileSecretKey]) != "another" {
		t.Errorf("after its end again after %s, and the Job has %q", again, w.jobFiles().Data)
	}
}

func TestAJobThatRemovesABackupGetsChangedCredentials(t *testing.T) {
	w := newBackupWorld(t, going(), aCluster(), storeSecret.DeepCopy())
	w.step()
	w.changesKey("another")
	w.step()
	var files corev1.Secret
	if !w.found("b-remove", &files) || string(files.Data[store.FileSecretKey]) != "another" ||
		len(files.Data[backupjob.FileTask]) == 0 {
		t.Errorf("the Job has %q", files.Data)
	}
}

func TestAJobThatMergesGetsChangedCredentialsOfItsOwnStoreOnly(t *testing.T) {
	w := newMergeWorld(t)
	w.step()
	w.changesKey("another")
	if w.step(); string(w.secret().Data[store.FileSecretKey]) != "another" {
		t.Errorf("the Job has %q", w.secret().Data)
	}
	c := w.cluster()
	c.Spec.Backup.ObjectStore.Bucket = "other"
	w.Must(w.Update(t.Context(), c))
	w.changesKey("the other's")
	if w.step(); string(w.secret().Data[store.FileSecretKey]) != "another" {
		t.Errorf("the Job has the credentials of another store: %q", w.secret().Data)
	}
}
