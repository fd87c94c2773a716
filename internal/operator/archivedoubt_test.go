package operator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// A primary's manager cannot be reached while writes go on: what it said of its archive holds for a
// moment, and not for a day.
func TestWhetherItIsArchivedIsUnknownWhenNobodyCanBeAsked(t *testing.T) {
	c, now := aCluster(), time.Now()
	c.Status.EstablishedAt = nil // it is archived from its beginning
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true, TargetRPOSeconds: 300}}
	said := core.Known(core.Report{WritableEpoch: 1, Archive: &core.Archive{Place: "s3://a", File: "b.2",
		At: now.Add(-time.Hour)}}, now, now)
	for _, tc := range []struct {
		name  string
		after time.Duration
		in    core.Instance
		want  metav1.ConditionStatus
	}{
		{"it is heard", 0, core.Instance{Report: said, Latest: said}, metav1.ConditionTrue},
		{"it was heard a moment ago", time.Minute, core.Instance{Latest: said}, metav1.ConditionTrue},
		{"it was heard longer ago than what may be lost", 5 * time.Minute, core.Instance{Latest: said},
			metav1.ConditionUnknown},
		{"it is heard again", 0, core.Instance{Report: said, Latest: said}, metav1.ConditionTrue},
		{"this operator has only begun to ask", time.Minute, core.Instance{}, metav1.ConditionTrue},
		{"this operator has asked for long", 5 * time.Minute, core.Instance{}, metav1.ConditionUnknown},
	} {
		tc.in.Name = "c-1"
		o := core.Observation{Now: now.Add(tc.after), Instances: []core.Instance{tc.in}}
		describeArchive(&c.Status, c, o, backed{})
		doubtArchive(&c.Status, c, o, now)
		is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
		if is == nil || is.Status != tc.want {
			t.Errorf("%s: %+v", tc.name, is)
		}
	}
}

// While nobody knows which history is the Cluster's, nothing is archived on purpose: no primary has to be
// brought back for it. Pending says only whether the recovery is forgotten if it came to nothing.
func TestNothingIsArchivedWhileTheHistoryIsUndecided(t *testing.T) {
	c, now := aCluster(), time.Now()
	c.Spec.Backup = &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true}}
	said := core.Known(core.Report{WritableEpoch: 1, Archive: &core.Archive{}}, now, now)
	silent := core.Known(core.Report{WritableEpoch: 1}, now, now)
	for _, tc := range []struct {
		name       string
		after      time.Duration
		viewID     string
		recoveries int
		report     core.Fact[core.Report]
		status     metav1.ConditionStatus
		reason     core.Reason
	}{
		{"the group is seen", 0, "1:5", 0, said, metav1.ConditionTrue, core.ReasonArchiving},
		{"it was told to go on", time.Second, "", 1, silent, metav1.ConditionFalse, core.BackupUndecided},
		{"it is not seen for long", time.Hour, "", 1, silent, metav1.ConditionFalse, core.BackupUndecided},
		{"it is seen, and nobody archives", time.Hour, "2:1", 1, silent, metav1.ConditionUnknown,
			core.ReasonArchiveNotKnown},
		{"its primary archives", time.Hour, "2:1", 1, said, metav1.ConditionTrue, core.ReasonArchiving},
	} {
		c.Status.GroupReplication = &v1alpha1.GroupReplicationStatus{ViewID: tc.viewID,
			Recoveries: make([]v1alpha1.GroupRecovery, tc.recoveries)}
		o := core.Observation{Now: now.Add(tc.after), Instances: []core.Instance{{Name: "c-1", Report: tc.report,
			Latest: said}}}
		describeArchive(&c.Status, c, o, backed{})
		doubtArchive(&c.Status, c, o, now)
		is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
		if is == nil || is.Status != tc.status || is.Reason != string(tc.reason) {
			t.Errorf("%s: %+v", tc.name, is)
		}
	}
}

// Archiving is switched on, and nobody begins: a Pod that is not made anew has no credentials of the store, and its
// manager tells nothing of an archive.
func TestThatNobodyBeginsToArchiveIsTold(t *testing.T) {
	now := time.Now()
	on := &v1alpha1.BackupDefaults{ObjectStore: someStore,
		ContinuousArchiving: &v1alpha1.ContinuousArchivingSpec{Enabled: true, TargetRPOSeconds: 30}}
	silent := core.Known(core.Report{WritableEpoch: 1}, now, now)
	for _, tc := range []struct {
		name        string
		spec        *v1alpha1.BackupDefaults
		established *metav1.MicroTime
		after       time.Duration
		want        bool
	}{
		{"it was switched on a moment ago", on, stamped(now.Add(-time.Hour)), 59 * time.Second, false},
		{"it was switched on a while ago", on, stamped(now.Add(-time.Hour)), time.Minute, true},
		{"there are no data yet", on, nil, time.Hour, false},
		{"there are data since a moment ago", on, stamped(now.Add(time.Hour)), time.Hour + 59*time.Second, false},
		{"nothing is to be archived", nil, stamped(now.Add(-time.Hour)), time.Hour, false},
	} {
		c, state := aCluster(), &clusterState{since: now.Add(-time.Hour)}
		c.Spec.Backup = tc.spec
		for _, after := range []time.Duration{0, tc.after} {
			o := core.Observation{Now: now.Add(after), Instances: []core.Instance{{Name: "c-1", Report: silent,
				Latest: silent}}}
			state.noteArchiving(c, o.Now)
			c.Status.EstablishedAt = tc.established
			describeArchive(&c.Status, c, o, backed{})
			doubtArchive(&c.Status, c, o, state.archives)
		}
		is := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionContinuousArchiving)
		if (is != nil) != tc.want {
			t.Errorf("%s: %+v", tc.name, is)
		}
		if is != nil && (is.Status != metav1.ConditionUnknown || is.Reason != string(core.ReasonArchiveNotKnown) ||
			!strings.Contains(is.Message, "has not begun")) {
			t.Errorf("%s: %+v", tc.name, is)
		}
	}
}
