package retention

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/store"
)

// minutes is a store with a backup, and an archive of which a part was written each minute before it.
func minutes(t *testing.T, n int) *memory {
	t.Helper()
	m := tenDays(t)
	for k := range n {
		p := facts.Part{Format: 1, Cluster: uid, Epoch: 1, Sequence: int64(k + 11), Before: first(k + 10),
			GTIDs: first(k + 11).Subtract(first(k + 10)), Transactions: 1}
		p.First = day(9, 24-float64(n-k)/60)
		p.Last = p.First
		m.part(t, p)
	}
	m.backup(t, "now", n+10, day(10, 0))
	return m
}

func now() Policy { return Policy{Cluster: "db", UID: uid, Written: "now", Now: day(10, 0)} }

// told is how many parts an archive has, in bundles or not, and what is in them.
func told(a facts.Archive) string {
	var parts, transactions int64
	var all gtid.Set
	for _, p := range a.Parts {
		parts, transactions, all = parts+p.Span().Count(), transactions+p.Transactions, all.Union(p.GTIDs)
	}
	return fmt.Sprintf("%d parts with %d transactions, which are %s, and %v", parts, transactions, all, a.Branches)
}

func TestSmallPartsAreMergedAfterABackup(t *testing.T) {
	m := minutes(t, 200)
	before, err := archive.Load(t.Context(), m, backup.LogPrefix("db"))
	must(t, err)
	// All but those of an hour, and the newest before that.
	if r := Merge(t.Context(), m, now()); r.Held != "" || r.Bundles != 1 || r.Parts != 150 || r.Removed != 0 {
		t.Fatalf("%+v", r)
	}
	for key := range m.objects {
		if strings.HasSuffix(key, ".bundle.zst") {
			m.modified[key] = day(10, 0)
		}
	}
	later := now()
	later.Written, later.Now = "later", day(11, 0)
	m.backup(t, "later", 210, day(11, 0))
	if r := Merge(t.Context(), m, later); r.Held != "" || r.Removed != 150 || r.Parts != 59 {
		t.Fatalf("%+v", r)
	}
	after, err := archive.Load(t.Context(), m, backup.LogPrefix("db"))
	if must(t, err); told(after) != told(before) {
		t.Errorf("found %s, not %s", told(after), told(before))
	}
	if r := Run(t.Context(), m, threeDays()); r.Unknown != 3 {
		t.Errorf("bundles are known: %+v", r.Strangers)
	}
}

// TestWhereNoBackupIsTakenTheArchiveTellsTheTime: by the store's clock, which may be behind the one here.
func TestWhereNoBackupIsTakenTheArchiveTellsTheTime(t *testing.T) {
	m, p := minutes(t, 200), now()
	p.Written = ""
	// The newest part is a minute older than the backup is.
	if r := Merge(t.Context(), m, p); r.Held != "" || r.Parts != 149 {
		t.Errorf("%+v", r)
	}
	m, p.Now = minutes(t, 200), day(9, 22)
	if r := Merge(t.Context(), m, p); r.Held != "" || r.Parts != 30 {
		t.Errorf("by the clock here, which is behind: %+v", r)
	}
}

func TestWhyPartsAreNotMerged(t *testing.T) {
	const part = "db/log/0000000001/0000000030.binlog.zst"
	for name, c := range map[string]struct {
		change  func(m *memory, p *Policy)
		held    core.Reason
		says    string
		bundles int
	}{
		"another cluster's archive": {func(_ *memory, p *Policy) { p.UID = "u-2" },
			core.Reason(backup.ArchiveTaken.Name), uid, 0},
		"the store does not let it": {func(m *memory, _ *Policy) { m.unreadable = part },
			core.Reason(store.AccessDenied.Name), "part", 0},
		"a part is damaged": {func(m *memory, _ *Policy) { m.objects[part] = m.objects[part][:40] },
			facts.PartDamaged, "put them back", 2},
		"the listing is behind": {func(m *memory, _ *Policy) { m.hidden["db/base/now/manifest.json"] = true },
			"", "", 0},
		"the clock here is slow": {func(_ *memory, p *Policy) { p.Now = day(9, 21) }, "", "", 0},
		"nothing was ever stored": {func(m *memory, _ *Policy) { clear(m.objects) },
			core.Reason(store.NotFound.Name), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m, p := minutes(t, 200), now()
			c.change(m, &p)
			r := Merge(t.Context(), m, p)
			if r.Held != c.held || !strings.Contains(r.Message, c.says) || r.Removed != 0 || r.Bundles != c.bundles {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestEachStoreMerges: a directory, an S3 server and one of Azure, two hours later.
func TestEachStoreMerges(t *testing.T) {
	for name, dir := range everyStore() {
		t.Run(name, func(t *testing.T) {
			s, err := store.Open(dir(t))
			must(t, err)
			for key, body := range minutes(t, 50).objects {
				must(t, s.Put(t.Context(), key, body))
			}
			before, err := archive.Load(t.Context(), s, backup.LogPrefix("db"))
			must(t, err)
			for k, want := range []archive.Merged{{Bundles: 1, Parts: 59}, {Removed: 59}, {}} {
				later := time.Now().Add(time.Duration(k+1) * 2 * time.Hour)
				m, err := archive.Merge(t.Context(), s, backup.LogPrefix("db"), later)
				if err != nil || !reflect.DeepEqual(m, want) {
					t.Errorf("%+v, %v", m, err)
				}
				after, err := archive.Load(t.Context(), s, backup.LogPrefix("db"))
				if err != nil || told(after) != told(before) {
					t.Errorf("%v: found %s, not %s", err, told(after), told(before))
				}
			}
		})
	}
}
