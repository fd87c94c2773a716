package restore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"cnmsql.co/internal/backup"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

func TestWhenAnOlderBackupIsTried(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&facts.Refusal{Reason: facts.TargetBeforeBackup}, true},
		{&facts.Refusal{Reason: facts.BackupNotOnBranch}, true},
		{&facts.Refusal{Reason: facts.PartMissing}, false}, // an older one needs it, too
		{&facts.Refusal{Reason: facts.TargetAfterArchive}, false},
		{fmt.Errorf("x: %w", backup.ManifestDamaged), true},
		{fmt.Errorf("x: %w", backup.PartMissing), true},
		{fmt.Errorf("x: %w", backup.SeriesDiffers), false}, // of what followed it, too
		{fmt.Errorf("x: %w", backup.ServerOlder), false},
		{fmt.Errorf("x: %w", seal.KeyWrong), true},
		{fmt.Errorf("x: %w", store.Unreachable), false},
		{errors.New("odd"), false},
	} {
		if got := (&Origin{}).mayOlder(c.err); got != c.want {
			t.Errorf("%v: %t", c.err, got)
		}
	}
	if alone := (&Origin{target: facts.Target{Kind: facts.Immediate}}); !alone.mayOlder(backup.SeriesDiffers) {
		t.Error("a backup alone is of its own series")
	}
}

// TestBackupsOfAnEarlierClusterAreRefusedWhereOnesOwnAreTried: the place has the name, the
// identity the UID.
func TestBackupsOfAnEarlierClusterAreRefusedWhereOnesOwnAreTried(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	find := func(owner string) error {
		_, err := Find(t.Context(), s, seal.Key{}, recovery.Task{Cluster: "db", Owner: owner}, "8.4.6")
		return err
	}
	if err := find("u-2"); !errors.Is(err, backup.BackupUnknown) {
		t.Errorf("of a place that is nobody's it says %v", err)
	}
	if err := backup.Claim(t.Context(), s, backup.Identity{Cluster: "db", Namespace: "ns", UID: "u-1"}); err != nil {
		t.Fatal(err)
	}
	if err := find("u-2"); !errors.Is(err, backup.ArchiveTaken) || !strings.Contains(err.Error(), "u-1") {
		t.Errorf("of an earlier Cluster's place it says %v", err)
	}
	for _, owner := range []string{"u-1", ""} {
		if err := find(owner); !errors.Is(err, backup.BackupUnknown) {
			t.Errorf("with the owner %q it says %v", owner, err)
		}
	}
}

// TestNobodyGetsLessThanANewerBackupHolds, unless he asks for it.
func TestNobodyGetsLessThanANewerBackupHolds(t *testing.T) {
	set := func(n string) gtid.Set { return gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-" + n) }
	o := &Origin{Base: &backup.Manifest{}, passed: []passedOver{{"late", nil, gtid.Set{}}, {"new",
		backup.PartMissing, set("9")}}}
	if err := o.holdsAll(facts.Plan{Set: set("9")}); err != nil {
		t.Errorf("the archive has it all: %v", err)
	}
	if err := o.holdsAll(facts.Plan{Set: set("8")}); !errors.Is(err, backup.PartMissing) ||
		!strings.Contains(err.Error(), "backupID") {
		t.Errorf("the archive ends before it: %v", err)
	}
	o.target.Kind = facts.Immediate
	if err := o.holdsAll(facts.Plan{Set: set("8")}); err != nil {
		t.Errorf("a backup alone: %v", err)
	}
	if text := o.Begun().PassedText(); text != "new: PartMissing" {
		t.Error(text)
	}
}
