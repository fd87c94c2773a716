package backupjob

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

const id = "20261123T210000Z-12345678"

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is an API server with a Backup, and a store in a directory.
func world(t *testing.T, phase, uid string) Options {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, v1alpha1.AddToScheme(scheme))
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns", UID: types.UID(uid)}}
	b.Status = v1alpha1.BackupStatus{Phase: phase, Error: "of before",
		Progress: &v1alpha1.BackupProgress{Percent: "3%"}}
	dir := storetest.Dir(t)
	text, err := json.Marshal(Task{Namespace: "ns", Backup: "b", BackupUID: "backup-uid", ID: id, Cluster: "db",
		ClusterUID: "cluster-uid", Instance: "db-3", Host: "127.0.0.1", Port: 1})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, FileTask), text, 0o600))
	return Options{StoreDir: dir, TLSDir: t.TempDir(), AccountDir: t.TempDir(), Log: slog.New(slog.DiscardHandler),
		Kubernetes: fake.NewClientBuilder().WithScheme(scheme).WithObjects(b).WithStatusSubresource(b).Build()}
}

func status(t *testing.T, o Options) v1alpha1.BackupStatus {
	t.Helper()
	var b v1alpha1.Backup
	must(t, o.Kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b"}, &b))
	return b.Status
}

func TestWhatCannotBeTakenHasFailed(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid") // without a certificate
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupFailed || s.Reason != string(core.BackupNotTaken) ||
		!strings.Contains(s.Error, "certificate of the backup") || s.StoppedAt == nil || s.Progress != nil {
		t.Errorf("%+v", s)
	}
}

func TestAKeyThatIsNoneIsTold(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	must(t, os.WriteFile(filepath.Join(o.StoreDir, seal.FileIdentity), []byte("secret"), 0o600))
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupFailed || !strings.Contains(s.Error, string(core.KeyInvalid)) ||
		!strings.Contains(s.Error, "age-keygen") {
		t.Errorf("%+v", s)
	}
}

// aWhole is a backup that is whole in the store of a world.
func aWhole(t *testing.T, o Options) *backup.Manifest {
	t.Helper()
	s, err := store.Open(o.StoreDir)
	must(t, err)
	began := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	m := &backup.Manifest{Summary: backup.Summary{ID: id, Method: "clone", Cluster: backup.Identity{Format: 1,
		Cluster: "db", UID: "cluster-uid"}, Instance: "db-2", Server: "9.7.4",
		Begin: began, End: began.Add(10 * time.Second), RawSize: 1000, StoredSize: 100,
		Recipient: "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p",
		BeginGTID: gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-5")},
		Parts: []backup.Part{{Name: "part-00000001-000000.zst", State: clone.StateFileCopy.String(), Raw: 1000,
			Stored: 100, Records: 1}}}
	text, err := m.Encode()
	must(t, err)
	must(t, s.Create(t.Context(), "db/base/"+id+"/manifest.json", text))
	return m
}

func TestAPodThatComesAfterTheManifestSaysSo(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	m := aWhole(t, o)
	must(t, Run(t.Context(), o))
	got := status(t, o)
	if got.InstanceName != "" || got.BackupID != "" {
		t.Errorf("the Job wrote what only the operator may: %s, %s", got.InstanceName, got.BackupID)
	}
	if got.Phase != v1alpha1.BackupCompleted || got.Error != "" || got.Size != 1000 ||
		got.EncryptedTo != m.Recipient || got.StoredSize != 100 || got.SHA256 == "" ||
		got.Progress.Percent != "100%" || got.Progress.BytesPerSecond != 100 ||
		got.StoppedAt.Sub(got.StartedAt.Time) != 10*time.Second || !strings.HasSuffix(got.BeginGTID, ":1-5") {
		t.Errorf("%+v %+v", got, got.Progress)
	}
}

// TestWhenABackupBeganIsByTheClockOfTheOperator, who holds it against when a gap in the archive was found, and not by
// that of the Job's machine, which may be wrong.
func TestWhenABackupBeganIsByTheClockOfTheOperator(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	m := aWhole(t, o)
	var b v1alpha1.Backup
	must(t, o.Kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b"}, &b))
	began := metav1.NewTime(m.Begin.Add(time.Hour))
	b.Status.StartedAt = &began
	must(t, o.Kubernetes.Status().Update(t.Context(), &b))
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupCompleted || !s.StartedAt.Equal(&began) {
		t.Errorf("%s: the operator began it at %s, and now it says %s", s.Phase, began, s.StartedAt)
	}
}

func TestABackupThatMayBeWholeHasNotFailed(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	aWhole(t, o)
	config := filepath.Join(o.StoreDir, store.FileConfig)
	right, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, []byte("{"), 0o600))
	if err := Run(t.Context(), o); !errors.Is(err, store.Misconfigured) {
		t.Errorf("%v", err)
	}
	if s := status(t, o); s.Phase != v1alpha1.BackupRunning || s.Progress == nil ||
		!strings.Contains(s.Error, "not known whether the backup is whole") {
		t.Errorf("%+v", s)
	}
	must(t, os.WriteFile(config, right, 0o600))
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupCompleted || s.Error != "" {
		t.Errorf("%+v", s)
	}
}

func TestAStoreThatNoPodHasWrittenToIsToldAtOnce(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	b := &v1alpha1.Backup{}
	must(t, o.Kubernetes.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b"}, b))
	b.Status.Progress = nil
	must(t, o.Kubernetes.Status().Update(t.Context(), b))
	must(t, os.WriteFile(filepath.Join(o.StoreDir, store.FileConfig), []byte("{"), 0o600))
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupFailed || !strings.Contains(s.Error, store.Misconfigured.Name) {
		t.Errorf("%+v", s)
	}
}

func TestAManifestThatCouldNotBeWrittenIsLookedFor(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	s, err := store.Open(o.StoreDir)
	must(t, err)
	task, err := readTask(o.StoreDir)
	must(t, err)
	var open *openError
	if _, err := settle(t.Context(), s, task, nil, backup.BackupExists); !errors.As(err, &open) {
		t.Errorf("it is not there: %v", err)
	}
	if _, err := settle(t.Context(), s, task, nil, store.Full); errors.As(err, &open) || !errors.Is(err, store.Full) {
		t.Errorf("no manifest was tried: %v", err)
	}
	m := aWhole(t, o)
	is, err := settle(t.Context(), s, task, nil, backup.BackupExists)
	if err != nil || is.RawSize != m.RawSize {
		t.Errorf("it is there: %v, %v", is, err)
	}
	must(t, s.Put(t.Context(), "db/base/"+id+"/manifest.json", []byte("{}")))
	_, err = settle(t.Context(), s, task, nil, backup.BackupExists)
	if errors.As(err, &open) || err == nil {
		t.Errorf("it is no manifest: %v", err)
	}
}

// TestABackupOfAnotherClusterIsRefusedByName before anything is taken, and where the manifest turns out to be of
// another one.
func TestABackupOfAnotherClusterIsRefusedByName(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	task, err := readTask(o.StoreDir)
	must(t, err)
	aWhole(t, o)
	task.ClusterUID = "later-uid"
	text, err := json.Marshal(task)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(o.StoreDir, FileTask), text, 0o600))
	s, err := store.Open(o.StoreDir)
	must(t, err)
	var open *openError
	if _, err := settle(t.Context(), s, task, nil, backup.BackupExists); errors.As(err, &open) ||
		!errors.Is(err, backup.ArchiveTaken) {
		t.Errorf("where one was there: %v", err)
	}
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupFailed || !strings.Contains(s.Error, "ArchiveTaken") ||
		!strings.Contains(s.Error, "cluster-uid") || !strings.Contains(s.Error, "later-uid") {
		t.Errorf("before: %+v", s)
	}
}

