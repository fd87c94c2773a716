package clone

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// directory is an empty one, as root.
func directory(t *testing.T) *os.Root {
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	return root
}

// applied is the directory that records make.
func applied(t *testing.T, records []Record) (*os.Root, error) {
	t.Helper()
	root := directory(t)
	a := NewApplier(root)
	defer func() { must(t, a.Close()) }()
	if err := Replay(t.Context(), origin(), written(t, records), a); err != nil {
		return root, err
	}
	return root, a.Finish(t.Context())
}

func names(t *testing.T, root *os.Root) (names []string) {
	t.Helper()
	must(t, fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		names = append(names, name)
		return err
	}))
	return names
}

func TestTheDirectoryIsWhatTheStreamSays(t *testing.T) {
	root, err := applied(t, scene())
	must(t, err)
	want := []string{".", "#clone", "#clone/#replace_files", "#clone/#status_fix", "#innodb_redo",
		"#innodb_redo/#ib_redo0",
		"db", "db/a.ibd", "db/b.ibd", "mysql", "new", "new/d.ibd"}
	if got := names(t, root); !slices.Equal(got, want) {
		t.Errorf("it holds %q", got)
	}
	a, b := slices.Repeat([]byte{'a'}, 16384), slices.Repeat([]byte{'b'}, 16384)
	for name, want := range map[string][]byte{
		"db/b.ibd": append(a, slices.Repeat([]byte{'A'}, 16384)...), // they swapped their names
		"db/a.ibd": b,
		"#innodb_redo/#ib_redo0": slices.Concat(make([]byte, 2048), slices.Repeat([]byte{'r'}, 512),
			make([]byte, 65536-2560)),
		"new/d.ibd": append(firstPage(90704, 103, 0x4000), make([]byte, 6*16384)...),
	} {
		if got, err := root.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, not the %d that it should; %v", name, len(got), len(want), err)
		}
	}
	info, err := root.Stat("db/a.ibd")
	must(t, err)
	if info.Mode() != fileMode {
		t.Errorf("mode %s", info.Mode())
	}
}

func TestADirectoryThatIsNotEmptyIsLeftAlone(t *testing.T) {
	root := directory(t)
	must(t, root.WriteFile("ibdata1", []byte("mine"), 0o600))
	if err := Replay(t.Context(), origin(), written(t, scene()), NewApplier(root)); !errors.Is(err, NotEmpty) {
		t.Errorf("%v", err)
	}
	if got := names(t, root); !slices.Equal(got, []string{".", "ibdata1"}) {
		t.Errorf("it holds %q", got)
	}
}

// mysqld would start on what is left, and lose what is missing.
func TestAnUnfinishedDirectoryKeepsMysqldFromStarting(t *testing.T) {
	for n := range scene() {
		root := directory(t)
		a := NewApplier(root)
		if err := Replay(t.Context(), origin(), written(t, scene()[:n]), a); !errors.Is(err, Incomplete) {
			t.Errorf("%d records: %v", n, err)
		}
		if err := a.Finish(t.Context()); !errors.Is(err, Incomplete) {
			t.Errorf("%d records are finished: %v", n, err)
		}
		if _, err := root.Stat(statusInProgress); err != nil {
			t.Errorf("%d records: %v", n, err)
		}
		must(t, a.Close())
	}
}

func TestNothingIsWrittenThroughALinkOutOfTheDirectory(t *testing.T) {
	outside := t.TempDir()
	root := directory(t)
	a := NewApplier(root)
	must(t, a.Begin(t.Context(), origin()))
	must(t, os.Symlink(outside, filepath.Join(root.Name(), "db")))
	var err error
	for _, r := range scene() {
		if err = a.Take(t.Context(), r); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("it was written")
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("outside there is %v, %v", found, err)
	}
	must(t, a.Close())
}

// middle is a snapshot of so many files, with changes before PageCopy and before RedoCopy.
func middle(files []Record, page, redo []Record) []Record {
	return slices.Concat([]Record{{Descriptor: Task{}}, end(StateInit),
		start(StateFileCopy, uint32(len(files)))}, files,
		[]Record{end(StateFileCopy)}, page, []Record{start(StatePageCopy, 0), end(StatePageCopy)}, redo,
		[]Record{start(StateRedoCopy, 0), end(StateRedoCopy), start(StateDone, 0)})
}

