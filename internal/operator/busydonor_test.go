package operator

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/resources"
	"cnmsql.co/internal/testapi"
)

// TestABackupThatIsDeletedKeepsItsInstanceBusy as long as its Job has not ended, which reads on until then.
func TestABackupThatIsDeletedKeepsItsInstanceBusy(t *testing.T) {
	now := time.Now()
	job := func(how ...batchv1.JobCondition) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: resources.BackupJobName("b"),
			OwnerReferences: []metav1.OwnerReference{{UID: "of-b", Controller: new(true)}}},
			Status: batchv1.JobStatus{Conditions: how}}
	}
	for name, c := range map[string]struct {
		job   *batchv1.Job
		asked time.Duration
		want  bool
	}{
		"reads on":        {job(), time.Minute, true},
		"has ended":       {job(batchv1.JobCondition{Type: batchv1.JobFailed, Status: "True"}), 0, false},
		"on a lost node":  {job(), 20 * time.Minute, false},
		"there is no Job": {&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}}, 0, false},
	} {
		b := &v1alpha1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", UID: "of-b",
			Finalizers: []string{v1alpha1.FinalizerStoredBackup}}}
		b.DeletionTimestamp = &metav1.Time{Time: now.Add(-c.asked)}
		b.Spec.Cluster.Name, b.Status.Phase, b.Status.InstanceName = "c", v1alpha1.BackupRunning, "c-1"
		ob := &observer{client: testapi.New(t, now, b, c.job)}
		o := core.Observation{Instances: []core.Instance{{Name: "c-1"},
			{Name: "c-2", Report: core.Known(core.Report{State: core.AwaitingClone}, now, now)}}}
		must(t, ob.backups(t.Context(), aCluster(), &o))
		if o.Instances[0].BackedUp != c.want || o.Instances[1].BackedUp {
			t.Errorf("%s: %+v", name, o.Instances)
		}
	}
}
