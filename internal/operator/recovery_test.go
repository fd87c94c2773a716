package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

var someStore = &v1alpha1.ObjectStoreSpec{Bucket: "b", Region: "r", Credentials: &v1alpha1.StoreCredentials{
	AccessKeyID:     &v1alpha1.SecretKeySelector{Name: "store", Key: "id"},
	SecretAccessKey: &v1alpha1.SecretKeySelector{Name: "store", Key: "key"}}}

func storeSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "store", Namespace: "ns"},
		Data: map[string][]byte{"id": []byte("me"), "key": []byte("hidden")}}
}

func aDoneBackup(phase string) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: "ns"}}
	b.Spec.Cluster.Name = "old"
	b.Status = v1alpha1.BackupStatus{Phase: phase, BackupID: "20261123T000000Z-1", ObjectStore: someStore}
	return b
}

// anExpiredBackup is Completed, and not in the store any more.
func anExpiredBackup() *v1alpha1.Backup {
	b := aDoneBackup(v1alpha1.BackupCompleted)
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionBackupStored,
		Status: metav1.ConditionFalse,
		Reason: string(core.ReasonExpired), Message: "it had expired"})
	return b
}

// aChangedBackup is Completed, and its status says another place than was recorded.
func aChangedBackup(t *testing.T) *v1alpha1.Backup {
	b := aDoneBackup(v1alpha1.BackupCompleted)
	must(t, resources.Record{ID: b.Status.BackupID, Instance: "old-1", Store: someStore}.WriteTo(b))
	b.Status.BackupID, b.Status.ObjectStore = "anothers", someStore.DeepCopy()
	b.Status.ObjectStore.Credentials.SecretAccessKey = &v1alpha1.SecretKeySelector{Name: "paid-ca", Key: "tls.key"}
	return b
}

// aGoingBackup is Completed, and is deleted with its data.
func aGoingBackup() *v1alpha1.Backup {
	b := aDoneBackup(v1alpha1.BackupCompleted)
	now := metav1.Now()
	b.DeletionTimestamp, b.Finalizers = &now, []string{v1alpha1.FinalizerStoredBackup}
	return b
}

// recovering is a Cluster that begins with a backup.
func recovering(r v1alpha1.RecoverySpec) *v1alpha1.Cluster {
	c := aCluster()
	c.Status.EstablishedAt = nil
	c.Spec.Bootstrap = &v1alpha1.BootstrapSpec{Recovery: &r}
	c.Spec.ExternalClusters = []v1alpha1.ExternalCluster{{Name: "old", ObjectStore: someStore}, {Name: "bare"}}
	return c
}

// begun is what a Cluster is to begin with, what there is of it, and what is made of that.
type begun struct {
	spec    v1alpha1.RecoverySpec
	objs    []client.Object
	want    recovery.Task
	refused string
}

