package retention

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

const uid = "u-1"

// day is a moment of the story: noon of a day, and hours later.
func day(n int, hours float64) time.Time {
	return time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).AddDate(0, 0, n).Add(time.Duration(hours * float64(time.Hour)))
}

func first(n int) gtid.Set {
	if n == 0 {
		return gtid.Set{}
	}
	return gtid.MustParse(fmt.Sprintf("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:1-%d", n))
}

func backupID(n int) string { return fmt.Sprintf("day%d", n) }

// tenDays is a store with a backup at each noon, and a part of the archive, of one
// transaction, at each midnight; and what else lies about.
func tenDays(t *testing.T) *memory {
	t.Helper()
	m := &memory{objects: map[string][]byte{}, modified: map[string]time.Time{}, hidden: map[string]bool{}}
	must(t, backup.Claim(t.Context(), m, backup.Identity{Cluster: "db", Namespace: "ns", UID: uid}))
	m.json(t, "db/log/0000000001/branch.json", facts.Branch{Format: 1, Cluster: uid, Epoch: 1, CreatedAt: day(0, -1)},
		day(0, -1))
	for n := range 10 {
		m.backup(t, backupID(n), n, day(n, 0))
		p := facts.Part{Format: 1, Cluster: uid, Epoch: 1, Sequence: int64(n + 1), Before: first(n),
			GTIDs: first(n + 1).Subtract(first(n)),
			First: day(n, 12), Last: day(n, 12), Transactions: 1}
		m.part(t, p)
	}
	for key, modified := range map[string]time.Time{
		"db/base/given-up/part-00000001-000000.zst": day(1, 0),
		"db/base/new/part-00000001-000000.zst":      day(8, 0),
		"db/notes.txt":                              day(0, 0),
		"db/base/day1/README":                       day(0, 0),
		"db/log/0000000001/index":                   day(0, 0),
		"db-2/identity.json":                        day(0, 0),
	} {
		m.objects[key], m.modified[key] = []byte("x"), modified
	}
	return m
}

func (m *memory) json(t *testing.T, key string, of any, modified time.Time) {
	t.Helper()
	text, err := json.Marshal(of)
	must(t, err)
	m.objects[key], m.modified[key] = text, modified
}

func (m *memory) backup(t *testing.T, id string, transactions int, at time.Time) {
	t.Helper()
	m.backupOf(t, uid, id, transactions, at)
}

// backupOf is a backup of the cluster with a UID.
func (m *memory) backupOf(t *testing.T, uid, id string, transactions int, at time.Time) {
	t.Helper()
	b := &backup.Manifest{Summary: backup.Summary{ID: id, Method: "clone", Cluster: backup.Identity{Format: 1,
		Cluster: "db", UID: uid}, Epoch: 1,
		Begin: at, Point: at, End: at, BeginGTID: first(transactions), EndGTID: first(transactions),
		RawSize: 2, StoredSize: 1},
		Parts: []backup.Part{{Name: "part-00000001-000000.zst", State: clone.StateFileCopy.String(), Raw: 2,
			Stored: 1, Records: 1}}}
	text, err := b.Encode()
	must(t, err)
	for name, body := range map[string][]byte{"manifest.json": text, "part-00000001-000000.zst": []byte("x")} {
		key := "db/base/" + id + "/" + name
		m.objects[key], m.modified[key] = body, at
	}
}

// part writes the beginning of a part, which tells of it.
func (m *memory) part(t *testing.T, p facts.Part) {
	t.Helper()
	nothing := sha256.Sum256(nil)
	p.SHA256 = hex.EncodeToString(nothing[:])
	text, err := json.Marshal(p)
	must(t, err)
	text = append(text, '\n')
	sum := sha256.Sum256(text)
	text = append(text, hex.EncodeToString(sum[:])...)
	head := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0x184D2A50), uint32(len(text)))
	key := fmt.Sprintf("db/log/%010d/%010d.binlog.zst", p.Epoch, p.Sequence)
	m.objects[key], m.modified[key] = append(head, text...), p.Last
}

// threeDays is a policy, after the last backup.
func threeDays() Policy {
	return Policy{Cluster: "db", UID: uid, Window: 72 * time.Hour, Minimum: 1, Written: backupID(9), Now: day(9, 0.1)}
}

