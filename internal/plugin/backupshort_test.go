package plugin

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
)

// quietlyArchived is a Cluster that writes nothing, and whose primary says that all is archived.
func quietlyArchived() *Facts {
	f := healthy()
	f.Cluster = archived()
	f.Backups = []v1alpha1.Backup{*completed("one", 20*time.Hour)}
	primary := f.Live[f.holder()]
	report := *primary.Report
	report.Archive = &core.Archive{CompleteUntil: now.Add(-3 * time.Second)}
	primary.Report = &report
	f.Live[f.holder()] = primary
	return f
}

func TestTheStatusTellsOfBackups(t *testing.T) {
	made := []v1alpha1.Backup{*completed("one", 20*time.Hour), *failed("two", time.Hour)}
	for want, f := range map[string]*Facts{
		"Backups     none: spec.backup names no object store\n": healthy(),
		"Backups     the last, one, ended 19h ago; archive: in time, last archived 2026-03-01 02:59:00Z (60s ago)\n": {
			Cluster: archived(), Backups: made},
		"complete until 3s ago; nothing waits\n": quietlyArchived(),
		"NONE COMPLETED, take one: kubectl cnmsql backup demo -n shop; archive: not enabled\n": {
			Cluster: stored()},
		"Backups     not known: forbidden; archive: NOT WELL (ArchivingFailed), last archived": {
			Cluster: archiveFails(), BackupsProblem: "forbidden"},
	} {
		f.Now = now
		var out strings.Builder
		if err := WriteTable(&out, Build(*f)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, out.String())
		}
	}
}

// TestToDoNamesWhatBackupsNeed: an archive that stands is no "nothing".
func TestToDoNamesWhatBackupsNeed(t *testing.T) {
	taken := archived()
	taken.Status.Conditions = nil
	archiveSays(taken, metav1.ConditionFalse, "ArchiveTaken", "the archive demo belongs to a Cluster with UID u-1")
	unverified := archived()
	unverified.Status.Conditions = append(unverified.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionBackupsVerified, Status: metav1.ConditionFalse, Reason: string(core.VerifyDamaged)})
	unknown := archived()
	unknown.Status.Conditions = nil
	archiveSays(unknown, metav1.ConditionUnknown, "Unknown", "the primary is not heard")
	one, two := *completed("one", 20*time.Hour), *failed("two", time.Hour)
	for name, x := range map[string]struct {
		c       *v1alpha1.Cluster
		backups []v1alpha1.Backup
		want    string
	}{
		"it fails": {archiveFails(), nil, "fix the archive (ArchivingFailed), because what is not archived is " +
			"lost"},
		"it is behind": {archiveBehind(), nil, "kubectl get clusters.mysql.cnmsql.co demo -n shop -o jsonpath"},
		"a gap":        {gap(), nil, "see that it completes: kubectl cnmsql backup list demo -n shop"},
		"taken":        {taken, nil, "give spec.backup.objectStore another path"},
		"unknown":      {unknown, nil, ""},
		"failed":       {archived(), []v1alpha1.Backup{one, two}, "the newest Backup, two, FAILED (NoObjectStore)"},
		"mended":       {archived(), []v1alpha1.Backup{two, one}, ""},
		"damaged":      {unverified, []v1alpha1.Backup{one}, "could not be verified (TablesDamaged)"},
		"not its own":  {recreated(), []v1alpha1.Backup{one}, "one is of an earlier Cluster of this name"},
	} {
		f := healthy()
		f.Cluster, f.Backups = x.c, x.backups
		todo := strings.Join(Build(*f).ToDo, "\n")
		if (todo == "") != (x.want == "") || !strings.Contains(todo, x.want) {
			t.Errorf("%s: want %q in %q", name, x.want, todo)
		}
	}
}

func archiveBehind() *v1alpha1.Cluster {
	c := archived()
	c.Status.Conditions = nil
	archiveSays(c, metav1.ConditionFalse, core.ReasonArchivingBehind, "the oldest transaction is 77 s old")
	return c
}