func beginnings(t *testing.T) map[string]begun {
	byName := v1alpha1.RecoverySpec{Backup: &v1alpha1.BackupReference{Name: "monday"}}
	return map[string]begun{
		"a Backup": {spec: byName, objs: []client.Object{aDoneBackup(v1alpha1.BackupCompleted), storeSecret()},
			want: recovery.Task{Cluster: "old", BackupID: "20261123T000000Z-1"}},
		"a changed Backup": {spec: byName, objs: []client.Object{aChangedBackup(t), storeSecret()},
			want: recovery.Task{Cluster: "old", BackupID: "20261123T000000Z-1"}},
		"a Backup that runs": {spec: byName, objs: []client.Object{aDoneBackup(v1alpha1.BackupRunning),
			storeSecret()}, refused: "is Running, and only a Completed one"},
		"a Backup that is gone": {spec: byName, objs: []client.Object{anExpiredBackup(), storeSecret()},
			refused: "not in the store any more: it had expired"},
		"one that is deleted": {spec: byName, objs: []client.Object{aGoingBackup(), storeSecret()},
			refused: "is being deleted"},
		"no Backup": {spec: byName, objs: []client.Object{storeSecret()},
			refused: "there is no Backup monday"},
		"no Secret": {spec: byName, objs: []client.Object{aDoneBackup(v1alpha1.BackupCompleted)},
			refused: "the Secret store"},
		"a source": {spec: v1alpha1.RecoverySpec{Source: "old"}, objs: []client.Object{storeSecret()},
			want: recovery.Task{Cluster: "old"}},
		"a source without any": {spec: v1alpha1.RecoverySpec{Source: "bare"}, objs: []client.Object{storeSecret()},
			refused: "has no such name with an objectStore"},
		"a time": {spec: v1alpha1.RecoverySpec{Source: "old", BackupID: "x",
			RecoveryTarget: &v1alpha1.RecoveryTarget{TargetTime: "2026-11-23T21:04:05.5+02:00"}},
			objs: []client.Object{storeSecret()},
			want: recovery.Task{Cluster: "old", BackupID: "x",
				Target: recovery.Target{Time: time.Date(2026, 11, 23, 19, 4, 5, 5e8, time.UTC)}}},
		"no set": {spec: v1alpha1.RecoverySpec{Source: "old",
			RecoveryTarget: &v1alpha1.RecoveryTarget{TargetGTID: "the one of noon"}},
			objs: []client.Object{storeSecret()}, refused: "targetGTID"},
	}
}

func TestTheBackupThatAClusterBeginsWith(t *testing.T) {
	for name, tc := range beginnings(t) {
		t.Run(name, func(t *testing.T) {
			a, c := newAPI(t, tc.objs...), recovering(tc.spec)
			p := newPrerequisites(a, a)
			task, _, err := p.recoverySource(t.Context(), c)
			if err == nil {
				err = p.recovery(t.Context(), c)
			}
			var no *userError
			switch {
			case tc.refused != "" && (!errors.As(err, &no) || no.Reason != core.ProblemRecoverySource ||
				!strings.Contains(no.Message, tc.refused)):
				t.Fatalf("not refused as %q: %v", tc.refused, err)
			case tc.refused != "":
				return
			}
			must(t, err)
			if !task.Target.Time.Equal(tc.want.Target.Time) {
				t.Errorf("the time is %s", task.Target.Time)
			}
			if task.Target.Time = tc.want.Target.Time; task != tc.want {
				t.Errorf("%+v, want %+v", task, tc.want)
			}
			var s corev1.Secret
			must(t, a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-recovery"}, &s))
			if string(s.Data[store.FileSecretKey]) != "hidden" || len(s.Data[recovery.FileTask]) == 0 {
				t.Errorf("%s", s.Data)
			}
			// Once there are data, the credentials go.
			now := metav1.NowMicro()
			c.Status.EstablishedAt = &now
			must(t, p.recovery(t.Context(), c))
			if err := a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c-recovery"}, &s); err == nil {
				t.Error("the credentials are still there")
			}
		})
	}
}

// TestAThrowAwayClusterIsToldWhoseBackupsItTries: of two Clusters of one name only the UID tells
// which has them.
func TestAThrowAwayClusterIsToldWhoseBackupsItTries(t *testing.T) {
	c := recovering(v1alpha1.RecoverySpec{Source: "old"})
	owner := &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "old", UID: "u-2"}}
	c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner,
		v1alpha1.GroupVersion.WithKind("Cluster"))}
	for label, want := range map[string]string{"": "", "old": "u-2"} {
		c.Labels = map[string]string{v1alpha1.LabelVerifies: label}
		a := newAPI(t, storeSecret())
		task, _, err := newPrerequisites(a, a).recoverySource(t.Context(), c)
		must(t, err)
		if task.Owner != want {
			t.Errorf("with the label %q the owner is %q", label, task.Owner)
		}
	}
}

