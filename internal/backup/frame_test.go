package backup

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"cnmsql.co/internal/seal"
)

// A frame that compresses nothing is one for whoever reads zstd, however it was written.
func TestWhatIsStoredAsItIsIsAFrameOfZstd(t *testing.T) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(maxBlock))
	must(t, err)
	defer d.Close()
	random := rand.NewChaCha8([32]byte{2})
	pack := &stored{}
	for _, sizes := range [][]int{{}, {0}, {1}, {maxBlock}, {maxBlock + 1}, {3*maxBlock - 1, 40, 0, 7 * maxBlock}} {
		var want, got bytes.Buffer
		pack.Reset(&got)
		for _, n := range sizes {
			b := make([]byte, n)
			_, _ = random.Read(b)
			want.Write(b)
			written, err := pack.Write(b)
			if must(t, err); written != n {
				t.Errorf("%d of %d bytes were written", written, n)
			}
		}
		must(t, pack.Close())
		read, err := d.DecodeAll(got.Bytes(), nil)
		if err != nil || !bytes.Equal(read, want.Bytes()) {
			t.Errorf("writes of %v bytes: %d bytes instead of %d, %v", sizes, len(read), want.Len(), err)
		}
	}
}

// brokenWriter fails at its nth Write.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left--; w.left < 0 {
		return 0, iotest.ErrTimeout
	}
	return len(b), nil
}

func TestAFrameThatCannotBeWrittenFails(t *testing.T) {
	for n := range 5 { // the beginning, two headers and the block between, and nothing behind
		pack := &stored{}
		pack.Reset(&brokenWriter{n})
		_, err := pack.Write([]byte("a page"))
		if closed := pack.Close(); !errors.Is(closed, iotest.ErrTimeout) || err != nil && !errors.Is(err, closed) {
			t.Errorf("after %d writes: %v, then %v", n, err, closed)
		}
	}
}

// takenUncompressed is a backup of the scene in a store, encrypted if there is a key.
func takenUncompressed(t *testing.T, key seal.Key) (*memory, *Manifest) {
	t.Helper()
	s, o := newMemory(), options()
	o.Key, o.Uncompressed = key, true
	_, err := take(t.Context(), from(scene(4), nil), s, o)
	must(t, err)
	m, err := Read(t.Context(), s, cluster, o.ID)
	must(t, err)
	return s, m
}

func TestABackupThatIsNotCompressedIsRestored(t *testing.T) {
	key, _ := newKey(t, 1)
	for name, key := range map[string]seal.Key{"plain": {}, "encrypted": key} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { isRestoredUncompressed(t, key) })
		})
	}
}

func isRestoredUncompressed(t *testing.T, key seal.Key) {
	t.Helper()
	s, m := takenUncompressed(t, key)
	written, err := restoreWith(t, s, m, key)
	must(t, err)
	if want := applied(t, scene(4)); !maps.Equal(written, want) {
		t.Errorf("%d files are not the %d of the scene", len(written), len(want))
	}
	for _, p := range m.Parts {
		if p.Stored < p.Raw || p.Stored > p.Raw+1024 || p.SHA256 == (Hash{}) || p.RawSHA256 != (Hash{}) {
			t.Errorf("%+v", p)
		}
	}
	isRefusedIfDamaged(t, s, m, key)
}

// isRefusedIfDamaged: the hash of the object is the only one, and has to do.
func isRefusedIfDamaged(t *testing.T, s *memory, m *Manifest, key seal.Key) {
	t.Helper()
	for _, p := range m.Parts {
		object := s.objects[prefix(cluster, m.ID)+p.Name]
		object[len(object)/2] ^= 1
		if written, err := restoreWith(t, s, m, key); !errors.Is(err, PartDamaged) || mayStart(written) {
			t.Errorf("%s with a flipped bit: %v", p.Name, err)
		}
		object[len(object)/2] ^= 1
	}
}

// A release that does not know of it would miss a hash: it has to refuse by the format.
func TestABackupThatIsNotCompressedHasAFormatOfItsOwn(t *testing.T) {
	s, m := takenUncompressed(t, seal.Key{})
	text := string(s.objects[ManifestKey(cluster, m.ID)])
	if !strings.HasPrefix(text, `{"format":3,`) || !m.Uncompressed || !strings.HasSuffix(m.Parts[0].Name, ".zst") {
		t.Errorf("%.30s, %+v", text, m.Parts[0])
	}
	for _, uncompressed := range []bool{false, true} {
		m.Uncompressed = uncompressed
		body, err := json.Marshal(m)
		must(t, err)
		for _, f := range []int{format, formatSealed, formatUncompressed} {
			_, err := Parse(envelope(f, body))
			if right := f == m.format(); right != (err == nil) || !right && !errors.Is(err, ManifestDamaged) {
				t.Errorf("format %d, uncompressed %t: %v", f, uncompressed, err)
			}
		}
	}
}
