package backups

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backupjob"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
	"cnmsql.co/internal/layout"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/testapi"
)

// backupDay is when the world of a Backup begins.
var backupDay = time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)

// backupWorld is an API server, and the Reconciler on it.
type backupWorld struct {
	*testapi.Server
	r *Reconciler
}

func newBackupWorld(t *testing.T, objs ...client.Object) *backupWorld {
	t.Helper()
	if !slices.ContainsFunc(objs, func(o client.Object) bool { return o.GetName() == "db-control" }) {
		objs = append(objs, accounts(t))
	}
	w := &backupWorld{Server: testapi.New(t, backupDay, objs...)}
	w.r = &Reconciler{Client: w, Live: w, Recorder: w.Recorder(), OperatorImage: "operator:1", Now: w.Now}
	return w
}

// looks has the Reconciler look at a Backup until it has nothing to do at once.
func (w *backupWorld) looks(name string) *v1alpha1.Backup {
	w.Helper()
	_, err := w.r.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: name}})
	w.Must(err)
	return w.backup(name)
}

// backup reads a Backup, which never fails.
func (w *backupWorld) backup(name string) *v1alpha1.Backup {
	w.Helper()
	b := &v1alpha1.Backup{}
	w.Aside(func() error { return w.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: name}, b) })
	return b
}

func (w *backupWorld) is(b *v1alpha1.Backup, phase string, reason core.Reason, words ...string) {
	w.Helper()
	if b.Status.Phase != phase || b.Status.Reason != string(reason) {
		w.Errorf("%s is %s, %s: %s; want %s, %s", b.Name, b.Status.Phase, b.Status.Reason,
			b.Status.Error, phase, reason)
	}
	for _, word := range words {
		if !strings.Contains(b.Status.Error, word) {
			w.Errorf("%s does not say %q: %s", b.Name, word, b.Status.Error)
		}
	}
}

func aBackup(name string) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: "12345678-of-b",
		CreationTimestamp: metav1.NewTime(backupDay)}}
	b.Spec.Cluster.Name = "db"
	return b
}

// aCluster has a primary and two replicas, and says where backups go.
func aCluster() *v1alpha1.Cluster {
	established := metav1.NewMicroTime(backupDay)
	c := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", UID: "cluster-uid"}}
	c.Spec.Instances = 3
	c.Spec.Backup = &v1alpha1.BackupDefaults{MaxBytesPerSecond: 7, Compression: "none"}
	c.Spec.Backup.ObjectStore = &v1alpha1.ObjectStoreSpec{Bucket: "b", Path: "p", Endpoint: "https://s3.example.com/",
		Credentials: &v1alpha1.StoreCredentials{AccessKeyID: &v1alpha1.SecretKeySelector{Name: "store", Key: "id"},
			SecretAccessKey: &v1alpha1.SecretKeySelector{Name: "store", Key: "key"}}}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	c.Status.EstablishedAt, c.Status.PrimaryEpoch, c.Status.CurrentPrimary = &established, 4, "db-1"
	for i, role := range []string{v1alpha1.RolePrimary, v1alpha1.RoleReplica, v1alpha1.RoleReplica} {
		c.Status.InstancesReported = append(c.Status.InstancesReported,
			v1alpha1.InstanceStatus{Name: fmt.Sprintf("db-%d", i+1), State: string(core.Running),
				Role: role, Ready: true})
	}
	return c
}

