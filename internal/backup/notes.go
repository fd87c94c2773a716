package backup

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/zstd"

	"cnmsql.co/internal/clone"
)

// maxNotes bounds what a manifest's notes may become: the files of two million tables.
const maxNotes = 256 << 20

// notes gather the records without data.
type notes struct {
	buf   bytes.Buffer
	of    map[int]int // how many there are of a part
	write *clone.Writer
}

func newNotes() *notes {
	n := &notes{of: map[int]int{}}
	n.write = clone.NewWriter(&n.buf)
	return n
}

func (n *notes) add(part int, r clone.Record) error {
	n.of[part]++
	return n.write.Write(r)
}

func (n *notes) compressed(by *zstd.Encoder) []byte { return by.EncodeAll(n.buf.Bytes(), nil) }

// readNotes gives each part the notes that are its own.
func (m *Manifest) readNotes() ([][]clone.Record, error) {
	d, err := zstd.NewReader(bytes.NewReader(m.Notes), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, refuse(ManifestDamaged, "the notes of backup %s: %v", m.ID, err)
	}
	defer d.Close()
	in := clone.NewReader(io.LimitReader(d, maxNotes))
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
