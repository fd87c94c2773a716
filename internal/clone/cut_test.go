package clone

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// store is a Parts in a directory.
type store struct {
	from  Origin
	dir   string
	infos []told
	notes map[int][]Record
	// accepted are the states, in order, with how many parts were closed then.
	accepted map[State]int
}

func newStore(t *testing.T) *store {
	return &store{dir: t.TempDir(), notes: map[int][]Record{}, accepted: map[State]int{}}
}

func (s *store) Begin(_ context.Context, from Origin) error { s.from = from; return nil }
func (s *store) file(number int) string                     { return filepath.Join(s.dir, fmt.Sprint(number)) }
func (s *store) Note(number int, r Record) error {
	s.notes[number] = append(s.notes[number], r)
	return nil
}

func (s *store) Open(_ context.Context, number int) (Part, error) {
	if number != len(s.infos) {
		return nil, fmt.Errorf("part %d is opened after %d", number, len(s.infos))
	}
	f, err := os.Create(s.file(number))
	return &stored{f, s, sha256.New()}, err
}

func (s *store) Accept(_ context.Context, state State) error {
	s.accepted[state] = len(s.infos)
	return nil
}

// told is what was told of a part, and the hash of what was written.
type told struct {
	PartInfo
	sum [sha256.Size]byte
}

type stored struct {
	*os.File
	s   *store
	sum hash.Hash
}

func (p *stored) Write(b []byte) (int, error) {
	p.sum.Write(b)
	return p.File.Write(b)
}

func (p *stored) Close(what PartInfo) error {
	p.s.infos = append(p.s.infos, told{what, [sha256.Size]byte(p.sum.Sum(nil))})
	return p.File.Close()
}

// stream is all parts, each held against what was told of it.
func (s *store) stream(t *testing.T) io.Reader {
	var all []io.Reader
	for i, info := range s.infos {
		content, err := os.ReadFile(s.file(i))
		must(t, err)
		if int64(len(content)) != info.Size || sha256.Sum256(content) != info.sum || info.Number != i {
			t.Fatalf("part %d has %d bytes, and %+v was told", i, len(content), info)
		}
		all = append(all, bytes.NewReader(content))
	}
	return io.MultiReader(all...)
}

// cut gives a snapshot to a Cutter.
func cut(t *testing.T, limit int64) *store {
	t.Helper()
	parts := newStore(t)
	cutter := NewCutter(parts, limit)
	must(t, Replay(t.Context(), origin(), written(t, scene()), cutter))
	must(t, cutter.Finish(t.Context()))
	return parts
}

func TestAllPartsTogetherAreTheStream(t *testing.T) {
	for _, limit := range []int64{1, 20000, 40000, 1 << 30} {
		parts := cut(t, limit)
		all, err := io.ReadAll(parts.stream(t))
		must(t, err)
		if !bytes.Equal(all, written(t, scene()).Bytes()) {
			t.Errorf("cut at %d, the parts are another stream", limit)
		}
	}
}

// Parts of one state can be written and read concurrently, so none may hold two.
func TestAPartHoldsWholeRecordsOfOneState(t *testing.T) {
	parts := cut(t, 20000)
	records := 0
	for i, info := range parts.infos {
		content, err := os.ReadFile(parts.file(i))
		must(t, err)
		in := NewReader(bytes.NewReader(content))
		n := 0
		for ; ; n++ {
			r, err := in.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			if s := stateOf(r); s != info.State && s > StateInit {
				t.Errorf("part %d of %s holds a record of %s", i, info.State, s)
			}
		}
		if n != info.Records || info.Size > 20000+16384+recordHeader+dataSize {
			t.Errorf("part %d has %d records: %+v", i, n, info)
		}
		records += n
	}
	if records != len(scene()) || parts.infos[0].State != StateFileCopy || len(parts.infos) != 5 {
		t.Errorf("%d records in %d parts, of which the first is of %s", records, len(parts.infos), parts.infos[0].State)
	}
	if want := map[State]int{StateFileCopy: 2, StatePageCopy: 3, StateRedoCopy: 4,
		StateDone: 5}; !reflect.DeepEqual(parts.accepted, want) {
		t.Errorf("accepted with so many parts closed: %v", parts.accepted)
	}
}

func stateOf(r Record) State {
	switch d := r.Descriptor.(type) {
	case StateChange:
		return d.State
	case File:
		return d.State
	case Block:
		return d.State
	}
	return StateInit
}

func TestRecordsWithoutDataAreNoted(t *testing.T) {
	parts := cut(t, 20000)
	var noted []Record
	for i := range parts.infos {
		noted = append(noted, parts.notes[i]...)
	}
	want := slices.DeleteFunc(scene(), Record.IsData)
	if len(noted) != len(want) {
		t.Fatalf("%d of %d records are noted", len(noted), len(want))
	}
	for i := range want {
		if !reflect.DeepEqual(noted[i].Descriptor, want[i].Descriptor) {
			t.Errorf("%+v is noted, not %+v", noted[i].Descriptor, want[i].Descriptor)
		}
	}
}

// failing is a store that has no room behind so many bytes.
type failing struct {
	*store
	room int
}

var errFull = errors.New("no room")

func (f *failing) Open(ctx context.Context, number int) (Part, error) {
	p, err := f.store.Open(ctx, number)
	return &failingPart{p, f}, err
}

type failingPart struct {
	Part
	f *failing
}

func (p *failingPart) Write(b []byte) (int, error) {
	if p.f.room -= len(b); p.f.room < 0 {
		return 0, errFull
	}
	return p.Part.Write(b)
}

func TestAPartThatFailedIsNotClosed(t *testing.T) {
	f := &failing{store: newStore(t), room: 40000}
	err := Replay(t.Context(), origin(), written(t, scene()), NewCutter(f, 20000))
	if !errors.Is(err, errFull) || len(f.infos) != 1 {
		t.Errorf("%v, and %d parts were closed", err, len(f.infos))
	}
}