func TestAKeyThatIsNoneIsToldBeforeARestore(t *testing.T) {
	c := recovering(v1alpha1.RecoverySpec{Source: "old"})
	encrypted := someStore.DeepCopy()
	encrypted.Encryption = &v1alpha1.StoreEncryption{Identity: v1alpha1.SecretKeySelector{Name: "store", Key: "id"}}
	c.Spec.ExternalClusters[0].ObjectStore = encrypted
	a := newAPI(t, storeSecret())
	var no *userError
	err := newPrerequisites(a, a).recovery(t.Context(), c)
	if !errors.As(err, &no) || no.Reason != core.KeyInvalid ||
		!strings.Contains(no.Message, `the key "id" of the Secret store`) {
		t.Errorf("%v", err)
	}
	// Of the archive it is the instance that says it: what is there already goes on.
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: encrypted,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	must(t, newPrerequisites(a, a).archive(t.Context(), c, new([]core.Problem)))
	var s corev1.Secret
	must(t, a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: resources.Names("c").ArchiveSecret()}, &s))
	if string(s.Data[seal.FileIdentity]) != "me" {
		t.Errorf("%s", s.Data)
	}
}

// TestAMissingSecretOfTheArchiveKeepsNobodyFromWriting: it is no hindrance.
func TestAMissingSecretOfTheArchiveKeepsNobodyFromWriting(t *testing.T) {
	c := aCluster()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	a := newAPI(t)
	must(t, newPrerequisites(a, a).archive(t.Context(), c, new([]core.Problem)))
	a = newAPI(t, storeSecret())
	live := newAPI(t, storeSecret())
	p := newPrerequisites(a, live)
	must(t, p.archive(t.Context(), c, new([]core.Problem)))
	var s corev1.Secret
	must(t, a.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: resources.Names("c").ArchiveSecret()}, &s))
	// The user's Secret is not read at each look.
	asked := live.gets
	must(t, p.archive(t.Context(), c, new([]core.Problem)))
	if live.gets != asked {
		t.Errorf("the API server was asked %d times more", live.gets-asked)
	}
	c.Generation++
	must(t, p.archive(t.Context(), c, new([]core.Problem)))
	if live.gets == asked {
		t.Error("another spec was not looked at")
	}
}

// TestAnArchiveThatCannotMoveIsTold has the store changed to one whose Secret is missing: the instances go
// on archiving where they did, and nobody else says so.
func TestAnArchiveThatCannotMoveIsTold(t *testing.T) {
	c := aCluster()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore.DeepCopy(),
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	a := newAPI(t, storeSecret())
	p := newPrerequisites(a, a)
	told := func() (out []core.Problem) {
		t.Helper()
		_, asides, _ := p.ensure(t.Context(), c)
		for _, is := range asides {
			if is.Reason == core.BackupStoreSecret {
				out = append(out, is)
			}
		}
		return out
	}
	if is := told(); len(is) > 0 {
		t.Errorf("all is there, and it is told %+v", is)
	}
	c.Spec.Backup.ObjectStore.Bucket, c.Spec.Backup.ObjectStore.Credentials.AccessKeyID.Name = "other", "absent"
	c.Generation++
	if is := told(); len(is) != 1 || !strings.Contains(is[0].Message, "the Secret absent") ||
		!strings.Contains(is[0].Message, "go on with the previous object store") {
		t.Errorf("it is told %+v", is)
	}
}

