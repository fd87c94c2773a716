package backup

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
)

const page = 16384

func origin() clone.Origin {
	return clone.Origin{Protocol: 0x0103, Config: map[string]string{"version": "9.7.4-2", "innodb_page_size": "16384"},
		Plugins: []clone.Plugin{{Name: "clone", Library: "mysql_clone.so"}}, Collations: []string{"utf8mb4_0900_ai_ci"}}
}

func start(s clone.State, files uint32, size uint64) clone.Record {
	return clone.Record{Descriptor: clone.StateChange{State: s, Files: files, Bytes: size, Flags: 1}}
}
func end(s clone.State) clone.Record { return clone.Record{Descriptor: clone.StateChange{State: s}} }

func file(s clone.State, index uint32, flags uint16, name string) clone.Record {
	return clone.Record{Descriptor: clone.File{State: s, Size: page, FSP: 0x4000, Space: 100 + index, Index: index,
		Flags: flags, Name: name}}
}

func block(s clone.State, file uint32, number uint64, data []byte) clone.Record {
	d := clone.Block{State: s, File: file, Length: uint32(len(data)), Offset: number * page}
	d.FileSize = d.Offset + uint64(len(data))
	return clone.Record{Descriptor: d, Data: data}
}

// scene is a snapshot of three files with so many pages each, of which one half cannot be
// compressed. Two swap their names, and all are changed meanwhile.
func scene(pages int) []clone.Record {
	random := rand.NewChaCha8([32]byte{1})
	fill := func(i int) []byte {
		b := bytes.Repeat([]byte{byte(i)}, page)
		_, _ = random.Read(b[:page/2])
		return b
	}
	out := []clone.Record{{Descriptor: clone.Task{}}, end(clone.StateInit), start(clone.StateFileCopy, 3,
		uint64(3*pages*page))}
	for i := range uint32(3) {
		out = append(out, file(clone.StateFileCopy, i, 0, fmt.Sprintf("./db/%c.ibd", 'a'+i)))
	}
	for i := range 3 * pages {
		out = append(out, block(clone.StateFileCopy, uint32(i/pages), uint64(i%pages), fill(i)))
	}
	out = append(out, end(clone.StateFileCopy), file(clone.StatePageCopy, 0, 8, "./db/b.ibd"),
		file(clone.StatePageCopy, 1, 8, "./db/a.ibd"),
		start(clone.StatePageCopy, 1, 3*page))
	for i := range 3 {
		out = append(out, block(clone.StatePageCopy, uint32(i), 0, fill(i)))
	}
	return append(out, end(clone.StatePageCopy), start(clone.StateRedoCopy, 1, 65536),
		clone.Record{Descriptor: clone.File{State: clone.StateRedoCopy, Size: 65536, FSP: 0xffffffff}},
		block(clone.StateRedoCopy, 0, 0, fill(7)), end(clone.StateRedoCopy), start(clone.StateDone, 0, 0))
}

// from is a source of records. before is asked before each attempt and each record, and may
// be nil.
func from(records []clone.Record, before func(attempt, record int) error) source {
	var b bytes.Buffer
	w := clone.NewWriter(&b)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			panic(err)
		}
	}
	attempt := 0
	return func(ctx context.Context, to clone.Consumer) error {
		attempt++
		return clone.Replay(ctx, origin(), bytes.NewReader(b.Bytes()),
			&hooked{Consumer: to, before: before, attempt: attempt})
	}
}

type hooked struct {
	clone.Consumer
	before          func(attempt, record int) error
	attempt, record int
}

func (h *hooked) Take(ctx context.Context, r clone.Record) error {
	h.record++
	if h.before != nil {
		if err := h.before(h.attempt, h.record); err != nil {
			return err
		}
	}
	return h.Consumer.Take(ctx, r)
}

const cluster = "shop"

// options cut the scene into parts of two pages; the donor executes a transaction whenever
// it is asked.
func options() Options {
	var n atomic.Int64
	return Options{Identity: Identity{Cluster: cluster, Namespace: "prod", UID: "u-1"}, ID: "monday",
		Instance: "shop-1", Epoch: 7,
		PartSize: 2 * page, Executed: func(context.Context) (gtid.Set, error) {
			return gtid.Parse(fmt.Sprintf("11111111-1111-1111-1111-111111111111:1-%d", n.Add(1)))
		}}
}

// taken is a backup of the scene in a store.
func taken(t *testing.T) (*memory, *Manifest) {
	t.Helper()
	s := newMemory()
	m, err := take(t.Context(), from(scene(4), nil), s, options())
	must(t, err)
	return s, m
}

func directory(t *testing.T) *os.Root {
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	return root
}

// contents are all files below a directory.
func contents(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := root.ReadFile(name)
		out[name] = string(b)
		return err
	}))
	return out
}

// applied is the directory that the records make without a store between.
func applied(t *testing.T, records []clone.Record) map[string]string {
	t.Helper()
	root := directory(t)
	a := clone.NewApplier(root)
	must(t, from(slices.Clone(records), nil)(t.Context(), a))
	must(t, a.Finish(t.Context()))
	return contents(t, root)
}
