package restore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// at is a moment, in seconds of the story.
func at(seconds int64) time.Time { return time.Unix(100000+seconds, 0).UTC() }

// numbers are transactions of the server that was primary in the epochs 1 and 2, and of that of 3.
func numbers(one, three string) (all gtid.Set) {
	if one != "" {
		all = gtid.MustParse("11111111-1111-1111-1111-111111111111:" + one)
	}
	if three != "" {
		all = all.Union(gtid.MustParse("33333333-3333-3333-3333-333333333333:" + three))
	}
	return all
}

// failedOver is an archive of which a failover has lost number 6. A number n of the first server was
// committed in second n, and one of the third 10 later.
func failedOver() *facts.Archive {
	part := func(epoch, sequence int64, before, holds gtid.Set, at time.Time) facts.Part {
		return facts.Part{Epoch: epoch, Sequence: sequence, Before: before, GTIDs: holds, Transactions: 1,
			First: at, Last: at}
	}
	a := &facts.Archive{Branches: []facts.Branch{
		{Epoch: 1, ServerUUID: "11111111-1111-1111-1111-111111111111", Numbers: facts.OwnNumbers},
		{Epoch: 3, ServerUUID: "33333333-3333-3333-3333-333333333333", Numbers: facts.OwnNumbers,
			Start: numbers("1-5", ""), Held: numbers("1-5", "")}}}
	before := gtid.Set{}
	for n := int64(1); n <= 6; n++ {
		id := numbers(fmt.Sprint(n), "")
		a.Parts = append(a.Parts, part(1, n, before, id, at(n)))
		before = before.Union(id)
	}
	before = numbers("1-5", "")
	for n := int64(1); n <= 4; n++ {
		id := numbers("", fmt.Sprint(n))
		a.Parts = append(a.Parts, part(3, n, before, id, at(10+n)))
		before = before.Union(id)
	}
	return a
}

// backUp stores a backup of nothing that is whole.
func backUp(t *testing.T, s store.Store, id string, epoch int64, holds gtid.Set, end time.Time) {
	t.Helper()
	backUpLong(t, s, id, epoch, holds, holds, end)
}

// backUpLong stores one during which transactions were committed.
func backUpLong(t *testing.T, s store.Store, id string, epoch int64, begin, holds gtid.Set, end time.Time) {
	t.Helper()
	m := &backup.Manifest{Summary: backup.Summary{ID: id, Cluster: backup.Identity{Cluster: "db"}, Method: "clone",
		Epoch: epoch, Server: "8.4.6", Point: end, End: end, BeginGTID: begin, EndGTID: holds, StoredSize: 1},
		Parts: []backup.Part{{Name: "part-00000000-000000.zst", State: "FileCopy", Stored: 1}}}
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	key := backup.ManifestKey("db", id)
	err = errors.Join(s.Put(t.Context(), key, text),
		s.Put(t.Context(), strings.Replace(key, "manifest.json", m.Parts[0].Name, 1), []byte("x")))
	if err != nil {
		t.Fatal(err)
	}
}

