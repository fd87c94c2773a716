package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
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

// forgetful is a store that lists one object and does not find it.
type forgetful struct {
	store.Store
	key string
}

func (f forgetful) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if key == f.key {
		return nil, store.NotFound
	}
	return f.Store.Get(ctx, key)
}

// TestNoOlderBackupIsTakenWhereAManifestIsListedAndNotFound checks that it is an error, which names the backup.
func TestNoOlderBackupIsTakenWhereAManifestIsListedAndNotFound(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	for n, id := range []string{"older", "newer"} {
		m := &backup.Manifest{Summary: backup.Summary{ID: id, Method: "clone", End: at(int64(n)), Server: "8.4.6",
			RawSize: 2, StoredSize: 1, Cluster: backup.Identity{Format: 1, Cluster: "db", UID: "u-1"}},
			Parts: []backup.Part{{Name: "part-00000001-000000.zst", State: clone.StateFileCopy.String(), Raw: 2,
				Stored: 1, Records: 1}}}
		text, err := m.Encode()
		if err == nil {
			err = errors.Join(s.Put(t.Context(), "db/base/"+id+"/"+m.Parts[0].Name, []byte("x")),
				s.Put(t.Context(), backup.ManifestKey("db", id), text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		task := recovery.Task{Cluster: "db", Target: recovery.Target{Immediate: true}}
		o, err := Find(t.Context(), s, seal.Key{}, task, "8.4.6")
		if err != nil || o.Base.ID != "newer" {
			t.Fatalf("%+v, %v", o, err)
		}
		_, err = Find(t.Context(), forgetful{s, backup.ManifestKey("db", "newer")}, seal.Key{}, task, "8.4.6")
		if !errors.Is(err, backup.ErrManifestAbsent) || !strings.Contains(err.Error(), "backup newer of db") {
			t.Errorf("it says %v", err)
		}
	})
}

// TestABackupThatIsTooNewForTheTargetIsNotTold, not even if something is wrong with it, for it could not be the
// base. One that holds what a failover lost is told.
func TestABackupThatIsTooNewForTheTargetIsNotTold(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "early", 1, numbers("1-2", ""), at(2))
	backUp(t, s, "lost", 1, numbers("1-6", ""), at(6))
	backUp(t, s, "late", 3, numbers("1-5", "1-2"), at(12))
	part := strings.Replace(backup.ManifestKey("db", "late"), "manifest.json", "part-00000000-000000.zst", 1)
	if err := s.Delete(t.Context(), part); err != nil {
		t.Fatal(err)
	}
	for gtids, want := range map[string]string{numbers("1-5", "1").String(): "lost: BackupNotOnBranch",
		numbers("1-5", "1-3").String(): "late: PartMissing, lost: BackupNotOnBranch"} {
		task := recovery.Task{Cluster: "db", Target: recovery.Target{GTID: gtids}}
		found, err := FindIn(t.Context(), s, seal.Key{}, failedOver(), task, "8.4.6")
		if err != nil || found.Base.ID != "early" {
			t.Fatalf("%+v, %v", found, err)
		}
		if told := found.Begun().PassedText(); told != want {
			t.Errorf("of a restore to %s it tells %q", gtids, told)
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