func TestItIsWrittenDownThatTheStoreIsWrittenToBeforeItIs(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "backup-uid")
	tell := &teller{o: o, backup: &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "ns"}}}
	if tell.hasBegun() {
		t.Error("it has begun before")
	}
	must(t, tell.begins(t.Context()))
	if s := status(t, o); s.Progress == nil || s.Progress.Bytes != 0 {
		t.Errorf("%+v", s.Progress)
	}
}

func TestAJobDoesNothingForAnotherBackupOrOneThatIsOver(t *testing.T) {
	o := world(t, v1alpha1.BackupRunning, "another-uid")
	if err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is another one by now") {
		t.Errorf("%v", err)
	}
	if s := status(t, o); s.Phase != v1alpha1.BackupRunning {
		t.Errorf("%+v", s)
	}
	o = world(t, v1alpha1.BackupFailed, "backup-uid")
	must(t, Run(t.Context(), o))
	if s := status(t, o); s.Phase != v1alpha1.BackupFailed || s.Error != "of before" {
		t.Errorf("%+v", s)
	}
}

func TestProgressTellsWhenItEnds(t *testing.T) {
	began := time.Unix(1000, 0)
	got := progressOf(backup.Progress{Done: 30, Expected: 120}, began, began.Add(10*time.Second))
	if got.Percent != "25%" || got.BytesPerSecond != 3 ||
		!got.ExpectedEnd.Equal(&metav1.Time{Time: began.Add(40 * time.Second)}) {
		t.Errorf("%+v", got)
	}
	if got := progressOf(backup.Progress{}, began, began); got.Percent != "0%" || got.ExpectedEnd != nil {
		t.Errorf("%+v", got)
	}
}