func TestWhatHasExpiredGoesAndNothingElse(t *testing.T) {
	m := tenDays(t)
	r := Run(t.Context(), m, threeDays())
	if r.Held != "" || strings.Join(r.Backups, " ") != "day0 day1 day2 day3 day4 day5" ||
		fmt.Sprint(r.Unfinished) != "[given-up]" || r.Parts != 5 || !r.Since.Equal(day(6, 0)) {
		t.Errorf("%+v", r)
	}
	if got := m.keys("manifest.json"); len(got) != 4 {
		t.Errorf("left are %q", got)
	}
	if got := m.keys(".binlog.zst"); len(got) != 5 || !strings.HasSuffix(got[0], "/0000000006.binlog.zst") {
		t.Errorf("left are %q", got)
	}
	for _, key := range []string{"db/identity.json", "db/log/0000000001/branch.json", "db/notes.txt",
		"db/base/day1/README", "db/base/new/part-00000001-000000.zst", "db-2/identity.json"} {
		if m.objects[key] == nil {
			t.Errorf("%s is gone", key)
		}
	}
	if r.Unknown != 3 || fmt.Sprint(r.UnknownNames) != "[base/day1/README log/0000000001/index notes.txt]" {
		t.Errorf("%d unknown: %q", r.Unknown, r.UnknownNames)
	}
	// Backups before parts, and parts before what was given up; of a backup the manifest first; and parts in order.
	isLog := func(k string) bool { return strings.Contains(k, "/log/") }
	begin := slices.IndexFunc(m.deletes, isLog)
	end := begin + slices.IndexFunc(m.deletes[max(begin, 0):], func(k string) bool { return !isLog(k) })
	if begin < 0 || end < begin || !slices.IsSorted(m.deletes[begin:end]) ||
		m.deletes[0] != "db/base/day0/manifest.json" ||
		slices.ContainsFunc(m.deletes[:begin], func(k string) bool { return strings.Contains(k, "/given-up/") }) ||
		slices.ContainsFunc(m.deletes[end:], func(k string) bool { return !strings.Contains(k, "/given-up/") }) {
		t.Errorf("%q", m.deletes)
	}
	if again := Run(t.Context(), m, threeDays()); len(again.Backups)+len(again.Unfinished)+again.Parts > 0 ||
		again.Held != "" || !again.Since.Equal(r.Since) {
		t.Errorf("again: %+v", again)
	}
}

func TestNothingGoesWhenSomethingIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *memory, *Policy)
		held   string
		says   string
	}{
		"another cluster's archive": {func(_ *testing.T, _ *memory, p *Policy) { p.UID = "u-2" },
			backup.ArchiveTaken.Name, "u-1"},
		"nobody's archive": {func(_ *testing.T, m *memory, _ *Policy) { delete(m.objects, "db/identity.json") },
			store.NotFound.Name, "whose archive"},
		"a backup of another cluster": {func(t *testing.T, m *memory, p *Policy) {
			m.json(t, "db/identity.json", backup.Identity{Format: 1, Cluster: "db", UID: "u-2"}, day(0, 0))
			p.UID = "u-2"
		}, backup.ArchiveTaken.Name, "day0"},
		"a branch of another cluster": {func(t *testing.T, m *memory, _ *Policy) {
			m.json(t, "db/log/0000000002/branch.json", facts.Branch{Format: 1, Cluster: "u-2", Epoch: 2}, day(0, 0))
		}, backup.ArchiveTaken.Name, "epoch 2"},
		"a branch that is gone": {func(_ *testing.T, m *memory, _ *Policy) {
			delete(m.objects,
				"db/log/0000000001/branch.json")
		},
			string(core.RetentionBranchMissing), "branch.json"},
		"a part that is damaged": {func(_ *testing.T, m *memory, _ *Policy) {
			m.objects["db/log/0000000001/0000000009.binlog.zst"][20] ^= 1
		},
			"PartDamaged", "part 9"},
		"a manifest that cannot be read now": {func(_ *testing.T, m *memory,
			_ *Policy) {
			m.unreadable = "db/base/day7/manifest.json"
		},
			store.AccessDenied.Name, "day7"},
		"a manifest that is listed and not found": {func(_ *testing.T, m *memory, p *Policy) {
			// a week old, and in the window
			m.absent, p.Window = "db/base/day1/manifest.json", 8*24*time.Hour+12*time.Hour
		}, string(core.RetentionFailed), "backup day1 of db: the store lists its manifest"},
		"the anchor lacks a part": {func(_ *testing.T, m *memory, _ *Policy) {
			delete(m.objects,
				"db/base/day6/part-00000001-000000.zst")
		},
			string(core.RetentionAnchorDamaged), "day6"},
		"the listing is behind": {func(_ *testing.T, m *memory, _ *Policy) {
			m.hidden["db/base/day9/manifest.json"] = true
		}, string(core.RetentionTimeUnknown), "listing"},
		"no backup is old enough": {func(_ *testing.T, _ *memory, p *Policy) { p.Window = 1000 * time.Hour },
			string(core.RetentionYoung), "as old as the window"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // reading is tried again, after pauses
				m, p := tenDays(t), threeDays()
				delete(m.objects, "db/base/given-up/part-00000001-000000.zst")
				c.change(t, m, &p)
				r := Run(t.Context(), m, p)
				if string(r.Held) != c.held || !strings.Contains(r.Message, c.says) || len(r.Backups)+len(r.Unfinished)+
					r.Parts+len(m.deletes) > 0 {
					t.Errorf("%s: %s; removed %q, deleted %q", r.Held, r.Message, r.Backups, m.deletes)
				}
			})
		})
	}
}

