package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"filippo.io/age"

	"cnmsql.co/internal/seal"
)

// newKey is a key with so many identities, and each of them.
func newKey(t *testing.T, n int) (all seal.Key, each []seal.Key) {
	t.Helper()
	var lines []string
	for range n {
		one, err := age.GenerateX25519Identity()
		must(t, err)
		k, err := seal.Parse([]byte(one.String()))
		must(t, err)
		lines, each = append(lines, one.String()), append(each, k)
	}
	all, err := seal.Parse([]byte(strings.Join(lines, "\n")))
	must(t, err)
	return all, each
}

// takenSealed is a backup of the scene in a store, encrypted.
func takenSealed(t *testing.T, key seal.Key) (*memory, *Manifest) {
	t.Helper()
	s, o := newMemory(), options()
	o.Key = key
	_, err := take(t.Context(), from(scene(4), nil), s, o)
	must(t, err)
	m, err := Read(t.Context(), s, cluster, o.ID)
	must(t, err)
	return s, m
}

func restoreWith(t *testing.T, s *memory, m *Manifest, key seal.Key) (map[string]string, error) {
	t.Helper()
	root := directory(t)
	err := Restore(t.Context(), s, m, root, RestoreOptions{Server: "9.7.4", Key: key})
	return contents(t, root), err
}

func TestAnEncryptedBackupIsRestored(t *testing.T) {
	key, _ := newKey(t, 1)
	s, m := takenSealed(t, key)
	written, err := restoreWith(t, s, m, key)
	must(t, err)
	if want := applied(t, scene(4)); !maps.Equal(written, want) {
		t.Errorf("%d files are not the %d of the scene", len(written), len(want))
	}
	if m.Recipient != key.Recipient() || len(m.Parts) < 5 {
		t.Errorf("%d parts for %s", len(m.Parts), m.Recipient)
	}
	for _, p := range m.Parts {
		if !strings.HasSuffix(p.Name, ".zst.age") || p.RawSHA256 != (Hash{}) || p.SHA256 == (Hash{}) {
			t.Errorf("%+v", p)
		}
	}
}

// Neither a page, nor the name of a table, nor what would confirm a guess of either.
func TestWhatIsEncryptedCannotBeReadInTheStore(t *testing.T) {
	key, _ := newKey(t, 1)
	sealed, m := takenSealed(t, key)
	plain, open := taken(t)
	for _, p := range m.Parts {
		object := sealed.objects[prefix(cluster, m.ID)+p.Name]
		if !bytes.HasPrefix(object, []byte("age-encryption.org/v1\n")) {
			t.Errorf("%s is not of age", p.Name)
		}
	}
	manifest := sealed.objects[ManifestKey(cluster, m.ID)]
	for _, p := range open.Parts {
		digits, err := p.RawSHA256.MarshalText()
		must(t, err)
		if !bytes.Contains(plain.objects[ManifestKey(cluster, open.ID)], digits) || bytes.Contains(manifest, digits) {
			t.Errorf("%s is in the manifest", digits)
		}
	}
	if !bytes.HasPrefix(m.Notes, []byte("age-encryption.org/v1\n")) ||
		!bytes.HasPrefix(manifest, []byte(`{"format":2,`)) {
		t.Errorf("%.100s", manifest)
	}
}

