package plugin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

func storeSpec() *v1alpha1.ObjectStoreSpec {
	return &v1alpha1.ObjectStoreSpec{Bucket: "backups", Path: "prod", Region: "eu-central-1",
		Credentials: &v1alpha1.StoreCredentials{InheritFromIAMRole: true}}
}

// stored is a healthy Cluster that names an object store.
func stored() *v1alpha1.Cluster {
	c := healthy().Cluster
	c.Spec.Storage.Size = "10Gi"
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: storeSpec()}
	return c
}

// archived is one that archives, a minute ago for the last time.
func archived() *v1alpha1.Cluster {
	c := stored()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Enabled: true,
		LastArchivedBinlog: "binlog.000042",
		LastArchivedGTID:   uuid1 + ":900-1000", LastArchivedTime: second(time.Minute), PendingFiles: 1}
	archiveSays(c, metav1.ConditionTrue, core.ReasonArchiving, "the primary archives its binary logs in time")
	return c
}

func archiveSays(c *v1alpha1.Cluster, status metav1.ConditionStatus, reason core.Reason, message string) {
	c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionContinuousArchiving,
		Status: status, Reason: string(reason), Message: message})
}

func second(before time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-before)} }

// backupAt is one that was created some time ago.
func backupAt(name, phase string, before time.Duration) *v1alpha1.Backup {
	b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name),
		CreationTimestamp: *second(before)}}
	b.Spec.Cluster.Name = "demo"
	b.Status.Phase = phase
	return b
}

func completed(name string, before time.Duration) *v1alpha1.Backup {
	b := backupAt(name, v1alpha1.BackupCompleted, before)
	b.Status = v1alpha1.BackupStatus{Phase: v1alpha1.BackupCompleted, InstanceName: "demo-2",
		BackupID: "20260301T000000Z-1a2b3c4d", DestinationPath: "s3://backups/prod/demo",
		ObjectStore: storeSpec(), Size: 4 << 30, StoredSize: 1 << 30, StartedAt: second(before),
		StoppedAt: second(before - 83*time.Second)}
	return b
}

func failed(name string, before time.Duration) *v1alpha1.Backup {
	b := backupAt(name, v1alpha1.BackupFailed, before)
	b.Status.Reason, b.Status.Error = string(core.BackupNoStore),
		"nothing says where to; add spec.objectStore, and create another Backup"
	return b
}

// backupScene is a taker with a fake API server; its operator steps on with each watch that the
// plugin opens.
type backupScene struct {
	*taker
	t     *testing.T
	out   strings.Builder
	steps []func(*v1alpha1.Backup)
	// primary is what the primary answers, or unasked why it does not.
	primary word
	unasked error
}

func newBackupScene(t *testing.T, objects []client.Object, steps ...func(*v1alpha1.Backup)) *backupScene {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &backupScene{t: t, steps: steps}
	fakes := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(ctx context.Context, cl client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			w, err := cl.Watch(ctx, list, opts...)
			if len(s.steps) > 0 {
				step := s.steps[0]
				s.steps = s.steps[1:]
				s.change(ctx, cl, step)
			}
			return w, err
		},
	}).Build()
	s.taker = newTaker(caller{client: fakes, in: strings.NewReader(""), out: &s.out, now: func() time.Time {
		return now
	},
		key: types.NamespacedName{Namespace: "shop", Name: "demo"},
		ask: func(context.Context, string) (word, error) { return s.primary, s.unasked }})
	s.primarySays(time.Time{})
	return s
}

// primarySays that the archive is complete until a moment.
func (s *backupScene) primarySays(completeUntil time.Time) {
	s.primary.Report = core.Known(core.Report{Archive: &core.Archive{CompleteUntil: completeUntil,
		RPO: 0.84}}, now, now)
}

// change writes what the operator and the Job write; nil deletes the Backup.
func (s *backupScene) change(ctx context.Context, cl client.Client, how func(*v1alpha1.Backup)) {
	b := s.only(ctx, cl)
	if how == nil {
		if err := cl.Delete(ctx, b); err != nil {
			s.t.Error(err)
		}
		return
	}
	how(b)
	if err := cl.Update(ctx, b); err != nil {
		s.t.Error(err)
	}
}