func TestDDLThatWasNotSentInOrder(t *testing.T) {
	file := func(i uint32, name string) Record { return table(StateFileCopy, i, 0, name) }
	page := func(i uint32, flags uint16, name string) Record { return table(StatePageCopy, i, flags, name) }
	redo := func(i uint32, flags uint16, name string) Record { return table(StateRedoCopy, i, flags, name) }
	for name, c := range map[string]struct {
		records []Record
		want    string
	}{
		"three files in a ring": {middle([]Record{file(0, "a"), file(1, "b"), file(2, "c")},
			[]Record{page(0, fileRenamed, "b"), page(1, fileRenamed, "c"), page(2, fileRenamed, "a")}, nil), "a b c"},
		"a new file has the name of one that is renamed later": {middle([]Record{file(0, "a")},
			[]Record{page(1, 0, "a"), page(0, fileRenamed, "old")}, nil), "a old"},
		"renamed twice": {middle([]Record{file(0, "a")},
			[]Record{page(0, fileRenamed, "b")}, []Record{redo(0, fileRenamed, "a")}), "a"},
		"made and dropped": {middle([]Record{file(0, "a")},
			[]Record{page(1, 0, "b")}, []Record{redo(1, fileDeleted, "b")}), "a"},
		"dropped before it came": {middle([]Record{file(0, "a")},
			[]Record{page(1, fileDeleted, "b")}, []Record{redo(1, fileDeleted, "b")}), "a"},
		"changed in place": {middle([]Record{file(0, "a"), file(1, "b")},
			[]Record{page(2, 0, "c")}, []Record{redo(2, 0, "c")}), "a b c"},
	} {
		root, err := applied(t, c.records)
		must(t, err)
		got := slices.DeleteFunc(names(t, root), func(n string) bool {
			return n == "." || n == "mysql" || strings.HasPrefix(n, "#")
		})
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: it holds %q", name, got)
		}
	}
	root, err := applied(t, middle([]Record{file(0, "a"), file(1, "b")}, []Record{page(0, fileRenamed, "b")}, nil))
	if !errors.Is(err, Malformed) {
		t.Errorf("two files of one name: %v", err)
	}
	if _, err := root.Stat("b"); err != nil {
		t.Errorf("the file that had the name is gone: %v", err)
	}
}

func TestAFileGetsTheSizeThatTheDonorSawLast(t *testing.T) {
	const p = pageSize
	for _, c := range []struct {
		fsp             uint32
		told, now, want int64
	}{
		{0x4000, 10 * p, 7 * p, 10 * p},
		{0x4000, 64 * p, 64 * p, 64 * p},
		{0x4000, 64 * p, 65 * p, 128 * p},
		{noFSP, 64 * p, 65 * p, 65 * p},
		{4 << 1, 64, 65 * 8192, 128 * 8192},
	} {
		f := newFile(File{Size: uint64(c.told), FSP: c.fsp}, "a")
		if got := f.target(c.now); got != c.want {
			t.Errorf("told %d, with %d bytes and flags %#x it gets %d", c.told, c.now, c.fsp, got)
		}
	}
}

// The checksum is the one by which InnoDB and innochecksum judge a page: crc32 of what
// is neither checksum nor written at each flush.
func TestAFirstPageHasItsChecksum(t *testing.T) {
	p := firstPage(90704, 7, 0x4021)
	table := crc32.MakeTable(crc32.Castagnoli)
	want := crc32.Checksum(p[4:26], table) ^ crc32.Checksum(p[38:16376], table)
	if len(p) != 16384 || binary.BigEndian.Uint32(p) != want || binary.BigEndian.Uint32(p[16376:]) != want ||
		want == 0 {
		t.Errorf("%d bytes with %x", len(p), p[:4])
	}
	if got := len(firstPage(90704, 7, 0x4021|4<<1)); got != 8192 {
		t.Errorf("a compressed page has %d bytes", got)
	}
}

func TestAnUndoTablespaceThatIsNewHas16MiB(t *testing.T) {
	undo := Record{Descriptor: File{State: StatePageCopy, FSP: 0x4000, Space: firstUndoSpace + 5,
		Index: 1, Name: "undo_9.ibu"}}
	root, err := applied(t, middle([]Record{table(StateFileCopy, 0, 0, "a")}, []Record{undo}, nil))
	must(t, err)
	if info, err := root.Stat("undo_9.ibu"); err != nil || info.Size() != 16<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

// More files than are kept open.
func TestManyFilesAreWrittenInAnyOrder(t *testing.T) {
	const many = 3 * maxOpen
	var files, blocks []Record
	for i := range uint32(many) {
		files = append(files, table(StateFileCopy, i, 0, "db/"+string(rune('a'+i%26))+strings.Repeat("x", int(i/26))))
		blocks = append(blocks, block(StateFileCopy, (i*7)%many, 0, 100, byte((i*7)%many)))
	}
	all := middle(files, nil, nil)
	root, err := applied(t, slices.Concat(all[:3+many], blocks, all[3+many:]))
	must(t, err)
	for i, f := range files {
		got, err := root.ReadFile(f.Descriptor.(File).Name)
		must(t, err)
		if len(got) != 16384 || got[0] != byte(i) || got[99] != byte(i) || got[100] != 0 {
			t.Errorf("file %d has %d bytes, %d first", i, len(got), got[0])
		}
	}
}
