package restore

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

// TestADamagedBackupIsPassedOverByTheNextAttempt as long as it is damaged: what an attempt found is read before the
// next one writes anything.
func TestADamagedBackupIsPassedOverByTheNextAttempt(t *testing.T) {
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	backUp(t, s, "older", 1, numbers("1-2", ""), at(2))
	backUp(t, s, "newer", 1, numbers("1-6", ""), at(6))
	m, err := backup.Read(t.Context(), s, "db", "newer")
	if err != nil {
		t.Fatal(err)
	}
	m.Parts[0].SHA256 = sha256.Sum256([]byte("x"))
	text, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	part := strings.Replace(backup.ManifestKey("db", "newer"), "manifest.json", m.Parts[0].Name, 1)
	put := func(key, text string) {
		t.Helper()
		if err := s.Put(t.Context(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	put(backup.ManifestKey("db", "newer"), string(text))
	put(part, "y")
	task := recovery.Task{Cluster: "db", Target: recovery.Target{Immediate: true}}
	finds := func(want string, suspects *Suspects) {
		t.Helper()
		o, err := FindAgain(t.Context(), s, seal.Key{}, task, "8.4.6", suspects)
		if err != nil || o.Base.ID != want {
			t.Fatalf("it begins with %+v and not with %s: %v", o, want, err)
		}
	}
	finds("newer", nil) // what is in it was not read yet
	damaged := backup.CheckParts(t.Context(), s, m, []string{m.Parts[0].Name})
	suspects := (*Suspects)(nil).With(fmt.Errorf("restoring: %w", damaged))
	if !errors.Is(damaged, backup.PartDamaged) || suspects == nil {
		t.Fatalf("%v, and %+v", damaged, suspects)
	}
	finds("older", suspects)
	put(part, "x")
	finds("newer", suspects)
}

// TestWhatIsSuspected is what was damaged, of each attempt, and nothing for a store that does not answer.
func TestWhatIsSuspected(t *testing.T) {
	var all *Suspects
	if all = all.With(store.Unreachable); all != nil {
		t.Errorf("a store that does not answer has %+v suspected", all)
	}
	m := &backup.Manifest{Parts: []backup.Part{{Name: "a", Stored: 1}, {Name: "b", Stored: 1}}}
	m.ID, m.Cluster.Cluster = "one", "db"
	s, err := store.Open(storetest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, name := range []string{"a", "b"} {
			all = all.With(backup.CheckParts(t.Context(), s, m, []string{name}))
		}
	}
	if got := all.ofBackup("one"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("suspected are %v", got)
	}
}