func (s *backupScene) only(ctx context.Context, cl client.Client) *v1alpha1.Backup {
	all := &v1alpha1.BackupList{}
	if err := cl.List(ctx, all); err != nil || len(all.Items) != 1 {
		s.t.Fatalf("%d Backups, %v", len(all.Items), err)
	}
	return &all.Items[0]
}

func (s *backupScene) run(wish backupWish, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	b, err := s.create(ctx, wish)
	if err != nil {
		return err
	}
	return s.followFor(ctx, b, timeout)
}

func pending(b *v1alpha1.Backup) {
	b.Status.Phase, b.Status.Reason, b.Status.Error = v1alpha1.BackupPending, string(core.BackupNoDonor),
		"no replica is ready"
}

func runs(percent string, bytes int64) func(*v1alpha1.Backup) {
	return func(b *v1alpha1.Backup) {
		b.Status = v1alpha1.BackupStatus{Phase: v1alpha1.BackupRunning, InstanceName: "demo-2",
			BackupID: "20260301T030000Z-1a2b3c4d", DestinationPath: "s3://backups/prod/demo",
			StartedAt: second(0), JobName: b.Name + "-backup", Progress: &v1alpha1.BackupProgress{Bytes: bytes,
				TotalBytes: 4 << 30, Percent: percent,
				BytesPerSecond: 50 << 20, ExpectedEnd: second(-45 * time.Second)}}
	}
}

func completes(b *v1alpha1.Backup) {
	b.Status.Phase, b.Status.Size, b.Status.StoredSize, b.Status.StoppedAt = v1alpha1.BackupCompleted, 4<<30, 1<<30,
		second(-83*time.Second)
}

func fails(b *v1alpha1.Backup) {
	b.Status.Phase, b.Status.Reason, b.Status.Error = v1alpha1.BackupFailed, string(core.BackupNotTaken),
		"the store refused a part: NoSuchBucket"
}

func TestBackupIsFollowedToItsEnd(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored()}, pending, runs("10%", 400<<20), runs("10%", 401<<20),
		runs("60%", 2400<<20), completes)
	if err := s.run(backupWish{target: v1alpha1.TargetPrimary}, 0); err != nil {
		t.Fatal(err)
	}
	golden(t, "backup.txt", s.out.String())
	b := s.only(context.Background(), s.client)
	if b.Name != "demo-20260301030000" || b.Spec.Target != v1alpha1.TargetPrimary ||
		b.Labels[v1alpha1.LabelCluster] != "demo" {
		t.Errorf("it was made as %+v", b)
	}
}

func TestOnATerminalOneLineIsDrawnAnew(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored()}, runs("10%", 400<<20), runs("60%", 2400<<20), completes)
	s.line.columns = func() int { return 60 }
	if err := s.run(backupWish{}, 0); err != nil {
		t.Fatal(err)
	}
	drawn := strings.Split(s.out.String(), "\r\x1b[K")
	if len(drawn) != 3 {
		t.Fatalf("it was drawn %d times:\n%q", len(drawn)-1, s.out.String())
	}
	if line, after, _ := strings.Cut(drawn[2], "\n"); len(line) > 59 ||
		!strings.HasPrefix(line, "[##############..........]") || !strings.HasPrefix(after, "The backup") {
		t.Errorf("drawn %q, then %q", line, after)
	}
}

func TestABackupThatFailsSaysWhyAndWhatToDo(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored()}, runs("10%", 400<<20), fails)
	err := s.run(backupWish{name: "mine"}, 0)
	mustFail(t, err, string(core.BackupNotTaken)+": the store refused a part: NoSuchBucket")
	mustFail(t, err, "kubectl logs -n shop job/mine-backup")
	mustFail(t, err, "take another: kubectl cnmsql backup demo -n shop")
	if code, told := ExitCode(err); code == 0 || !told {
		t.Errorf("exit code %d", code)
	}
}

func TestABackupThatIsDeletedMeanwhileEndsTheFollowing(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored()}, runs("10%", 400<<20), nil)
	mustFail(t, s.run(backupWish{name: "mine"}, 0), "the Backup mine was deleted before it ended")
}