// TestARefusalNamesABackupThatWorks, where another one than that which was named leads to the target, or
// an older one to before what was lost.
func TestARefusalNamesABackupThatWorks(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "early", 1, numbers("1-2", ""), at(2))
	backUp(t, s, "lost", 1, numbers("1-6", ""), at(6))
	backUp(t, s, "late", 3, numbers("1-5", "1-2"), at(12))
	for name, c := range map[string]struct {
		task   recovery.Task
		reason core.Reason
		want   string // "": no other is named
	}{
		"one that a failover lost": {recovery.Task{BackupID: "lost"}, facts.BackupNotOnBranch,
			"Backup late leads to the target"},
		"the same, to a time before the newest": {
			recovery.Task{BackupID: "lost", Target: recovery.Target{Time: at(11)}}, facts.BackupNotOnBranch,
			"Backup early leads to the target"},
		"one that is too new": {recovery.Task{BackupID: "late", Target: recovery.Target{Time: at(3)}},
			facts.TargetBeforeBackup, "Backup early leads to the target"},
		"all are too new": {recovery.Task{BackupID: "late", Target: recovery.Target{Time: at(1)}},
			facts.TargetBeforeBackup, ""},
		"a target that no backup leads to": {recovery.Task{BackupID: "early", Target: recovery.Target{Time: at(99)}},
			facts.TargetAfterArchive, ""},
		"what was lost, and the newest is behind it": {
			recovery.Task{Target: recovery.Target{GTID: numbers("6", "").String()}}, facts.TargetLost,
			"Backup early leads to before it: name that one, and the time 1970-01-02T03:46:45Z"},
	} {
		t.Run(name, func(t *testing.T) {
			c.task.Cluster = "db"
			_, err := FindIn(t.Context(), s, seal.Key{}, failedOver(), c.task, "8.4.6")
			no, is := errors.AsType[*facts.Refusal](err)
			if !is || no.Reason != c.reason || !strings.Contains(err.Error(), c.want) ||
				c.want == "" && strings.Contains(err.Error(), "ackup early") {
				t.Errorf("%v", err)
			}
			t.Log(err)
		})
	}
}

// withGap is a store with a backup of before a part that is missing in the archive.
func withGap(t *testing.T) (store.Store, *facts.Archive) {
	t.Helper()
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	archived := failedOver()
	archived.Branches, archived.Parts = archived.Branches[:1], slices.Delete(archived.Parts[:6], 3, 4)
	backUp(t, s, "before", 1, numbers("1-3", ""), at(3))
	return s, archived
}

// TestABackupBehindAGapIsFoundWhateverItsClockSaid. A part is missing; the clock of the Job that took the
// backup behind it was wrong, so that it looks older than that from which no replay comes over the gap.
func TestABackupBehindAGapIsFoundWhateverItsClockSaid(t *testing.T) {
	s, archived := withGap(t)
	backUp(t, s, "behind", 1, numbers("1-5", ""), at(1))
	backUp(t, s, "oldest", 1, numbers("1", ""), at(0))
	task := recovery.Task{Cluster: "db", Target: recovery.Target{Time: at(6)}}
	found, err := FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6")
	if err != nil || found.Base.ID != "behind" {
		t.Fatalf("%+v, %v", found, err)
	}
	if told := found.Begun().PassedText(); told != "before: PartMissing" {
		t.Errorf("of those that are passed over it tells %q", told)
	}
	if err := s.Delete(t.Context(), backup.ManifestKey("db", "behind")); err != nil {
		t.Fatal(err)
	}
	_, err = FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6")
	if no, is := errors.AsType[*facts.Refusal](err); !is || no.Reason != facts.PartMissing {
		t.Errorf("without it: %v", err)
	}
}

// TestABackupThatBeganBehindAGapIsFoundBesideOneThatEndedLater holds where the one that took longer began before
// what is missing in the archive, and has to be replayed from there.
func TestABackupThatBeganBehindAGapIsFoundBesideOneThatEndedLater(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	archived := failedOver()
	archived.Branches, archived.Parts = archived.Branches[:1], slices.Delete(archived.Parts[:6], 2, 3)
	backUpLong(t, s, "long", 1, numbers("1", ""), numbers("1-5", ""), at(5))
	backUp(t, s, "short", 1, numbers("1-4", ""), at(4))
	found, err := FindIn(t.Context(), s, seal.Key{}, archived, recovery.Task{Cluster: "db"}, "8.4.6")
	if err != nil || found.Base.ID != "short" {
		t.Errorf("%+v, %v", found, err)
	}
	_, err = FindIn(t.Context(), s, seal.Key{}, archived, recovery.Task{Cluster: "db", BackupID: "long"}, "8.4.6")
	if err == nil || !strings.Contains(err.Error(), "Backup short leads to the target") {
		t.Errorf("with the long one named: %v", err)
	}
}

