package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/seal"
)

const (
	// format is that of an identity, and of a backup that is compressed and not encrypted;
	// formatSealed is that of one that is encrypted, too, and formatUncompressed that of one
	// that is not compressed, encrypted or not. What does not know one of them refuses it.
	format             = 1
	formatSealed       = 2
	formatUncompressed = 3
	methodClone        = "clone"
	// maxManifest is that of some 25 TB.
	maxManifest = 512 << 20
	// maxPart is the largest part that is written or read, in bytes before compression.
	maxPart = 1 << 30
	// overhead is what a part may have beyond that at most: a record, and what compression
	// adds to what it cannot compress.
	overhead = 5 << 20
)

// Summary is what a manifest tells about a backup as a whole.
type Summary struct {
	ID      string   `json:"id"`
	Cluster Identity `json:"cluster"`
	// Method is "clone": parts hold records of internal/clone.
	Method string `json:"method"`
	// Instance is where it was taken, and Epoch that of the cluster then.
	Instance string `json:"instance"`
	Epoch    int64  `json:"epoch"`
	// Server is the version of the donor, for example "9.7.4".
	Server string `json:"server"`
	// Begin and End are when the donor was asked, and when all parts were in the store.
	// Point is a moment shortly after that of which the data are.
	Begin time.Time `json:"begin"`
	Point time.Time `json:"point"`
	End   time.Time `json:"end"`
	// BeginGTID is all in the data, and what is in the data is all in EndGTID. The server
	// itself tells the set exactly once it runs on them.
	BeginGTID gtid.Set `json:"beginGTID"`
	EndGTID   gtid.Set `json:"endGTID"`
	// RawSize and StoredSize of all parts, in bytes before and after compression.
	RawSize    int64 `json:"rawSize"`
	StoredSize int64 `json:"storedSize"`
	// Recipient of age to which parts and notes are encrypted; "" if they are not. Whoever
	// has its identity restores the backup.
	Recipient string `json:"recipient,omitempty"`
	// Uncompressed: parts hold the records as they are.
	Uncompressed bool `json:"uncompressed,omitempty"`
}

// Manifest is what makes parts a backup. It is written last.
type Manifest struct {
	Summary
	Origin clone.Origin `json:"origin"`
	Parts  []Part       `json:"parts"`
	// Notes are the records without data of all parts, one behind the other, compressed: a
	// restore needs those of a state before its data. Of a backup that is encrypted they are,
	// too, with the RawSHA256 of all parts before them.
	Notes []byte `json:"notes"`
}

// Part is one object of a backup.
type Part struct {
	// Name within the backup.
	Name  string `json:"name"`
	State string `json:"state"`
	// Raw and RawSHA256 are of the records, Stored and SHA256 of the object, in bytes. A
	// RawSHA256 beside what is encrypted would let guesses be confirmed: it is in the notes.
	// What is not compressed has none: SHA256 vouches for the records, too.
	Raw       int64 `json:"raw"`
	Stored    int64 `json:"stored"`
	SHA256    Hash  `json:"sha256"`
	RawSHA256 Hash  `json:"rawSHA256,omitzero"`
	// Records of all kinds, of which Notes have no data.
	Records int `json:"records"`
	Notes   int `json:"notes"`
}

// Hash is a SHA-256, in hexadecimal digits as text.
type Hash [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("a hash of %d digits", len(text))
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// Encode is the manifest as it is stored: JSON, in which the hash of all that matters
// stands before it. It refuses what nobody would read: BackupTooLarge.
func (m *Manifest) Encode() ([]byte, error) { return m.encode(maxManifest) }

func (m *Manifest) encode(limit int) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding the manifest of backup %s: %w", m.ID, err)
	}
	out := envelope(m.format(), body)
	if len(out) > limit {
		return nil, refuse(BackupTooLarge, "the manifest of backup %s has %d bytes, and %d are read", m.ID, len(out),
			limit)
	}
	return out, nil
}

// format is what the manifest is written in.
func (m *Manifest) format() int {
	switch {
	case m.Uncompressed:
		return formatUncompressed
	case m.Recipient != "":
		return formatSealed
	}
	return format
}

// Checksum is the hash that Encode puts before what matters, in hexadecimal digits.
func (m *Manifest) Checksum() (string, error) {
	body, err := json.Marshal(m)
	return fmt.Sprintf("%x", sha256.Sum256(body)), err
}

// envelope is around a manifest. Its bytes are fixed, so that any other are damage.
func envelope(format int, body []byte) []byte {
	out := fmt.Appendf(nil, `{"format":%d,"sha256":"%x","manifest":`, format, sha256.Sum256(body))
	return append(append(out, body...), "}\n"...)
}

// Parse reads what Encode made. It refuses what was written in another format
// (FormatUnknown), and what was changed or is not whole (ManifestDamaged).
func Parse(data []byte) (*Manifest, error) {
	var e struct {
		Format   int             `json:"format"`
		Manifest json.RawMessage `json:"manifest"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return nil, refuse(ManifestDamaged, "%v", err)
	}
	if e.Format < format || e.Format > formatUncompressed {
		return nil, refuse(FormatUnknown, "format %d", e.Format)
	}
	if !bytes.Equal(data, envelope(e.Format, e.Manifest)) {
		return nil, refuse(ManifestDamaged, "its checksum is another")
	}
	m := &Manifest{}
	if err := json.Unmarshal(e.Manifest, m); err != nil {
		return nil, refuse(ManifestDamaged, "%v", err)
	}
	if m.format() != e.Format {
		return nil, refuse(ManifestDamaged, "it is of format %d, uncompressed is %t, and recipient %.100q",
			e.Format, m.Uncompressed, m.Recipient)
	}
	return m, m.check()
}

// check refuses what nothing can be done with, or what would lead out of the backup.
func (m *Manifest) check() error {
	if err := checkNames(m.Cluster.Cluster, m.ID); err != nil {
		return refuse(ManifestDamaged, "%v", err)
	}
	if m.Method != methodClone {
		return refuse(FormatUnknown, "backup %s was taken by method %q", m.ID, m.Method)
	}
	if m.Recipient != "" {
		if err := seal.CheckRecipient(m.Recipient); err != nil {
			return refuse(ManifestDamaged, "backup %s: %v", m.ID, err)
		}
	}
	var raw, stored int64
	for i, p := range m.Parts {
		if !partName.MatchString(p.Name) || p.Raw < 0 || p.Stored < 0 || p.Raw > maxPart+overhead ||
			p.Stored > maxPart+overhead ||
			p.Notes < 0 || p.Notes > p.Records || stateOf(p.State) == 0 {
			return refuse(ManifestDamaged, "part %d of backup %s: %+v", i, m.ID, p)
		}
		raw, stored = raw+p.Raw, stored+p.Stored
	}
	if len(m.Parts) == 0 || raw != m.RawSize || stored != m.StoredSize {
		return refuse(ManifestDamaged, "the %d parts of backup %s have %d bytes, %d stored, and it tells %d and %d",
			len(m.Parts), m.ID, raw, stored, m.RawSize, m.StoredSize)
	}
	return nil
}

// stateOf knows a state by its name; 0 for what is none.
func stateOf(name string) clone.State {
	for s := clone.StateInit; s <= clone.StateDone; s++ {
		if s.String() == name {
			return s
		}
	}
	return 0
}