func secret(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func authority(t *testing.T) *corev1.Secret {
	t.Helper()
	b, err := pki.NewCA("db", backupDay)
	if err != nil {
		t.Fatal(err)
	}
	return resources.CASecret(aCluster(), b)
}

// accounts is the Secret with the account of Backups.
func accounts(t *testing.T) *corev1.Secret {
	t.Helper()
	s, err := resources.ControlSecret(aCluster(), nil, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestABackupWaitsUntilThereIsAnAccountForIt, which the operator makes of a Cluster of an earlier release.
func TestABackupWaitsUntilThereIsAnAccountForIt(t *testing.T) {
	for name, had := range map[string]*corev1.Secret{
		"no Secret":       secret("db-control-of-another", nil),
		"an earlier one":  accounts(t),
		"somebody else's": accounts(t),
	} {
		t.Run(name, func(t *testing.T) {
			delete(had.Data, layout.KeyBackupUsername)
			if name == "somebody else's" {
				had = accounts(t)
				had.OwnerReferences = nil
			}
			objs := []client.Object{aBackup("b"), aCluster(), storeSecret, authority(t), had}
			w := &backupWorld{Server: testapi.New(t, backupDay, objs...)}
			w.r = &Reconciler{Client: w, Live: w, Recorder: w.Recorder(), OperatorImage: "operator:1", Now: w.Now}
			w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupAccountMissing, "db-control")
			if had.Name == "db-control" {
				w.Must(w.Delete(t.Context(), had))
			}
			w.Must(w.Create(t.Context(), accounts(t)))
			w.is(w.looks("b"), v1alpha1.BackupRunning, "")
		})
	}
}

var storeSecret = secret("store", map[string]string{"id": "me", "key": "hidden"})

func TestABackupIsTakenFromTheLastReplica(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	b := w.looks("b")
	w.is(b, v1alpha1.BackupRunning, "")
	s := b.Status
	if s.InstanceName != "db-3" || s.JobName != "b-backup" || s.DestinationPath != "s3://b/p/db" ||
		s.BackupID != "20261123T210000Z-12345678" || s.ObjectStore == nil {
		t.Errorf("%+v", s)
	}
	var job batchv1.Job
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &job))
	if c := job.Spec.Template.Spec.Containers[0]; c.Image != "operator:1" || len(c.Env) != 0 {
		t.Errorf("%+v", c)
	}
	var files corev1.Secret
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &files))
	var task backupjob.Task
	w.Must(json.Unmarshal(files.Data[backupjob.FileTask], &task))
	if task.Instance != "db-3" || task.Epoch != 4 || task.ClusterUID != "cluster-uid" || task.MaxBytesPerSecond != 7 ||
		!task.Uncompressed || task.ID != s.BackupID || task.BackupUID != string(b.UID) {
		t.Errorf("%+v", task)
	}
	if task.Primary != "db-1" || task.PrimaryHost != "db-1.ns.svc" {
		t.Errorf("the Job waits for what %s at %s has", task.Primary, task.PrimaryHost)
	}
	if string(files.Data[store.FileSecretKey]) != "hidden" || !strings.Contains(string(files.Data[store.FileConfig]),
		`"https://s3.example.com"`) {
		t.Errorf("%s", files.Data)
	}
	if told := <-w.Told; !strings.Contains(told, "BackupStarted") {
		t.Errorf("told %s", told)
	}
}

func TestABackupIsTakenOfTheNearestReplica(t *testing.T) {
	w := newBackupWorld(t, aCluster(), aBackup("now"), storeSecret, authority(t))
	w.r.Lags = func(namespace, instance string) core.Fact[time.Duration] {
		behind := map[string]time.Duration{"ns/db-2": 0, "ns/db-3": time.Minute}
		return core.Known(behind[namespace+"/"+instance], backupDay, backupDay)
	}
	if b := w.looks("now"); b.Status.InstanceName != "db-2" {
		t.Errorf("it is taken of %s: %+v", b.Status.InstanceName, b.Status)
	}
}

// TestAClusterWithoutAReadyReplicaIsBackedUp: of the primary, after a while, and it is told why.
func TestAClusterWithoutAReadyReplicaIsBackedUp(t *testing.T) {
	c := aCluster()
	c.Status.InstancesReported[1].Ready, c.Status.InstancesReported[2].Ready = false, false
	w := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor, "after 5 minutes without one")
	w.Clock = w.Clock.Add(backup.StandbyPatience)
	b := w.looks("b")
	w.is(b, v1alpha1.BackupRunning, "")
	if b.Status.InstanceName != "db-1" || !strings.Contains(b.Status.InstanceReason, "none of the 3 instances is a") {
		t.Errorf("%+v", b.Status)
	}
	<-w.Told
	if told := <-w.Told; !strings.Contains(told, "PrimaryBackedUp the primary db-1 of db is backed up") {
		t.Errorf("told %s", told)
	}
}