// TestTheStatusTellsTheLastPartOfABurstAndWhatPilesUp: by the last GTIDs one sees what a disaster
// cost, and files pile up exactly while nothing is archived.
func TestTheStatusTellsTheLastPartOfABurstAndWhatPilesUp(t *testing.T) {
	moment := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	c := aCluster()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	s := &v1alpha1.ClusterStatus{}
	look := func(after time.Duration, a core.Archive) v1alpha1.ContinuousArchivingStatus {
		at := moment.Add(after)
		in := core.Instance{Name: "c-1", Report: core.Known(core.Report{WritableEpoch: 1, Archive: &a}, at, at)}
		describeArchive(s, c, core.Observation{Now: at, Instances: []core.Instance{in}}, backed{})
		return *s.ContinuousArchiving
	}
	look(0, core.Archive{GTIDs: "a:1", At: moment})
	last := core.Archive{GTIDs: "a:2", At: moment.Add(50*time.Second + 700*time.Millisecond)}
	if is := look(51*time.Second, last); is.LastArchivedGTID != "a:1" {
		t.Errorf("it is written with each part: %+v", is)
	}
	is := look(2*time.Minute, last)
	if is.LastArchivedGTID != "a:2" || is.LastArchivedTime.Nanosecond() != 0 {
		t.Errorf("of a burst it says %+v", is)
	}
	if again := look(time.Hour, last); !again.LastArchivedTime.Equal(is.LastArchivedTime) {
		t.Errorf("it changes without a reason: %+v", again)
	}
	last.Failure, last.PendingFiles = "StoreUnreachable", new(700)
	if is := look(2*time.Hour, last); is.PendingFiles != 700 || is.LastArchivedGTID != "a:2" {
		t.Errorf("700 binary logs wait, and it says %+v", is)
	}
	if is := look(3*time.Hour, core.Archive{Failure: "StoreUnreachable"}); is.PendingFiles != 700 {
		t.Errorf("how many wait is not known, and it says %+v", is)
	}
}

// TestTheStatusSaysSinceWhenTheArchiveLacksNothing has a gap, and a move there and back, remembered when
// Backups have closed them: what was written before them cannot be restored.
func TestTheStatusSaysSinceWhenTheArchiveLacksNothing(t *testing.T) {
	moment := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	c, s := aCluster(), &v1alpha1.ClusterStatus{}
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	says := func(hour int, a core.Archive, closed bool, since int) {
		t.Helper()
		now := moment.Add(time.Duration(hour) * time.Hour)
		in := core.Instance{Name: "c-1", Report: core.Known(core.Report{WritableEpoch: 1, Archive: &a}, now, now)}
		describeArchive(s, c, core.Observation{Now: now, Instances: []core.Instance{in}}, backed{closesGap: closed})
		want := metav1.NewTime(moment.Add(time.Duration(since) * time.Hour))
		if is := s.ContinuousArchiving; !is.CompleteSince.Equal(&want) {
			t.Errorf("after %d hours it lacks nothing since %s, want %s", hour, is.CompleteSince, want)
		}
	}
	says(1, core.Archive{Place: "s3://a"}, false, 1)
	says(2, core.Archive{Place: "s3://a"}, false, 1)
	says(3, core.Archive{Place: "s3://a", Missing: "a:1-5"}, false, 3)
	says(4, core.Archive{Place: "s3://a"}, true, 3) // another primary knows nothing of it
	says(5, core.Archive{Place: "s3://b"}, false, 5)
	says(6, core.Archive{Place: "s3://a"}, true, 6)
	says(7, core.Archive{Place: "s3://a"}, true, 6)
	if s.ContinuousArchiving.MissingSince != nil {
		t.Error("a closed gap is told")
	}
}