// TestNothingGoesWhileTheArchiveMayGoOn has a store list the last part, and not find it.
func TestNothingGoesWhileTheArchiveMayGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is asked again, after pauses
		m := tenDays(t)
		m.absent = "db/log/0000000001/0000000010.binlog.zst"
		r := Run(t.Context(), m, threeDays())
		if r.Held != facts.ListedAbsent || !strings.Contains(r.Message, m.absent) || len(r.Backups)+r.Parts > 0 {
			t.Errorf("%+v, deleted %q", r, m.deletes)
		}
	})
}

// TestWhatHasAManifestAllTheSameIsNotGivenUp has a backup whose manifest was neither listed nor found, and is
// found when it is to go.
func TestWhatHasAManifestAllTheSameIsNotGivenUp(t *testing.T) {
	m, p := tenDays(t), threeDays()
	p.Window = 8*24*time.Hour + 12*time.Hour
	delete(m.objects, "db/base/given-up/part-00000001-000000.zst")
	manifest := "db/base/day1/manifest.json"
	m.hidden[manifest], m.absent = true, manifest
	m.onRead = func(key string) {
		if strings.HasSuffix(key, ".binlog.zst") { // the backups are listed by then
			m.absent = ""
		}
	}
	r := Run(t.Context(), m, p)
	if r.Held != core.RetentionFailed || !strings.Contains(r.Message, "backup day1") || len(r.Unfinished) > 0 ||
		len(m.deletes) > 0 {
		t.Errorf("%+v, deleted %q", r, m.deletes)
	}
}

// TestABackupThatGoesMeanwhileHoldsNothing deletes a backup's manifest behind its listing: the next run looks
// at what is left of it.
func TestABackupThatGoesMeanwhileHoldsNothing(t *testing.T) {
	m := tenDays(t)
	manifest := "db/base/day1/manifest.json"
	m.onRead = func(key string) {
		if key == manifest {
			delete(m.objects, key)
		}
	}
	r := Run(t.Context(), m, threeDays())
	if r.Held != "" || strings.Join(r.Backups, " ") != "day0 day2 day3 day4 day5" ||
		fmt.Sprint(r.Unfinished) != "[given-up]" {
		t.Errorf("%+v", r)
	}
	if again := Run(t.Context(), m, threeDays()); again.Held != "" || fmt.Sprint(again.Unfinished) != "[day1]" {
		t.Errorf("again: %+v", again)
	}
}

func TestADamagedBackupIsToldAndStays(t *testing.T) {
	m := tenDays(t)
	m.objects["db/base/day2/manifest.json"][40] ^= 1
	m.objects["db/base/day6/manifest.json"][40] ^= 1 // it cannot be where the window begins
	r := Run(t.Context(), m, threeDays())
	if strings.Join(r.Backups, " ") != "day0 day1 day3 day4" || r.Parts != 4 {
		t.Errorf("%+v", r)
	}
	for _, id := range []string{"day2", "day6"} {
		if !slices.Contains(r.Kept, facts.Kept{ID: id, Why: facts.KeepsUnreadable}) ||
			m.objects["db/base/"+id+"/manifest.json"] == nil {
			t.Errorf("%s: %+v", id, r.Kept)
		}
	}
}

// TestARemovalThatIsCutOffIsFinishedByTheNext, wherever it is cut off.
func TestARemovalThatIsCutOffIsFinishedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := tenDays(t)
		Run(t.Context(), whole, threeDays())
		for failAt := 1; failAt <= len(whole.deletes); failAt++ {
			m := tenDays(t)
			m.failAt = failAt
			r := Run(t.Context(), m, threeDays())
			if r.Held != core.RetentionFailed || !strings.Contains(r.Message, errFault.Error()) {
				t.Errorf("%d: %+v", failAt, r)
			}
			if parts := len(m.keys(".binlog.zst")); parts < 10 && len(r.Backups) < 6 {
				t.Errorf("%d: %d parts are left, and %q are removed", failAt, parts, r.Backups)
			}
			m.failAt = 0
			p := threeDays() // what has no manifest any more goes a week later
			if r := Run(t.Context(), m, p); r.Held != "" {
				t.Errorf("%d: %+v", failAt, r)
			}
			if got, want := m.keys("manifest.json"), whole.keys("manifest.json"); !slices.Equal(got, want) {
				t.Errorf("%d: left are %q", failAt, got)
			}
			if got, want := m.keys(".binlog.zst"), whole.keys(".binlog.zst"); !slices.Equal(got, want) {
				t.Errorf("%d: left are %q", failAt, got)
			}
		}
	})
}

func TestARemovalEndsWithItsTime(t *testing.T) {
	m := tenDays(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := Run(ctx, m, threeDays()); r.Held == "" || len(m.deletes) > 0 {
		t.Errorf("%+v, deleted %q", r, m.deletes)
	}
}
