package operator

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/backup"
)

// Archiving is switched on in a Cluster that runs: a Backup that is taken before the primary's Pod was made anew
// lacks what was written until then, and so does the archive.
func TestTheArchiveOfARunningClusterIsCompleteSinceItHasBegun(t *testing.T) {
	moment := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return moment.Add(time.Duration(minutes) * time.Minute) }
	early := []backup.Taken{{Created: at(1), Started: at(1), Ended: at(2), Completed: true}}
	for name, tc := range map[string]struct {
		established *metav1.MicroTime
		before      *v1alpha1.ContinuousArchivingStatus
		by          backed
		since       int // minutes; -1 is never
		gap         bool
	}{
		"it ran before": {established: stamped(at(-60)), since: 3, gap: true},
		"it ran before, and an operator of before noted the wish": {established: stamped(at(-60)),
			before: &v1alpha1.ContinuousArchivingStatus{CompleteSince: &metav1.Time{Time: at(-5)}},
			since:  3, gap: true},
		"an operator of before noted the place": {established: stamped(at(-60)),
			before: &v1alpha1.ContinuousArchivingStatus{Place: "s3://a", CompleteSince: &metav1.Time{Time: at(-5)}},
			since:  -5},
		"an operator that noted no place saw parts": {established: stamped(at(-60)),
			before: &v1alpha1.ContinuousArchivingStatus{LastArchivedTime: &metav1.Time{Time: at(-5)}}, since: -1},
		"it was made with an archive":                    {since: 0},
		"it was made with one, and a backup was earlier": {by: backed{taken: early}, since: 3, gap: true},
		"it was made with one, and no backups are known": {by: backed{isUnknown: true}, since: 0},
	} {
		c, s := aCluster(), &v1alpha1.ClusterStatus{EstablishedAt: tc.established, ContinuousArchiving: tc.before}
		c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
			ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
		describeArchive(s, c, core.Observation{Now: at(0)}, tc.by)
		if is := s.ContinuousArchiving; tc.before == nil && (is.CompleteSince != nil) != (tc.established == nil) {
			t.Errorf("%s: before it has begun it lacks nothing since %s", name, is.CompleteSince)
		}
		if s.EstablishedAt == nil {
			s.EstablishedAt = stamped(at(1))
		}
		for minute := 2; minute < 5; minute++ {
			a := &core.Archive{}
			if minute > 2 { // its branch is written
				a.Place = "s3://a"
			}
			describeArchive(s, c, core.Observation{Now: at(minute), Instances: []core.Instance{{Name: "c-1",
				Report: core.Known(core.Report{WritableEpoch: 1, Archive: a}, at(minute), at(minute))}}}, tc.by)
		}
		is := s.ContinuousArchiving
		switch want := metav1.NewTime(at(tc.since)); {
		case tc.since < 0 && tc.before.CompleteSince == nil && is.CompleteSince != nil,
			tc.since >= 0 && !is.CompleteSince.Equal(&want):
			t.Errorf("%s: it lacks nothing since %s", name, is.CompleteSince)
		case (is.MissingSince != nil) != tc.gap || is.Missing != "":
			t.Errorf("%s: a Backup is asked for since %s, %q is missing", name, is.MissingSince, is.Missing)
		case (is.Place == "") != tc.by.isUnknown:
			t.Errorf("%s: the place is %q", name, is.Place)
		}
	}
}

func stamped(at time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: at} }