// TestOnlyTheWaitForAReplicaHasThePrimaryTaken: what a Backup waits for otherwise tells nothing of the
// replicas, before or in between.
func TestOnlyTheWaitForAReplicaHasThePrimaryTaken(t *testing.T) {
	for reason, waits := range map[core.Reason]func(*v1alpha1.ClusterStatus){
		core.BackupNotYet: func(s *v1alpha1.ClusterStatus) { s.EstablishedAt = nil },
		core.BackupJoinGoesFirst: func(s *v1alpha1.ClusterStatus) {
			s.InstancesReported[2].State = string(core.Cloning)
		},
		core.BackupUndecided: func(s *v1alpha1.ClusterStatus) {
			recoveries := []v1alpha1.GroupRecovery{{Epoch: 4}}
			s.GroupReplication = &v1alpha1.GroupReplicationStatus{Recoveries: recoveries}
		},
	} {
		t.Run(string(reason), func(t *testing.T) {
			w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
			become := func(change func(*v1alpha1.ClusterStatus)) {
				var c v1alpha1.Cluster
				w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db"}, &c))
				c.Status = aCluster().Status
				c.Status.InstancesReported[1].Ready, c.Status.InstancesReported[2].Ready = false, false
				change(&c.Status)
				w.Must(w.Status().Update(t.Context(), &c))
			}
			for range 2 {
				become(waits)
				w.is(w.looks("b"), v1alpha1.BackupPending, reason)
				w.Clock = w.Clock.Add(2 * backup.StandbyPatience)
				become(func(*v1alpha1.ClusterStatus) {})
				w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
				w.Clock = w.Clock.Add(backup.StandbyPatience - time.Second)
				w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
			}
			w.Clock = w.Clock.Add(time.Second)
			b := w.looks("b")
			w.is(b, v1alpha1.BackupRunning, "")
			if b.Status.InstanceName != "db-1" || b.Status.NoInstanceSince != nil {
				t.Errorf("%+v", b.Status)
			}
		})
	}
}

// TestWhomTheGroupWentOnWithoutIsNotBackedUp, though it may call itself ready: it hears nothing.
func TestWhomTheGroupWentOnWithoutIsNotBackedUp(t *testing.T) {
	c := aCluster()
	c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{Bootstrapped: true, ViewID: "1:2",
		LeftOut: []v1alpha1.LeftOutMember{{Instance: "db-3"}}}
	w := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t))
	if b := w.looks("b"); b.Status.InstanceName != "db-2" {
		t.Errorf("%s is backed up", b.Status.InstanceName)
	}
}

func TestAPrimaryIsNotBackedUpInsteadWhileItsCommitsHang(t *testing.T) {
	durable := metav1.Condition{Type: v1alpha1.ConditionDurable, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonCommitsHang}
	for how, change := range map[string]func(*v1alpha1.ClusterStatus){
		"they hang":          func(s *v1alpha1.ClusterStatus) { s.Conditions = append(s.Conditions, durable) },
		"there is no quorum": func(s *v1alpha1.ClusterStatus) { s.Conditions[0].Status = metav1.ConditionFalse },
		"nobody knows":       func(s *v1alpha1.ClusterStatus) { s.Conditions = nil },
	} {
		t.Run(how, func(t *testing.T) {
			c := aCluster()
			c.Status.InstancesReported[1].Ready, c.Status.InstancesReported[2].Ready = false, false
			change(&c.Status)
			w := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t))
			w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
			w.Clock = w.Clock.Add(waitLimit)
			w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor, "its commits hang")
		})
	}
}

// TestABackupThatIsDeletedRunsAsLongAsItsJob holds the instance to one copy at a time: what the Job reads
// goes on until its Pod is gone.
func TestABackupThatIsDeletedRunsAsLongAsItsJob(t *testing.T) {
	first, next := aBackup("b"), aBackup("next")
	first.Spec.ReclaimPolicy, next.UID = v1alpha1.ReclaimDelete, "87654321-of-next"
	w := newBackupWorld(t, first, next, aCluster(), storeSecret, authority(t))
	w.looks("b")
	w.Must(w.Delete(t.Context(), w.backup("b")))
	w.is(w.looks("next"), v1alpha1.BackupPending, core.BackupOtherRuns, "the Backup b ")
	w.Must(w.Delete(t.Context(), w.job("b-backup")))
	w.is(w.looks("next"), v1alpha1.BackupRunning, "")
}

