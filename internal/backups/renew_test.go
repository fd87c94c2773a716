package backups

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
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

func TestAJobThatRunsGetsChangedCredentials(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret.DeepCopy(), authority(t))
	w.looks("b")
	before := w.jobFiles()
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	if w.jobFiles().ResourceVersion != before.ResourceVersion {
		t.Error("files that are as they should be were written")
	}

	users := &corev1.Secret{}
	w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(storeSecret), users))
	users.Data["key"] = []byte("another")
	w.Must(w.Update(t.Context(), users))
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
