package backups

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/pki"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/testapi"
)

// podOf is a Pod of a Job that does not run.
func podOf(job *batchv1.Job, at time.Time, s corev1.PodStatus) *corev1.Pod {
	s.Phase = corev1.PodPending
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-x", Namespace: job.Namespace,
		CreationTimestamp: metav1.NewTime(at), Labels: map[string]string{batchv1.JobNameLabel: job.Name}}, Status: s}
}

// jobProblems are what keeps the Pod of a Job from running.
var jobProblems = map[string]struct {
	// object is there since a moment; the cluster says so again at another.
	object func(job *batchv1.Job, since, again time.Time) client.Object
	words  []string
}{
	"a quota": {func(job *batchv1.Job, _, again time.Time) client.Object {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: job.Namespace}, Reason: notMade,
			InvolvedObject: corev1.ObjectReference{UID: job.UID}, LastTimestamp: metav1.NewTime(again),
			Message: `pods "b" is forbidden: exceeded quota: small`}
	}, []string{"exceeded quota: small", "jobTemplate"}},
	"no room": {func(job *batchv1.Job, at, _ time.Time) client.Object {
		return podOf(job, at, corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available"}}})
	}, []string{"0/3 nodes are available"}},
	"no image": {func(job *batchv1.Job, at, _ time.Time) client.Object {
		return podOf(job, at, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "backup",
			Image: "operator:1", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: "Back-off pulling image"}}}}})
	}, []string{"operator:1", "--operator-image", "spec.imagePullSecrets"}},
}

// TestABackupWhoseJobDoesNotRunSaysWhy, goes on as soon as it runs, and holds up others for an
// hour at most.
func TestABackupWhoseJobDoesNotRunSaysWhy(t *testing.T) {
	for name, h := range jobProblems {
		t.Run(name, func(t *testing.T) {
			w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
			w.looks("b")
			obj := h.object(w.job("b-backup"), w.Clock, w.Clock)
			w.Must(w.Create(t.Context(), obj))
			w.is(w.looks("b"), v1alpha1.BackupRunning, core.BackupJobWaits, h.words...)
			w.Must(w.Delete(t.Context(), obj))
			w.is(w.looks("b"), v1alpha1.BackupRunning, "")
			later := w.Clock.Add(waitLimit + time.Second)
			w.Must(w.Create(t.Context(), h.object(w.job("b-backup"), w.Clock, later)))
			w.Clock = later
			w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupWaitedTooLong, h.words...)
			var job batchv1.Job
			err := w.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "b-backup"}, &job)
			if err == nil && job.DeletionTimestamp == nil || client.IgnoreNotFound(err) != nil {
				t.Errorf("the Job is still there: %v", err)
			}
		})
	}
}

// TestARefusalOfLongAgoIsNone: the Job had Pods since, and the one that takes its place is about to be made.
func TestARefusalOfLongAgoIsNone(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.looks("b")
	w.Must(w.Create(t.Context(), jobProblems["a quota"].object(w.job("b-backup"), w.Clock, w.Clock)))
	w.Clock = w.Clock.Add(waitLimit + time.Second)
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
}

// TestAJobThatIsRefusedIsTold: what goes with it, or the Job itself.
func TestAJobThatIsRefusedIsTold(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.Refuse = apierrors.NewForbidden(schema.GroupResource{Resource: "jobs"}, "b", nil)
	w.is(w.looks("b"), v1alpha1.BackupRunning, core.BackupJobRefused, "is forbidden", "quotas")
	w.Refuse = nil
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
	if name := w.backup("b").Status.JobName; name == "" {
		t.Error("no Job was made")
	}
}

