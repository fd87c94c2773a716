package backups

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// awaited is what a Backup says at first of what there is beside it. When it fails, it says so once.
type awaited struct {
	objs   []client.Object
	phase  string
	reason core.Reason
	words  string
}

func (c awaited) expect(t *testing.T) {
	w := newBackupWorld(t, append(c.objs, aBackup("b"), authority(t))...)
	w.is(w.looks("b"), c.phase, c.reason, c.words)
	w.Clock = w.Clock.Add(waitLimit + time.Second)
	b := w.looks("b")
	switch {
	case c.phase == v1alpha1.BackupFailed:
	case c.reason == core.BackupOtherRuns:
		w.is(b, v1alpha1.BackupPending, c.reason)
		return
	default:
		w.is(b, v1alpha1.BackupFailed, core.BackupWaitedTooLong, c.words)
	}
	if cond := b.Status.Conditions; len(cond) != 1 || cond[0].Status != metav1.ConditionFalse ||
		cond[0].Reason != b.Status.Reason {
		t.Errorf("%+v", cond)
	}
	if told := <-w.Told; !strings.Contains(told, "BackupFailed") {
		t.Errorf("told %s", told)
	}
}

func TestABackupSaysWhatItWaitsFor(t *testing.T) {
	young, noStore, noReplica := aCluster(), aCluster(), aCluster()
	young.Status.EstablishedAt = nil
	noReplica.Status.Conditions[0].Status = metav1.ConditionFalse // nobody takes writes
	noStore.Spec.Backup = nil
	noReplica.Status.InstancesReported = noReplica.Status.InstancesReported[:1]
	undecided := aCluster()
	undecided.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{Bootstrapped: true,
		Recoveries: []v1alpha1.GroupRecovery{{Epoch: 3, Pending: true}}}
	running := aBackup("other")
	running.UID, running.Status.Phase = "other-uid", v1alpha1.BackupRunning
	noKey := secret("store", map[string]string{"id": "me"})
	encrypts := aCluster()
	encrypts.Spec.Backup.ObjectStore.Encryption = &v1alpha1.StoreEncryption{
		Identity: v1alpha1.SecretKeySelector{Name: "age", Key: "identity"}}
	badKey := secret("age", map[string]string{
		"identity": "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"})
	for name, c := range map[string]awaited{
		"no Cluster": {[]client.Object{storeSecret}, v1alpha1.BackupPending,
			core.BackupNoCluster, "db in namespace ns"},
		"no data": {[]client.Object{young, storeSecret}, v1alpha1.BackupPending,
			core.BackupNotYet, "has no data yet"},
		"no store": {[]client.Object{noStore, storeSecret}, v1alpha1.BackupFailed,
			core.BackupNoStore, "create another Backup"},
		"no replica": {[]client.Object{noReplica, storeSecret}, v1alpha1.BackupPending,
			core.BackupNoDonor, "is a ready replica"},
		"a lost quorum": {[]client.Object{undecided, storeSecret}, v1alpha1.BackupPending,
			core.BackupUndecided, "kubectl cnmsql group status"},
		"no Secret": {[]client.Object{aCluster()}, v1alpha1.BackupPending,
			core.BackupStoreSecret, "the Secret store"},
		"no key": {[]client.Object{aCluster(), noKey}, v1alpha1.BackupPending,
			core.BackupStoreSecret, `no key "key"`},
		"no age key": {[]client.Object{encrypts, storeSecret}, v1alpha1.BackupPending,
			core.BackupStoreSecret, "the Secret age"},
		"a bad age key": {[]client.Object{encrypts, storeSecret, badKey}, v1alpha1.BackupPending,
			core.KeyInvalid, `the key "identity" of the Secret age`},
		"another one runs": {[]client.Object{aCluster(), storeSecret, running}, v1alpha1.BackupPending,
			core.BackupOtherRuns, "the Backup other"},
	} {
		t.Run(name, c.expect)
	}
}

// TestABackupThatWasQueuedWaitsForOtherThingsAfterThat: the hour does not run while another is taken.
func TestABackupThatWasQueuedWaitsForOtherThingsAfterThat(t *testing.T) {
	other := aBackup("other")
	other.UID, other.Status.Phase = "other-uid", v1alpha1.BackupRunning
	c := aCluster()
	c.Status.InstancesReported = c.Status.InstancesReported[1:2]
	c.Status.InstancesReported[0].Ready = false
	w := newBackupWorld(t, c, other, aBackup("b"), storeSecret, authority(t))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupOtherRuns)
	w.Clock = w.Clock.Add(2 * waitLimit)
	w.Must(w.Delete(t.Context(), other))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
	w.Clock = w.Clock.Add(waitLimit)
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
	w.Clock = w.Clock.Add(time.Second)
	w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupWaitedTooLong)
}

// TestABackupWaitsForAJoinForADay checks that the hour for what else it waits for begins behind that.
func TestABackupWaitsForAJoinForADay(t *testing.T) {
	joins := aCluster()
	joins.Status.InstancesReported[2].State = string(core.Cloning)
	w := newBackupWorld(t, joins, aBackup("b"), aBackup("late"), storeSecret, authority(t))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupJoinGoesFirst)
	w.Clock = w.Clock.Add(joinLimit)
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupJoinGoesFirst)
	var c v1alpha1.Cluster
	w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(joins), &c))
	c.Status.InstancesReported = c.Status.InstancesReported[1:2]
	c.Status.InstancesReported[0].Ready = false
	w.Must(w.Status().Update(t.Context(), &c))
	w.is(w.looks("b"), v1alpha1.BackupPending, core.BackupNoDonor)
	w.Clock = w.Clock.Add(waitLimit + time.Second)
	w.is(w.looks("b"), v1alpha1.BackupFailed, core.BackupWaitedTooLong, "for an hour")

	w.Must(w.Get(t.Context(), client.ObjectKeyFromObject(joins), &c))
	c.Status = joins.Status
	w.Must(w.Status().Update(t.Context(), &c))
	w.is(w.looks("late"), v1alpha1.BackupFailed, core.BackupWaitedTooLong, "for a day", "is being given its data")
}
