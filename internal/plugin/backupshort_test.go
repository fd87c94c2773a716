package plugin

import (
	"strings"
	"testing"
	"time"

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