func TestTheStatusTellsOfTheArchive(t *testing.T) {
	moment := time.Date(2026, 11, 23, 21, 0, 0, 0, time.UTC)
	c := aCluster()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	s, by, now := &v1alpha1.ClusterStatus{}, backed{}, moment
	says := func(a *core.Archive, status metav1.ConditionStatus, reason, word string) {
		t.Helper()
		in := core.Instance{Name: "c-1", Report: core.Known(core.Report{WritableEpoch: 1, Archive: a}, moment, moment)}
		describeArchive(s, c, core.Observation{Now: now, Instances: []core.Instance{{Name: "c-2"}, in}}, by)
		cond := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionContinuousArchiving)
		if cond == nil || cond.Status != status || cond.Reason != reason || !strings.Contains(cond.Message, word) {
			t.Errorf("%+v", cond)
		}
	}
	part := func(n int, at time.Time) *core.Archive {
		return &core.Archive{File: "binlog.000001", GTIDs: "a:" + string(rune('0'+n)), At: at, PendingFiles: new(1)}
	}
	says(part(1, moment), metav1.ConditionTrue, "Archiving", "in time")
	says(part(2, moment.Add(time.Second)), metav1.ConditionTrue, "Archiving", "in time")
	if is := s.ContinuousArchiving; is.LastArchivedGTID != "a:1" {
		t.Errorf("a status was written for one part more: %+v", is)
	}
	now = moment.Add(archiveTold)
	says(part(3, moment.Add(archiveTold)), metav1.ConditionTrue, "Archiving", "in time")
	if is := s.ContinuousArchiving; is.LastArchivedGTID != "a:3" ||
		!is.LastArchivedTime.Equal(&metav1.Time{Time: moment.Add(archiveTold)}) {
		t.Errorf("%+v", is)
	}
	now = moment
	says(&core.Archive{EncryptedTo: "age1xyz"}, metav1.ConditionTrue, "Archiving", "encrypted to age1xyz")
	for _, at := range []string{"full at 7", "full at 8"} { // another message is no news
		full := &core.Archive{Failure: "StoreFull", Message: at, FailedAt: moment}
		says(full, metav1.ConditionFalse, "StoreFull", "full at 7")
	}
	says(&core.Archive{Behind: true}, metav1.ConditionFalse, "ArchivingBehind", "targetRPOSeconds")
	says(&core.Archive{Missing: "a:1-5"}, metav1.ConditionFalse, "ArchiveGap", "A Backup is made")
	if is := s.ContinuousArchiving; is.LastFailureReason != "" || is.Missing != "a:1-5" ||
		!is.MissingSince.Equal(&metav1.Time{Time: moment}) {
		t.Errorf("%+v", is)
	}
	by.closesGap = true
	says(&core.Archive{Missing: "a:1-5"}, metav1.ConditionTrue, "Archiving", "in time")
	says(&core.Archive{Missing: "a:1-7"}, metav1.ConditionFalse, "ArchiveGap", "a:1-7")
	if says(&core.Archive{}, metav1.ConditionTrue, "Archiving", "in time"); s.ContinuousArchiving.MissingSince != nil {
		t.Error("a gap that nobody tells of has a time")
	}
	by.closesGap = false
	says(&core.Archive{Place: "s3://a"}, metav1.ConditionTrue, "Archiving", "in time")
	says(&core.Archive{Place: "s3://b"}, metav1.ConditionFalse, "ArchiveMoved", "in s3://b now")
	says(&core.Archive{}, metav1.ConditionFalse, "ArchiveMoved", "in s3://b now") // the next primary has only begun
	if by.closesGap = true; s.ContinuousArchiving.MissingSince == nil {
		t.Error("no Backup is asked for in the new place")
	}
	says(&core.Archive{Place: "s3://b"}, metav1.ConditionTrue, "Archiving", "in time")
	by.closesGap = false
	says(&core.Archive{Place: "s3://b"}, metav1.ConditionTrue, "Archiving", "in time")
	says(&core.Archive{Place: "s3://b", Missing: "a:1-9"}, metav1.ConditionFalse, "ArchiveGap", "a:1-9")
	says(&core.Archive{Place: "s3://b"}, metav1.ConditionFalse, "ArchiveGap", "a:1-9") // a failover closes nothing
	c.Spec.Backup = nil
	describeArchive(s, c, core.Observation{}, backed{})
	if s.ContinuousArchiving != nil || len(s.Conditions) != 0 {
		t.Errorf("still there: %+v %+v", s.ContinuousArchiving, s.Conditions)
	}
}
