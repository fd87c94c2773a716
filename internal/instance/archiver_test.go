package instance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

func TestWhatIsSaidOfTheArchive(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	lost := gtid.MustParse("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-5")
	full := fmt.Errorf("writing part 7: %w", store.Full)
	for name, c := range map[string]struct {
		status archive.Status
		want   core.Archive
	}{
		"nothing yet": {archive.Status{}, core.Archive{}},
		"some wait": {archive.Status{Pending: &archive.Pending{Files: 2, Bytes: 99}}, core.Archive{PendingFiles: new(2),
			PendingBytes: new(int64(99))}},
		"in time": {archive.Status{Oldest: ago(11 * time.Second)}, core.Archive{RPO: 11}},
		"nothing is written": {archive.Status{CompleteUntil: ago(time.Second)},
			core.Archive{CompleteUntil: ago(time.Second)}},
		"late": {archive.Status{Oldest: ago(22 * time.Second)},
			core.Archive{RPO: 22, Behind: true}},
		"a part": {archive.Status{Last: facts.Part{File: "binlog.000007", GTIDs: lost,
			Recipient: "age1x"}, LastAt: ago(time.Second)}, core.Archive{File: "binlog.000007", GTIDs: lost.String(),
			At: ago(time.Second), EncryptedTo: "age1x"}},
		"a key that is none": {archive.Status{Failure: fmt.Errorf("line 1: %w", seal.KeyInvalid),
			FailedAt: ago(time.Second)}, core.Archive{Failure: string(core.KeyInvalid),
			Message: fmt.Errorf("line 1: %w", seal.KeyInvalid).Error(), FailedAt: ago(time.Second)}},
		"a gap": {archive.Status{Missing: lost}, core.Archive{Missing: lost.String()}},
		"it fails": {archive.Status{Oldest: ago(9 * time.Second), Failure: full,
			FailedAt: ago(time.Second)}, core.Archive{RPO: 9, Failure: "StoreFull", Message: full.Error(),
			FailedAt: ago(time.Second)}},
		"it failed, and nothing waits": {archive.Status{Failure: full, FailedAt: ago(time.Minute)}, core.Archive{}},
		"it failed, and something does": {archive.Status{Oldest: ago(time.Second), Failure: full,
			FailedAt: ago(time.Minute)}, core.Archive{RPO: 1, Failure: "StoreFull", Message: full.Error(),
			FailedAt: ago(time.Minute)}},
		"what failed succeeds, and something waits": {archive.Status{Oldest: ago(time.Second), Failure: full,
			FailedAt: ago(time.Minute), PassedAt: ago(50 * time.Second)}, core.Archive{RPO: 1}},
		"it failed before the last one": {archive.Status{Oldest: ago(time.Second), Failure: full,
			FailedAt: ago(3 * time.Second), LastAt: ago(2 * time.Second)},
			core.Archive{RPO: 1, At: ago(2 * time.Second)}},
		"a failure without a name": {archive.Status{Failure: errors.New("odd"), FailedAt: ago(time.Second)},
			core.Archive{Failure: "ArchivingFailed", Message: "odd", FailedAt: ago(time.Second)}},
	} {
		if got := archiveOf(c.status, nil, 10*time.Second, now); !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, *got, c.want)
		}
	}
}

func TestAFailureThatEndedOneShipperIsToldWhileTheNextHasNotMetIt(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	before := &core.Archive{Failure: "PartConflict", Message: "part 7", FailedAt: ago(40 * time.Second)}
	for name, c := range map[string]struct {
		status archive.Status
		want   string
	}{
		"it does not know yet what the archive lacks": {archive.Status{Sought: ago(50 * time.Second)}, "PartConflict"},
		"a part is due":         {archive.Status{Oldest: ago(6 * time.Second)}, "PartConflict"},
		"none is due":           {archive.Status{Oldest: ago(time.Second)}, ""},
		"it has stored a part":  {archive.Status{Oldest: ago(time.Second), LastAt: ago(2 * time.Second)}, ""},
		"nothing waits":         {archive.Status{}, ""},
		"it has one of its own": {archive.Status{Oldest: ago(1), Failure: store.Full, FailedAt: now}, "StoreFull"},
	} {
		got := archiveOf(c.status, before, 10*time.Second, now)
		if got.Failure != c.want || got.Failure == "PartConflict" && got.Message != "part 7" {
			t.Errorf("%s: it says %q: %s", name, got.Failure, got.Message)
		}
	}
}

func TestWhoArchivesNothingWakesTheWorkerOnce(t *testing.T) {
	m := newManager(Options{Instance: "db-1"}.withDefaults())
	m.lease = &lease{}
	m.archiver.said = &core.Archive{}
	var woken []int
	for range 3 {
		m.archiver.archivesNothing()
		woken = append(woken, len(m.wake))
		select {
		case <-m.wake:
		default:
		}
	}
	if !slices.Equal(woken, []int{1, 0, 0}) || m.archiver.report() != nil {
		t.Errorf("it was woken so: %v", woken)
	}
}

func TestAPartLeavesMysqldItsMemory(t *testing.T) {
	for memory, want := range map[int64]int64{0: 16 << 20, 32 << 20: 1 << 20, 512 << 20: 8 << 20, 1 << 30: 16 << 20,
		64 << 30: 16 << 20} {
		if got := partBytes(memory); got != want {
			t.Errorf("with %d bytes: %d, want %d", memory, got, want)
		}
	}
}

func TestARestoreFitsIntoTheMemory(t *testing.T) {
	for memory, want := range map[int64]int{0: 4, 32 << 20: 1, 128 << 20: 2, 256 << 20: 4, 8 << 30: 4} {
		if got := readersFor(memory); got != want {
			t.Errorf("with %d bytes: %d, want %d", memory, got, want)
		}
	}
}
