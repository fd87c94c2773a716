package backups

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/api/v1alpha1"
)

// TestAGapIsMeteredUntilABackupClosesIt asks the status and the Backups alone, whatever the instance that archives
// remembers: it goes on telling of a gap that is closed, and the next one knows nothing of a gap that is open.
func TestAGapIsMeteredUntilABackupClosesIt(t *testing.T) {
	const series, server = "cnmsql_cluster_archive_gap{db} ", "0000000a-0000-0000-0000-000000000000"
	found := metav1.NewTime(backupDay)
	ended := func(name, phase string, started time.Duration) *v1alpha1.Backup {
		b := aBackup(name)
		begin, end := metav1.NewTime(found.Add(started)), metav1.NewTime(found.Add(started+time.Minute))
		b.Status = v1alpha1.BackupStatus{Phase: phase, StartedAt: &begin, StoppedAt: &end, BeginGTID: server + ":1-9"}
		return b
	}
	elsewhere := ended("elsewhere", v1alpha1.BackupCompleted, time.Hour)
	elsewhere.Spec.ObjectStore = &v1alpha1.ObjectStoreSpec{Bucket: "other"}
	ofOther, ofNamesake := ended("of-other", v1alpha1.BackupCompleted, time.Hour), ended("of-namesake",
		v1alpha1.BackupCompleted, time.Hour)
	ofOther.Spec.Cluster.Name, ofNamesake.Namespace = "db-2", "ns-2"
	before, closing := ended("b", v1alpha1.BackupCompleted, -time.Hour), ended("b", v1alpha1.BackupCompleted, time.Hour)
	lacks := closing.DeepCopy()
	lacks.Status.BeginGTID = server + ":1-8"
	gap := v1alpha1.ContinuousArchivingStatus{Enabled: true, Missing: server + ":5-9", MissingSince: &found}
	moved := v1alpha1.ContinuousArchivingStatus{Enabled: true, Place: "s3://b", MissingSince: &found}
	for name, c := range map[string]struct {
		is      *v1alpha1.ContinuousArchivingStatus
		backups []client.Object
		want    string
	}{
		"nothing is said yet":            {want: "0"},
		"no gap":                         {is: &v1alpha1.ContinuousArchivingStatus{Enabled: true}, want: "0"},
		"a gap":                          {is: &gap, want: "1"},
		"another place":                  {is: &moved, want: "1"},
		"a Backup of before":             {&gap, []client.Object{before}, "1"},
		"a Backup that lacks some of it": {&gap, []client.Object{lacks}, "1"},
		"a Backup that failed":           {&gap, []client.Object{ended("b", v1alpha1.BackupFailed, time.Hour)}, "1"},
		"a Backup that goes on":          {&gap, []client.Object{aBackup("b")}, "1"},
		"Backups of others or elsewhere": {&gap, []client.Object{elsewhere, ofOther, ofNamesake}, "1"},
		"a Backup that closes it":        {&gap, []client.Object{closing}, "0"},
		"a Backup in the new place":      {&moved, []client.Object{closing}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := archivingCluster()
			cluster.Status.ContinuousArchiving = c.is
			got := gathered(t, newBackupWorld(t, append(c.backups, cluster)...))
			if !slices.Contains(got, series+c.want) {
				t.Errorf("got %q, want %s%s", got, series, c.want)
			}
		})
	}
}

// TestAClusterThatArchivesNothingHasNoSeriesOfAGap holds of one that is being deleted, too: nobody looks after it.
func TestAClusterThatArchivesNothingHasNoSeriesOfAGap(t *testing.T) {
	found := metav1.NewTime(backupDay)
	stopped, deleted := archivingCluster(), archivingCluster()
	stopped.Spec.Backup.ContinuousArchiving.Enabled = false
	deleted.DeletionTimestamp, deleted.Finalizers = &found, []string{"x/y"}
	for _, c := range []*v1alpha1.Cluster{aCluster(), stopped, deleted} {
		c.Status.ContinuousArchiving = &v1alpha1.ContinuousArchivingStatus{Missing: "a:1-5", MissingSince: &found}
		if got := gathered(t, newBackupWorld(t, c)); len(got) != 0 {
			t.Errorf("got %q", got)
		}
	}
}

func archivingCluster() *v1alpha1.Cluster {
	c := aCluster()
	c.Spec.Backup.ContinuousArchiving = &v1alpha1.ContinuousArchivingSpec{Enabled: true}
	return c
}
