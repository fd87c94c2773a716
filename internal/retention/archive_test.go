package retention

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"cnmsql.co/internal/backup"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// strangers are what nobody knows in tenDays, and what is another cluster's.
var strangers = []string{"db-2/identity.json", "db/base/day1/README", "db/log/0000000001/index", "db/notes.txt"}

func TestAnArchiveGoesWithItsCluster(t *testing.T) {
	m := tenDays(t)
	r, err := RemoveArchive(t.Context(), m, "db", uid)
	if err != nil || r.Backups != 12 || r.Objects != 11 || r.Unknown != 3 ||
		strings.Join(r.UnknownNames, " ") != "base/day1/README log/0000000001/index notes.txt" {
		t.Errorf("%+v, %v", r, err)
	}
	if left := m.keys(""); !slices.Equal(left, strangers) {
		t.Errorf("left are %q", left)
	}
	logs := slices.IndexFunc(m.deletes, func(k string) bool { return strings.Contains(k, "/log/") })
	if slices.ContainsFunc(m.deletes[logs:], func(k string) bool { return strings.Contains(k, "/base/") }) {
		t.Errorf("logs go before the backups that need them: %q", m.deletes)
	}
	if last := m.deletes[len(m.deletes)-1]; last != "db/identity.json" {
		t.Errorf("the last that goes is %s", last)
	}
	if again, err := RemoveArchive(t.Context(), m, "db", uid); err != nil || again.Backups+again.Objects > 0 {
		t.Errorf("again: %+v, %v", again, err)
	}
}

func TestAnArchiveStaysThatMayNotBeOnesOwn(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*testing.T, *memory)
		why    error
		says   string
	}{
		"another cluster's": {func(t *testing.T, m *memory) {
			m.json(t, "db/identity.json", backup.Identity{Format: 1, Cluster: "db", UID: "u-2"}, day(0, 0))
		}, backup.ArchiveTaken, "u-2"},
		"nobody's": {func(_ *testing.T, m *memory) { delete(m.objects, "db/identity.json") },
			store.NotFound, "put identity.json back"},
		"a damaged identity": {func(_ *testing.T, m *memory) { m.objects["db/identity.json"] = []byte("{") },
			backup.IdentityDamaged, "identity.json"},
		"a backup of another cluster": {func(t *testing.T, m *memory) {
			m.backupOf(t, "u-2", "day3", 3, day(3, 0))
		}, backup.ArchiveTaken, "day3"},
		"a branch of another cluster": {func(t *testing.T, m *memory) {
			m.json(t, "db/log/0000000002/branch.json", facts.Branch{Format: 1, Cluster: "u-2", Epoch: 2}, day(0, 0))
		}, backup.ArchiveTaken, "epoch 2"},
		"a manifest that cannot be read now": {func(_ *testing.T, m *memory) {
			m.unreadable = "db/base/day7/manifest.json"
		}, store.AccessDenied, "day7"},
		"a manifest that is listed and not found": {func(_ *testing.T, m *memory) {
			m.absent = "db/base/day7/manifest.json"
		}, backup.ErrManifestAbsent, "day7"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // reading is tried again, after pauses
				m := tenDays(t)
				c.change(t, m)
				_, err := RemoveArchive(t.Context(), m, "db", uid)
				if !errors.Is(err, c.why) || !strings.Contains(err.Error(), c.says) || len(m.deletes) > 0 {
					t.Errorf("%v; deleted %q", err, m.deletes)
				}
			})
		})
	}
}

// TestARemovalOfAnArchiveGoesOnWhereItWasCutOff, wherever it is cut off: whose the rest is stays
// known until the end.
func TestARemovalOfAnArchiveGoesOnWhereItWasCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole := tenDays(t)
		_, err := RemoveArchive(t.Context(), whole, "db", uid)
		must(t, err)
		for failAt := 1; failAt <= len(whole.deletes); failAt++ {
			m := tenDays(t)
			m.failAt = failAt
			if _, err := RemoveArchive(t.Context(), m, "db", uid); !errors.Is(err, errFault) {
				t.Errorf("%d: %v", failAt, err)
			}
			if m.objects["db/identity.json"] == nil {
				t.Errorf("%d: nobody knows whose the rest is", failAt)
			}
			m.failAt = 0
			if _, err := RemoveArchive(t.Context(), m, "db", uid); err != nil {
				t.Errorf("%d: %v", failAt, err)
			}
			if left := m.keys(""); !slices.Equal(left, strangers) {
				t.Errorf("%d: left are %q", failAt, left)
			}
		}
	})
}

func TestWhereNothingWasArchivedNothingIsRemoved(t *testing.T) {
	m := &memory{objects: map[string][]byte{"db/notes.txt": []byte("x"), "db-2/identity.json": []byte("x")}}
	if r, err := RemoveArchive(t.Context(), m, "db", uid); err != nil || r.Backups+r.Objects+len(m.deletes) > 0 {
		t.Errorf("%+v, %v, deleted %q", r, err, m.deletes)
	}
}