// TestTheLatestIsOfTheBackupThatHoldsMost whatever the clocks of their Jobs said, where nothing was archived
// that would tell: without an archive, and behind a gap.
func TestTheLatestIsOfTheBackupThatHoldsMost(t *testing.T) {
	behindAGap := &facts.Archive{Branches: failedOver().Branches[:1], Parts: failedOver().Parts[:3]}
	for name, c := range map[string]struct {
		archived  *facts.Archive
		immediate bool
	}{
		"without an archive":             {archived: &facts.Archive{}},
		"nothing was archived behind it": {archived: behindAGap},
		"a backup alone":                 {archived: &facts.Archive{}, immediate: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(storetest.Dir(t))
			if err != nil {
				t.Fatal(err)
			}
			find := func() (*Origin, error) {
				return FindIn(t.Context(), s, seal.Key{}, c.archived,
					recovery.Task{Cluster: "db", Target: recovery.Target{Immediate: c.immediate}}, "8.4.6")
			}
			backUp(t, s, "first", 3, numbers("1-3", ""), at(9)) // its clock was ahead
			backUp(t, s, "second", 3, numbers("1-5", ""), at(8))
			backUp(t, s, "lost", 1, numbers("1-6", ""), at(7))
			if found, err := find(); err != nil || found.Base.ID != "second" || found.Begun().PassedOver != nil {
				t.Fatalf("%+v, %v", found, err)
			}
			part := strings.Replace(backup.ManifestKey("db", "second"), "manifest.json", "part-00000000-000000.zst", 1)
			if err := s.Delete(t.Context(), part); err != nil {
				t.Fatal(err)
			}
			found, err := find()
			if c.immediate && err == nil && found.Base.ID == "first" &&
				found.Begun().PassedText() == "second: PartMissing" {
				return
			}
			if c.immediate || !errors.Is(err, backup.PartMissing) || !strings.Contains(err.Error(), "holds less") {
				t.Errorf("when a part of it is missing: %v", err)
			}
		})
	}
}

// TestATimeBehindAGapIsReachedWhateverTheClocksSaid. Nothing was written since the backup behind a gap, so that
// the archive is complete with that backup alone; the clock of the Job of the one before was ahead.
func TestATimeBehindAGapIsReachedWhateverTheClocksSaid(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	archived := &facts.Archive{Branches: failedOver().Branches[:1], Parts: failedOver().Parts[:3],
		Mark: &facts.Mark{Epoch: 1, ServerUUID: "11111111-1111-1111-1111-111111111111", Until: at(20),
			Executed: numbers("1-5", "")}}
	backUp(t, s, "before", 1, numbers("1-3", ""), at(9))
	backUp(t, s, "behind", 1, numbers("1-5", ""), at(8))
	task := recovery.Task{Cluster: "db", Target: recovery.Target{Time: at(15)}}
	if found, err := FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6"); err != nil ||
		found.Base.ID != "behind" {
		t.Fatalf("%v", err)
	}
	task.Target.Time = at(21)
	_, err = FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6")
	if no, is := errors.AsType[*facts.Refusal](err); !is || no.Reason != facts.TargetAfterArchive {
		t.Errorf("a later time: %v", err)
	}
}

// TestABackupWhoseClockWasAheadLeadsToWhatWasWrittenBehindIt, where the part behind it was committed by the target,
// as the clock of the primary says. So nothing in the backup is of later.
func TestABackupWhoseClockWasAheadLeadsToWhatWasWrittenBehindIt(t *testing.T) {
	s, archived := withGap(t)
	backUp(t, s, "behind", 1, numbers("1-5", ""), at(30)) // in fact at(5)
	task := recovery.Task{Cluster: "db", Target: recovery.Target{Time: at(6)}}
	found, err := FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6")
	if err != nil || found.Base.ID != "behind" {
		t.Errorf("%v", err)
	}
	task.Target.Time, task.BackupID = at(5), "behind"
	_, err = FindIn(t.Context(), s, seal.Key{}, archived, task, "8.4.6")
	if no, is := errors.AsType[*facts.Refusal](err); !is || no.Reason != facts.TargetBeforeBackup {
		t.Errorf("to before what is behind it: %v", err)
	}
}