// TestABackupWithoutAJobDoesNotHoldOthersUpForEver has what keeps the Job from being made told. An hour
// after it was begun the Backup fails.
func TestABackupWithoutAJobDoesNotHoldOthersUpForEver(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.Clock = w.Clock.Add(2 * waitLimit) // it waited for another until now
	w.Refuse = apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "jobs"}, "create")
	w.is(w.looks("b"), v1alpha1.BackupRunning, core.BackupJobRefused, "is not supported")
	w.Clock = w.Clock.Add(waitLimit + time.Second)
	w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupWaitedTooLong, "is not supported")
}

// TestABackupWaitsForAnAuthority has it wait before it runs, so that no other waits for it.
func TestABackupWaitsForAnAuthority(t *testing.T) {
	ended, err := pki.NewCA("db", backupDay.Add(-4000*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	damaged := authority(t)
	damaged.Data[resources.KeyCert] = []byte("nothing")
	foreign := authority(t)
	foreign.OwnerReferences[0].UID = "another"
	for name, is := range map[string]*corev1.Secret{"another": secret("another", nil), "damaged": damaged,
		"is not that of the Cluster db": foreign,
		"ended at":                      resources.CASecret(aCluster(), ended)} {
		w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, is)
		w.is(w.looks("b"), v1alpha1.BackupPending, core.ProblemAuthorityBroken, "Restore the Secret db-ca")
		if text := w.backup("b").Status.Error; name != "another" && !strings.Contains(text, name) {
			t.Errorf("it does not say that the authority %s: %s", name, text)
		}
	}
	damaged = authority(t)
	damaged.Data[resources.KeyCA] = []byte("nothing")
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, damaged)
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
}

// TestARemovalWhoseJobCannotBeMadeSaysWhy has that told, too, which nobody has refused.
func TestARemovalWhoseJobCannotBeMadeSaysWhy(t *testing.T) {
	w := newBackupWorld(t, going(), aCluster(), storeSecret)
	w.Refuse = apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "jobs"}, "create")
	asked := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(going())}
	if _, err := w.r.Reconcile(t.Context(), asked); err == nil {
		t.Error("it is not tried again")
	}
	if is := storedSays(w.backup("b")); is.Reason != string(core.ReasonBackupRemovalHeld) ||
		!strings.Contains(is.Message, "is not supported") {
		t.Errorf("%+v", is)
	}
}

// TestARemovalThatDoesNotRunSaysWhy: the Backup stays until its data are gone.
func TestARemovalThatDoesNotRunSaysWhy(t *testing.T) {
	for name, h := range jobProblems {
		t.Run(name, func(t *testing.T) {
			w := newBackupWorld(t, going(), aCluster(), storeSecret)
			w.step()
			w.Must(w.Create(t.Context(), h.object(w.job("b-remove"), w.Clock, w.Clock)))
			b, _ := w.step()
			words := append([]string{"kubectl cnmsql backup forget"}, h.words...)
			for _, word := range words {
				if text := storedSays(b).Message; !strings.Contains(text, word) {
					t.Errorf("it does not say %q: %s", word, text)
				}
			}
		})
	}
}

// withoutOne is an API server that does not answer for one object.
type withoutOne struct {
	client.Reader
	name string
}

func (w *withoutOne) Get(ctx context.Context, key client.ObjectKey, into client.Object, o ...client.GetOption) error {
	if key.Name == w.name {
		return testapi.ErrDown
	}
	return w.Reader.Get(ctx, key, into, o...)
}

// TestAnAuthorityThatCannotBeReadIsNotBroken also an hour after the Backup was made, when it would have failed.
func TestAnAuthorityThatCannotBeReadIsNotBroken(t *testing.T) {
	w := newBackupWorld(t, aBackup("b"), aCluster(), storeSecret, authority(t))
	w.Clock = w.Clock.Add(waitLimit + time.Second)
	w.r.Live = &withoutOne{w, "db-ca"}
	_, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "ns", Name: "b"}})
	if !errors.Is(err, testapi.ErrDown) {
		t.Errorf("%v", err)
	}
	w.is(w.backup("b"), "", "")
	w.r.Live = w
	w.is(w.looks("b"), v1alpha1.BackupRunning, "")
}