func TestABackupGoesOnAfterTheTimeout(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored()}, runs("10%", 400<<20))
	err := s.run(backupWish{name: "mine"}, 300*time.Millisecond)
	mustFail(t, err, "no end after 300ms; the backup goes on without this command (mine is Running)")
	mustFail(t, err, "kubectl cnmsql backup follow mine -n shop")
}

func TestABackupGoesOnWhenTheReaderInterrupts(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored(), backupAt("mine", v1alpha1.BackupPending, 0)})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b, err := s.get(context.Background(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	mustFail(t, s.followFor(ctx, b, 0), "interrupted; the backup goes on without this command (mine is Pending). To "+
		"follow it again: kubectl cnmsql backup follow mine")
}

func TestAnAPIServerThatIsAwayIsAskedAgain(t *testing.T) {
	s := newBackupScene(t, []client.Object{stored(), backupAt("mine", v1alpha1.BackupCompleted, 0)})
	asked := 0
	s.client = interceptor.NewClient(s.client, interceptor.Funcs{
		Watch: func(ctx context.Context, cl client.WithWatch, list client.ObjectList,
			opts ...client.ListOption) (watch.Interface, error) {
			if asked++; asked == 1 {
				return nil, errors.New("connection refused")
			}
			return cl.Watch(ctx, list, opts...)
		}})
	b := backupAt("mine", v1alpha1.BackupPending, 0)
	if err := s.followFor(context.Background(), b, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.out.String(), "the API server could not be asked, the backup goes on meanwhile: "+
		"connection refused") {
		t.Error(s.out.String())
	}
}

func TestWhereNothingCanBeBackedUpNothingIsCreated(t *testing.T) {
	deleted := stored()
	deleted.DeletionTimestamp, deleted.Finalizers = second(0), []string{"example.com/wait"}
	for want, objects := range map[string][]client.Object{
		"there is no Cluster demo in namespace shop":                          nil,
		"cluster demo names no object store":                                  {healthy().Cluster},
		"cluster demo is being deleted":                                       {deleted},
		"there is a Backup mine already, and each is taken once: nothing was": {stored(), completed("mine", time.Hour)},
	} {
		s := newBackupScene(t, objects)
		mustFail(t, s.run(backupWish{name: "mine"}, 0), want)
		all := &v1alpha1.BackupList{}
		if err := s.client.List(context.Background(), all); err != nil || len(all.Items) > 1 || s.out.String() != "" {
			t.Errorf("%s: %d Backups, %v, it says %q", want, len(all.Items), err, s.out.String())
		}
	}
}

func TestWishesThatNoBackupCanFulfil(t *testing.T) {
	for want, wish := range map[string]backupWish{
		"--target replica is not known":             {target: "replica"},
		"--name Mine cannot be the name":            {name: "Mine"},
		"cannot be the name of a Backup: it has at": {name: strings.Repeat("a", 57)},
	} {
		mustFail(t, wish.check(), want)
	}
}

func TestTheDefaultNameOfABackupIsNeverTooLong(t *testing.T) {
	for _, cluster := range []string{"demo", strings.Repeat("a", 50), strings.Repeat("a", 40) + "-" +
		strings.Repeat("b", 9)} {
		if name := defaultBackupName(cluster, now); !backupName.MatchString(name) || strings.Contains(name, "--") {
			t.Errorf("%s gives %s", cluster, name)
		}
	}
}

func TestFollowingABackupThatIsNotThereSaysWhereToLook(t *testing.T) {
	s := newBackupScene(t, nil)
	_, err := s.get(context.Background(), "mine")
	mustFail(t, err,
		"there is no Backup mine in namespace shop; list those of a cluster: kubectl cnmsql backup list CLUSTER")
}

func TestBytesForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1 << 20: "1.0 MiB", 4509715661: "4.2 GiB",
		1 << 62: "4096.0 PiB"} {
		if got := sized(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

func TestAPrimaryThatIsBackedUpInsteadIsToldWithTheReason(t *testing.T) {
	b := &v1alpha1.Backup{}
	b.Status.Phase, b.Status.InstanceName = v1alpha1.BackupRunning, "demo-1"
	b.Status.InstanceReason = "none of the 3 instances is a ready replica"
	want := "demo-1 is the primary: none of the 3 instances is a ready replica"
	if said := backupNews(b); !slices.Contains(said, want) {
		t.Errorf("it says %q", said)
	}
}
