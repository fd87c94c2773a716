package backup

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
)

func encoded(t *testing.T) (*Manifest, []byte) {
	t.Helper()
	_, m := taken(t)
	data, err := m.Encode()
	must(t, err)
	return m, data
}

func TestAManifestIsReadAsItWasWritten(t *testing.T) {
	m, data := encoded(t)
	got, err := Parse(data)
	must(t, err)
	if !reflect.DeepEqual(got.Parts, m.Parts) || !bytes.Equal(got.Notes, m.Notes) ||
		!reflect.DeepEqual(got.Origin, m.Origin) ||
		!got.EndGTID.Equal(m.EndGTID) || !got.Point.Equal(m.Point) || got.Cluster != m.Cluster {
		t.Errorf("%+v is not %+v", got, m)
	}
	if m.Begin.After(m.Point) || m.Point.After(m.End) || time.Since(m.End) > time.Minute {
		t.Errorf("begin %s, point %s, end %s", m.Begin, m.Point, m.End)
	}
}

// Any bit that differs, and any end that comes early.
func TestADamagedManifestIsRefused(t *testing.T) {
	_, data := encoded(t)
	for i := range data {
		if _, err := Parse(data[:i]); !errors.Is(err, ManifestDamaged) {
			t.Errorf("%d of %d bytes: %v", i, len(data), err)
		}
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			// One digit of the format may look as if a later release had written it.
			if _, err := Parse(flipped); !errors.Is(err, ManifestDamaged) && !errors.Is(err, FormatUnknown) {
				t.Errorf("bit %d of byte %d (%q): %v", bit, i, data[i], err)
			}
		}
	}
	if _, err := Parse(append(data, ' ')); !errors.Is(err, ManifestDamaged) {
		t.Errorf("a byte more: %v", err)
	}
}

func TestWhatALaterReleaseWroteIsRefusedByName(t *testing.T) {
	m, data := encoded(t)
	later := strings.Replace(string(data), `{"format":1,`, `{"format":4,"new":true,`, 1)
	if _, err := Parse([]byte(later)); !errors.Is(err, FormatUnknown) {
		t.Errorf("%v", err)
	}
	m.Method = "snapshot"
	data, err := m.Encode()
	must(t, err)
	if _, err := Parse(data); !errors.Is(err, FormatUnknown) {
		t.Errorf("%v", err)
	}
}

// A manifest whose checksum fits may still have been written by somebody else.
func TestAManifestThatLeadsElsewhereIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Manifest){
		"a part above":       func(m *Manifest) { m.Parts[0].Name = "../../identity.json" },
		"a name above":       func(m *Manifest) { m.ID = ".." },
		"a cluster above":    func(m *Manifest) { m.Cluster.Cluster = "../other" },
		"a part of any size": func(m *Manifest) { m.Parts[0].Stored = 1 << 60 },
		"less than nothing":  func(m *Manifest) { m.Parts[0].Raw = -1 },
		"no such state":      func(m *Manifest) { m.Parts[0].State = "Any" },
		"a sum that is none": func(m *Manifest) { m.StoredSize++ },
		"no part":            func(m *Manifest) { m.Parts = nil },
	} {
		m, _ := encoded(t)
		spoil(m)
		data, err := m.Encode()
		must(t, err)
		if _, err := Parse(data); !errors.Is(err, ManifestDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotesThatAreNotThePartsAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Manifest){
		"one less":       func(m *Manifest) { m.Parts[0].Notes-- },
		"one more":       func(m *Manifest) { m.Parts[0].Notes++ },
		"none":           func(m *Manifest) { m.Notes = nil },
		"cut":            func(m *Manifest) { m.Notes = m.Notes[:len(m.Notes)/2] },
		"not compressed": func(m *Manifest) { m.Notes = []byte("notes") },
	} {
		s, m := taken(t)
		spoil(m)
		if written, err := restore(t, s, m); !errors.Is(err, ManifestDamaged) || len(written) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What a restore does not read must not be called complete.
func TestABackupThatNobodyWouldReadIsRefused(t *testing.T) {
	m, data := encoded(t)
	if _, err := m.encode(len(data)); err != nil {
		t.Error(err)
	}
	if _, err := m.encode(len(data) - 1); !errors.Is(err, BackupTooLarge) {
		t.Errorf("a manifest that is too large: %v", err)
	}
	n, r := newNotes(), file(clone.StateFileCopy, 0, 0, "./db/a.ibd")
	must(t, n.add(0, r))
	n.limit = 2 * n.buf.Len()
	must(t, n.add(0, r))
	if err := n.add(1, r); !errors.Is(err, BackupTooLarge) {
		t.Errorf("notes that are too many: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"format":1,"sha256":"","manifest":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = Parse(body)
		for _, format := range []int{format, formatSealed, formatUncompressed} {
			if m, err := Parse(envelope(format, body)); err == nil {
				_ = m.Opens(seal.Key{})
			}
		}
	})
}
