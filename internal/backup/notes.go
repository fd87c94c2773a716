package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/seal"
)

// maxNotes bounds what a manifest's notes may become: the files of two million tables.
const maxNotes = 256 << 20

// notes gather the records without data.
type notes struct {
	buf   bytes.Buffer
	of    map[int]int // how many there are of a part
	write *clone.Writer
	limit int // of bytes
}

func newNotes() *notes {
	n := &notes{of: map[int]int{}, limit: maxNotes}
	n.write = clone.NewWriter(&n.buf)
	return n
}

// add a record, unless there are more than a restore reads.
func (n *notes) add(part int, r clone.Record) error {
	n.of[part]++
	if err := n.write.Write(r); err != nil {
		return err
	}
	if n.buf.Len() > n.limit {
		return refuse(BackupTooLarge, "its notes have more than %d bytes", n.limit)
	}
	return nil
}

func (n *notes) compressed(by *zstd.Encoder) []byte { return by.EncodeAll(n.buf.Bytes(), nil) }

// sealed are the notes of a backup that is encrypted. The hashes of what is in its parts
// move into them.
func (n *notes) sealed(by *zstd.Encoder, key seal.Key, parts []Part) ([]byte, error) {
	var out bytes.Buffer
	to, err := key.Seal(&out)
	if err != nil {
		return nil, err
	}
	by.Reset(to)
	for i := range parts {
		if parts[i].RawSHA256 == (Hash{}) {
			continue // it is not compressed
		}
		if _, err := by.Write(parts[i].RawSHA256[:]); err != nil {
			return nil, err
		}
		parts[i].RawSHA256 = Hash{}
	}
	_, err = by.Write(n.buf.Bytes())
	if err = errors.Join(err, by.Close(), to.Close()); err != nil {
		return nil, fmt.Errorf("encrypting the notes: %w", err)
	}
	return out.Bytes(), nil
}

// inside is what of a manifest only who restores it needs.
type inside struct {
	// notes of each part, and the hash of all of its records if it is compressed.
	notes  [][]clone.Record
	hashes []Hash
}

// Opens looks whether a key opens the backup, and what it opens is whole: KeyMissing or
// KeyWrong of the package seal, or ManifestDamaged. A backup that is not encrypted needs none.
func (m *Manifest) Opens(key seal.Key) error {
	_, err := m.open(key)
	return err
}

// open gives each part what is its own.
func (m *Manifest) open(key seal.Key) (*inside, error) {
	from := io.Reader(bytes.NewReader(m.Notes))
	if m.Recipient != "" {
		if err := key.Opens(m.Recipient); err != nil {
			return nil, fmt.Errorf("backup %s: %w", m.ID, err)
		}
		var err error
		if from, err = key.Open(from, m.Recipient); err != nil {
			return nil, refuse(ManifestDamaged, "the notes of backup %s: %v", m.ID, err)
		}
	}
	d, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, refuse(ManifestDamaged, "the notes of backup %s: %v", m.ID, err)
	}
	defer d.Close()
	in := &inside{}
	if in.hashes, err = m.readHashes(d); err == nil {
		in.notes, err = m.readNotes(d)
	}
	return in, err
}

// readHashes reads those that stand before the notes.
func (m *Manifest) readHashes(from io.Reader) ([]Hash, error) {
	all := make([]Hash, len(m.Parts))
	for i, p := range m.Parts {
		all[i] = p.RawSHA256
		if m.Recipient == "" || m.Uncompressed {
			continue
		}
		if _, err := io.ReadFull(from, all[i][:sha256.Size]); err != nil {
			return nil, refuse(ManifestDamaged, "the hash of part %d of backup %s: %v", i, m.ID, err)
		}
	}
	return all, nil
}

// readNotes gives each part the notes that are its own.
func (m *Manifest) readNotes(from io.Reader) ([][]clone.Record, error) {
	in := clone.NewReader(io.LimitReader(from, maxNotes))
	all := make([][]clone.Record, len(m.Parts))
	for i, p := range m.Parts {
		for range p.Notes {
			r, err := in.Next()
			if err == nil && r.IsData() {
				err = clone.Malformed
			}
			if err != nil {
				return nil, refuse(ManifestDamaged, "the notes of part %d of backup %s: %v", i, m.ID, err)
			}
			all[i] = append(all[i], clone.Record{Descriptor: r.Descriptor})
		}
	}
	if _, err := in.Next(); err != io.EOF {
		return nil, refuse(ManifestDamaged, "backup %s has more notes than its parts tell", m.ID)
	}
	return all, nil
}
