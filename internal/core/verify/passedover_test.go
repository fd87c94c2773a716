package verify

import (
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// passesOver is a verification of which the check has ended, after the restore passed backups over.
func passesOver(t *testing.T, passed []core.PassedOver, said Check) *world {
	t.Helper()
	w := sampled(t, twoTables).until(t, "restore")
	w.f.Copy.PassedOver = passed
	said.BackupID, said.Tables = "b1", 9
	return w.checked(t, said)
}

var soundRows = Check{Done: true, Checked: 9, Sums: twoTables.Sums, Executed: gtid.MustParse(uuid + ":1-9")}

// TestAVerificationFailsWhenSomethingIsWrongWithANewerBackup though the data that were restored are sound.
func TestAVerificationFailsWhenSomethingIsWrongWithANewerBackup(t *testing.T) {
	for _, why := range []core.Reason{"PartMissing", "PartDamaged", "ManifestDamaged", "KeyWrong", "FormatUnknown",
		archive.ArchiveGap, "of a later release"} {
		t.Run(string(why), func(t *testing.T) {
			w := passesOver(t, []core.PassedOver{{Backup: "b3", Reason: why},
				{Backup: "b2", Reason: archive.BackupNotOnBranch}}, soundRows)
			w.f.Record.LastSucceeded = day
			w.ends(t, Failed, core.VerifyPassedOver, "backups newer than b1", "b3 ("+string(why)+")",
				"9 tables are sound", "Take another backup")
			r := w.f.Record
			if r.BackupID != "b1" || r.Checked != 9 || r.Compared != 2 || !r.LastSucceeded.Equal(day) {
				t.Errorf("it recorded %+v", r)
			}
			if strings.Contains(r.Message, "b2") {
				t.Errorf("nothing is wrong with b2: %s", r.Message)
			}
		})
	}
}

// TestABackupThatHoldsWhatAFailoverLostIsNoFailure holds where it is whole and the Cluster itself
// lacks what it holds.
func TestABackupThatHoldsWhatAFailoverLostIsNoFailure(t *testing.T) {
	w := passesOver(t, []core.PassedOver{{Backup: "b2", Reason: archive.BackupNotOnBranch}}, soundRows)
	w.ends(t, Succeeded, "", "b1 was restored", "a failover lost", "b2 (BackupNotOnBranch)")
}

// TestDamagedDataAreToldBeforeADamagedBackup says that the data are worse.
func TestDamagedDataAreToldBeforeADamagedBackup(t *testing.T) {
	said := soundRows
	said.Damaged = []Finding{{"a.b", "Corrupt"}}
	passesOver(t, []core.PassedOver{{Backup: "b2", Reason: "PartMissing"}}, said).
		ends(t, Failed, core.VerifyDamaged, "a.b (Corrupt)")
}
