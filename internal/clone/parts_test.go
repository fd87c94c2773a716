package clone

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// stored are the parts as a manifest has them.
func (s *store) stored() (parts []StoredPart) {
	for i, info := range s.infos {
		parts = append(parts, StoredPart{PartInfo: info.PartInfo, SHA256: info.sum, Notes: s.notes[i],
			Open: func(context.Context) (io.ReadCloser, error) { return os.Open(s.file(i)) }})
	}
	return parts
}

// replay makes a directory of the parts, with several readers.
func (s *store) replay(t *testing.T, readers int) (*os.Root, error) {
	t.Helper()
	root := directory(t)
	a := NewApplier(root)
	defer func() { must(t, a.Close()) }()
	if err := ReplayParts(t.Context(), s.from, s.stored(), readers, a); err != nil {
		return root, err
	}
	return root, a.Finish(t.Context())
}

// sameFiles compares all names and contents below two directories.
func sameFiles(t *testing.T, root *os.Root, other string) {
	t.Helper()
	second, err := os.OpenRoot(other)
	must(t, err)
	defer func() { must(t, second.Close()) }()
	if got, want := names(t, root), names(t, second); !slices.Equal(got, want) {
		t.Fatalf("%q are not %q", got, want)
	}
	for _, name := range names(t, root) {
		info, err := root.Stat(name)
		must(t, err)
		if info.IsDir() {
			continue
		}
		a, err := root.ReadFile(name)
		must(t, err)
		b, err := fs.ReadFile(second.FS(), name)
		must(t, err)
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
		}
	}
}

// crowd is a snapshot of more files than are kept open, with several blocks each.
func crowd() []Record {
	const many = 3 * maxOpen
	var files, blocks []Record
	for i := range uint32(many) {
		files = append(files, table(StateFileCopy, i, 0, "db/"+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	for n := range uint64(4) {
		for i := range uint32(many) {
			blocks = append(blocks, block(StateFileCopy, (i*7)%many, n*16384, 4000, byte(i)+byte(n)))
		}
	}
	all := middle(files, []Record{table(StatePageCopy, 3, fileDeleted, "db/da")}, nil)
	return slices.Concat(all[:3+many], blocks, all[3+many:])
}

func TestPartsThatAreReadConcurrentlyMakeTheSameDirectory(t *testing.T) {
	for name, records := range map[string][]Record{"small": scene(), "crowd": crowd()} {
		want, err := applied(t, records)
		must(t, err)
		for _, readers := range []int{1, 5} {
			parts := newStore(t)
			cutter := NewCutter(parts, 50000)
			must(t, Replay(t.Context(), origin(), written(t, records), cutter))
			must(t, cutter.Finish(t.Context()))
			root, err := parts.replay(t, readers)
			if err != nil {
				t.Fatalf("%s with %d readers: %v", name, readers, err)
			}
			sameFiles(t, root, want.Name())
		}
	}
}

func TestPartsThatAreDamagedOrMissingAreTold(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*store)
		why   *Reason
	}{
		"a flipped byte": {func(s *store) {
			b, _ := os.ReadFile(s.file(0))
			b[len(b)-1] ^= 1 // of data: nothing but the hash can tell
			_ = os.WriteFile(s.file(0), b, 0o600)
		}, Malformed},
		"a truncated part":    {func(s *store) { _ = os.Truncate(s.file(0), s.infos[0].Size-5) }, Incomplete},
		"a part cut short":    {func(s *store) { _ = os.Truncate(s.file(0), 0) }, Malformed},
		"no last part":        {func(s *store) { s.infos = s.infos[:len(s.infos)-1] }, Incomplete},
		"no end of FileCopy":  {func(s *store) { s.infos = slices.Delete(s.infos, 1, 2) }, Malformed},
		"a part without file": {func(s *store) { _ = os.Remove(s.file(1)) }, nil},
	} {
		parts := cut(t, 20000)
		c.spoil(parts)
		root, err := parts.replay(t, 2)
		if err == nil || c.why != nil && !errors.Is(err, c.why) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(root.Name(), statusInProgress)); err != nil {
			t.Errorf("%s: mysqld would start: %v", name, err)
		}
	}
}
