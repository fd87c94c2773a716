package backups

import (
	"encoding/json"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/store"
)

// paid is the Secret of another Cluster's authority.
func paid() *corev1.Secret {
	return secret("paid-ca", map[string]string{"tls.key": "THE KEY OF ANOTHER CLUSTER"})
}

// thefts are what the token of a Job could write into the status of b if no policy were there.
var thefts = map[string]func(*v1alpha1.BackupStatus){
	"a Secret more": func(s *v1alpha1.BackupStatus) {
		s.ObjectStore.Credentials.SessionToken = &v1alpha1.SecretKeySelector{Name: "paid-ca", Key: "tls.key"}
	},
	"another Secret": func(s *v1alpha1.BackupStatus) {
		s.ObjectStore.Credentials.SecretAccessKey = &v1alpha1.SecretKeySelector{Name: "paid-ca", Key: "tls.key"}
	},
	"another place": func(s *v1alpha1.BackupStatus) {
		s.ObjectStore.Bucket, s.DestinationPath = "mine", "s3://mine/db"
	},
	"no store":         func(s *v1alpha1.BackupStatus) { s.ObjectStore = nil },
	"another's backup": func(s *v1alpha1.BackupStatus) { s.BackupID = "20260101T000000Z-anothers" },
	"no backup":        func(s *v1alpha1.BackupStatus) { s.BackupID = "" },
	"another's Job":    func(s *v1alpha1.BackupStatus) { s.JobName = "other-backup" },
	"no Job":           func(s *v1alpha1.BackupStatus) { s.JobName = "" },
	"to begin again":   func(s *v1alpha1.BackupStatus) { s.Phase, s.ObjectStore, s.JobName = "", nil, "" },
}

// TestAJobsTokenGetsNoSecretOfAnother: what is mounted in the Job's Pod does not follow the status,
// and another Job's Secret is not written to.
func TestAJobsTokenGetsNoSecretOfAnother(t *testing.T) {
	other := aBackup("other")
	other.UID = "other-uid"
	for what, steal := range thefts {
		t.Run(what, func(t *testing.T) {
			theirs := secret("other-backup", map[string]string{store.FileSecretKey: "theirs"})
			job := resources.BackupJob(aCluster(), other, "operator:1")
			w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret.DeepCopy(), authority(t), paid(), theirs, job)
			b := w.looks("b")
			w.is(b, v1alpha1.BackupRunning, "")
			before := w.jobFiles()
			steal(&b.Status)
			w.Must(w.Status().Update(w.Context(), b))
			for range 3 {
				w.looks("b")
			}
			if after := w.jobFiles(); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the Secret of the Job has by now %q", after.Data)
			}
			w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
			if string(theirs.Data[store.FileSecretKey]) != "theirs" || len(theirs.Data) != 1 {
				t.Errorf("the Secret of another Job has by now %q", theirs.Data)
			}
			if w.backup("b").Status.Phase != v1alpha1.BackupRunning {
				t.Errorf("%+v", w.backup("b").Status)
			}
		})
	}
}

// TestAJobsTokenRemovesNoOtherBackup: what goes with a Backup is what its Job was to write.
func TestAJobsTokenRemovesNoOtherBackup(t *testing.T) {
	for what, steal := range thefts {
		t.Run(what, func(t *testing.T) {
			b := aBackup("b")
			b.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
			w := newBackupWorld(t, b, aCluster(), storeSecret, authority(t), paid())
			b = w.looks("b")
			b.Status.Phase = v1alpha1.BackupCompleted
			steal(&b.Status)
			w.Must(w.Status().Update(w.Context(), b))
			w.Must(w.Delete(t.Context(), b))
			for range 3 {
				w.step()
			}
			var files corev1.Secret
			w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-remove"}, &files))
			var task backupjob.Task
			w.Must(json.Unmarshal(files.Data[backupjob.FileTask], &task))
			var config struct{ Bucket string }
			w.Must(json.Unmarshal(files.Data[store.FileConfig], &config))
			if task.Cluster != "db" || task.ID != "20261123T210000Z-12345678" || config.Bucket != "b" ||
				string(files.Data[store.FileSecretKey]) != "hidden" || files.Data[store.FileSessionToken] != nil {
				t.Errorf("removed is %+v from %s by %q", task, config.Bucket, files.Data)
			}
		})
	}
}

// TestACopiedBackupRemovesNothingOfAnother: a manifest that was copied has annotation and
// finalizer of the Backup that it was copied from, and no status.
func TestACopiedBackupRemovesNothingOfAnother(t *testing.T) {
	b := aBackup("b")
	b.Spec.ReclaimPolicy = v1alpha1.ReclaimDelete
	w := newBackupWorld(t, b, aCluster(), storeSecret, authority(t))
	b = w.looks("b")
	copied := aBackup("copied")
	copied.UID, copied.Spec.ReclaimPolicy = "another-uid", v1alpha1.ReclaimDelete
	copied.Annotations, copied.Finalizers = b.Annotations, b.Finalizers
	w.Must(w.Create(t.Context(), copied))
	w.Must(w.Delete(t.Context(), copied))
	w.reconcile(w.r, "copied")
	if w.found("copied", copied) || w.job("copied-remove") != nil {
		t.Errorf("left are %+v and %+v", copied, w.job("copied-remove"))
	}
}

// TestAJobOfAnotherNameIsNotFollowed: one that somebody made in the place of the Backup's.
func TestAJobOfAnotherNameIsNotFollowed(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.looks("b")
	w.Must(w.Delete(t.Context(), w.job("b-backup")))
	w.Must(w.Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "b-backup", Namespace: "ns"}}))
	w.is(w.looks("b"), v1alpha1.BackupFailed, "JobFailed", "the Job b-backup was deleted before the backup ended")
}

// TestWhatExpiresInAStoreOfItsOwnIsNotBelieved: of a Backup that names its store, nothing expires.
func TestWhatExpiresInAStoreOfItsOwnIsNotBelieved(t *testing.T) {
	objs := afterRetention()
	objs[0].(*v1alpha1.Backup).Spec.ObjectStore = aCluster().Spec.Backup.ObjectStore
	w := newBackupWorld(t, objs...)
	w.looks("new")
	if b := w.backup("old"); b.Removed() != nil {
		t.Errorf("%+v", b.Removed())
	}
}