func TestWithoutTheKeyNothingIsRestoredAndAllElseCanBeDone(t *testing.T) {
	key, _ := newKey(t, 1)
	other, _ := newKey(t, 2)
	s, m := takenSealed(t, key)
	for given, why := range map[*seal.Key]*seal.Reason{{}: seal.KeyMissing, &other: seal.KeyWrong} {
		written, err := restoreWith(t, s, m, *given)
		if !errors.Is(err, why) || !strings.Contains(err.Error(), key.Recipient()) || len(written) > 0 {
			t.Errorf("%d files are written: %v", len(written), err)
		}
		if err := m.Opens(*given); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
	}
	must(t, m.Opens(key))
	must(t, Check(t.Context(), s, m))
	all, err := List(t.Context(), s, cluster)
	if err != nil || len(all) != 1 || all[0].Err != nil || all[0].Recipient != key.Recipient() ||
		all[0].Objects != len(m.Parts)+1 {
		t.Errorf("%+v, %v", all, err)
	}
	must(t, Remove(t.Context(), s, cluster, m.ID))
	if left := s.keys("/base/"); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestAKeyMayBeReplacedAndGivenWhereNoneIsNeeded(t *testing.T) {
	both, each := newKey(t, 2)
	for _, key := range each {
		s, m := takenSealed(t, key)
		if written, err := restoreWith(t, s, m, both); err != nil || !mayStart(written) {
			t.Errorf("%v", err)
		}
	}
	s, m := taken(t)
	must(t, m.Opens(both))
	if written, err := restoreWith(t, s, m, both); err != nil || !mayStart(written) {
		t.Errorf("%v", err)
	}
}

// Whoever can write to the store can make the checksums fit.
func TestEncryptedPartsThatWereChangedAreRefused(t *testing.T) {
	key, _ := newKey(t, 1)
	for name, spoil := range map[string]func([]byte) []byte{
		"a bit of the header": func(b []byte) []byte { b[40] ^= 4; return b },
		"a bit of the data":   func(b []byte) []byte { b[len(b)/2] ^= 4; return b },
		"the last byte":       func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"a byte less":         func(b []byte) []byte { return b[:len(b)-1] },
		"a byte more":         func(b []byte) []byte { return append(b, 0) },
		"nothing":             func([]byte) []byte { return []byte{} },
		"plain":               func([]byte) []byte { return []byte("(\xb5/\xfd plain") },
	} {
		for _, fits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s, m := takenSealed(t, key)
				p := &m.Parts[1]
				at := prefix(cluster, m.ID) + p.Name
				s.objects[at] = spoil(s.objects[at])
				s.hidden[at] = !fits
				if fits {
					m.StoredSize += int64(len(s.objects[at])) - p.Stored
					p.Stored, p.SHA256 = int64(len(s.objects[at])), sha256.Sum256(s.objects[at])
				}
				if written, err := restoreWith(t, s, m, key); !errors.Is(err, PartDamaged) || mayStart(written) {
					t.Errorf("%s, checksum fits %t: %v", name, fits, err)
				}
			})
		}
	}
}

func TestEncryptedPartsInEachOthersPlaceAreRefused(t *testing.T) {
	key, _ := newKey(t, 1)
	s, m := takenSealed(t, key)
	a, b := &m.Parts[0], &m.Parts[1]
	a.Name, b.Name, a.Stored, b.Stored, a.SHA256, b.SHA256 = b.Name, a.Name, b.Stored, a.Stored, b.SHA256, a.SHA256
	if written, err := restoreWith(t, s, m, key); err == nil || mayStart(written) {
		t.Error("it is restored")
	}
}

func TestEncryptedNotesThatAreNotThePartsAreRefused(t *testing.T) {
	key, _ := newKey(t, 1)
	for name, spoil := range map[string]func(*Manifest){
		"one less":              func(m *Manifest) { m.Parts[0].Notes-- },
		"a part less":           func(m *Manifest) { m.Parts = m.Parts[1:] },
		"none":                  func(m *Manifest) { m.Notes = nil },
		"cut":                   func(m *Manifest) { m.Notes = m.Notes[:len(m.Notes)-1] },
		"cut where the data is": func(m *Manifest) { m.Notes = m.Notes[:len(m.Notes)-40] },
		"plain":                 func(m *Manifest) { m.Notes = []byte("notes") },
		"a bit":                 func(m *Manifest) { m.Notes = bytes.Clone(m.Notes); m.Notes[len(m.Notes)/2] ^= 1 },
	} {
		s, m := takenSealed(t, key)
		spoil(m)
		if written, err := restoreWith(t, s, m, key); !errors.Is(err, ManifestDamaged) || len(written) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The file was written before there was encryption.
func TestAPlainManifestIsWhatItWas(t *testing.T) {
	was, err := os.ReadFile("testdata/format1.json")
	must(t, err)
	m, err := Parse(was)
	must(t, err)
	must(t, m.Opens(seal.Key{}))
	if is, err := m.Encode(); err != nil || !bytes.Equal(is, was) {
		t.Errorf("%v\n%s\n%s", err, is, was)
	}
}

// A format says whether there is a recipient, so that no release takes one for the other.
func TestAFormatThatDoesNotFitTheManifestIsRefused(t *testing.T) {
	key, _ := newKey(t, 1)
	_, sealed := takenSealed(t, key)
	_, plain := taken(t)
	for name, m := range map[string]*Manifest{"encrypted": sealed, "plain": plain} {
		body, err := json.Marshal(m)
		must(t, err)
		if has := bytes.Contains(body, []byte("recipient")); has != (m == sealed) {
			t.Errorf("%s: tells of a recipient: %t", name, has)
		}
		if _, err := Parse(envelope(m.format(), body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Parse(envelope(3-m.format(), body)); !errors.Is(err, ManifestDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sealed.Recipient = "somebody"
	data, err := sealed.Encode()
	must(t, err)
	if _, err := Parse(data); !errors.Is(err, ManifestDamaged) {
		t.Errorf("%v", err)
	}
}