func TestTheJobIsGivenTheKeyOfTheEncryption(t *testing.T) {
	one, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	c := aCluster()
	c.Spec.Backup.ObjectStore.Encryption = &v1alpha1.StoreEncryption{Identity: v1alpha1.SecretKeySelector{Name: "age",
		Key: "identity"}}
	w := newBackupWorld(t, aBackup("b"), c, storeSecret, authority(t),
		secret("age", map[string]string{"identity": one.String()}))
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	var files corev1.Secret
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &files))
	if string(files.Data[seal.FileIdentity]) != one.String() {
		t.Errorf("%q", files.Data[seal.FileIdentity])
	}
}

func TestANameThatSomebodyElseHasIsLeftAlone(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t),
		secret("b-backup", map[string]string{"mine": "1"}))
	w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupNameTaken, "the Secret b-backup")
	var s corev1.Secret
	w.Must(w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &s))
	if string(s.Data["mine"]) != "1" {
		t.Error("it was changed")
	}
}

// ends has the Job of a Backup end.
func (w *backupWorld) ends(as batchv1.JobConditionType) {
	w.Helper()
	var job batchv1.Job
	w.Must(w.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &job))
	job.Status.Conditions = []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue,
		Message: "BackoffLimitExceeded"}}
	w.Must(w.Status().Update(w.Context(), &job))
}

func TestAJobThatEndsBeforeTheBackupFailsIt(t *testing.T) {
	for how, end := range map[string]func(*backupWorld){
		"failed":      func(w *backupWorld) { w.ends(batchv1.JobFailed) },
		"did not say": func(w *backupWorld) { w.ends(batchv1.JobComplete) },
		"deleted": func(w *backupWorld) {
			w.Must(w.Delete(w.Context(),
				&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "b-backup", Namespace: "ns"}}))
		},
	} {
		t.Run(how, func(t *testing.T) {
			w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
			w.looks("b")
			w.is(w.looks("b"), v1alpha1.BackupRunning, "")
			end(w)
			w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupJobFailed, "create another Backup")
			// It stays so, and is told once.
			before := w.backup("b").ResourceVersion
			if w.looks("b").ResourceVersion != before {
				t.Error("a Backup that has failed was changed")
			}
		})
	}
}

func TestABackupThatTheJobCompletedIsToldOnce(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.looks("b")
	<-w.Told
	b := w.backup("b")
	b.Status.Phase = v1alpha1.BackupCompleted
	w.Must(w.Status().Update(t.Context(), b))
	w.ends(batchv1.JobComplete)
	for range 3 {
		w.is(w.looks("b"), v1alpha1.BackupCompleted, "")
	}
	if len(w.Told) != 1 {
		t.Errorf("told %d times", len(w.Told))
	}
}

// TestABackupOutlivesAnyCallThatFails: an operator that ends at any moment, and starts again,
// takes the backup once, from one instance.
func TestABackupOutlivesAnyCallThatFails(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.looks("b")
	calls := w.Calls
	if calls < 10 {
		t.Fatalf("only %d calls", calls)
	}
	for _, late := range []bool{false, true} {
		for failAt := 1; failAt <= calls; failAt++ {
			w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
			w.FailAt, w.Late = failAt, late
			for tries := 0; w.backup("b").Status.JobName == "" && tries < 5; tries++ {
				_, _ = w.r.Reconcile(t.Context(),
					ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "b"}})
			}
			b := w.backup("b")
			w.FailAt = 0
			var jobs batchv1.JobList
			w.Must(w.List(t.Context(), &jobs))
			if b.Status.Phase != v1alpha1.BackupRunning || len(jobs.Items) != 1 || b.Status.InstanceName != "db-3" {
				t.Errorf("call %d fails, late %t: %+v, %d jobs", failAt, late, b.Status, len(jobs.Items))
			}
		}
	}
}
