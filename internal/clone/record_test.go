package clone

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"testing"
)

// origin is a donor that was verified.
func origin() Origin {
	return Origin{Protocol: protocolLast, Config: map[string]string{"version": "9.7.4-2", "innodb_page_size": "16384"}}
}

// block is data for a file, all of one byte.
func block(s State, file uint32, offset uint64, n int, fill byte) Record {
	return Record{Block{State: s, File: file, Length: uint32(n), Offset: offset, FileSize: offset + uint64(n)},
		bytes.Repeat([]byte{fill}, n)}
}

func start(s State, files uint32) Record {
	return Record{Descriptor: StateChange{State: s, Files: files, Flags: stateStart}}
}
func end(s State) Record { return Record{Descriptor: StateChange{State: s}} }

func table(s State, index uint32, flags uint16, name string) Record {
	return Record{Descriptor: File{State: s, Size: 16384, FSP: 0x4000, Space: 100 + index, Index: index,
		Flags: flags, Name: name}}
}

// scene is a small snapshot: a.ibd and b.ibd swap their names, c.ibd is dropped, d.ibd is new.
func scene() []Record {
	return []Record{
		{Descriptor: Task{}}, end(StateInit),
		start(StateFileCopy, 3),
		table(StateFileCopy, 0, 0, "./db/a.ibd"), table(StateFileCopy, 1, 0, "./db/b.ibd"),
		table(StateFileCopy, 2, 0, "./gone/c.ibd"),
		block(StateFileCopy, 0, 0, 16384, 'a'), block(StateFileCopy, 1, 0, 16384, 'b'),
		table(StateFileCopy, 2, fileDeleted, "./gone/c.ibd"),
		block(StateFileCopy, 2, 0, 16384, 'c'),
		end(StateFileCopy),
		table(StatePageCopy, 0, fileRenamed, "./db/b.ibd"), table(StatePageCopy, 1, fileRenamed, "./db/a.ibd"),
		table(StatePageCopy, 2, fileDeleted|fileRenamed, "./gone/c.ibd"), table(StatePageCopy, 3, 0, "./new/d.ibd"),
		start(StatePageCopy, 1),
		block(StatePageCopy, 0, 16384, 16384, 'A'),
		end(StatePageCopy),
		start(StateRedoCopy, 1),
		{Descriptor: File{State: StateRedoCopy, Size: 65536, FSP: noFSP}},
		{Descriptor: File{State: StateRedoCopy, Size: 65536, FSP: noFSP}},
		block(StateRedoCopy, 0, 2048, 512, 'r'),
		end(StateRedoCopy), start(StateDone, 0),
	}
}

// list is a Consumer that keeps all records.
type list struct {
	from     Origin
	records  []Record
	accepted []State
}

func (l *list) Begin(_ context.Context, from Origin) error { l.from = from; return nil }
func (l *list) Take(_ context.Context, r Record) error {
	r.Data = bytes.Clone(r.Data)
	l.records = append(l.records, r)
	return nil
}
func (l *list) Accept(_ context.Context, s State) error {
	l.accepted = append(l.accepted, s)
	return nil
}

func written(t *testing.T, records []Record) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, r := range records {
		must(t, w.Write(r))
	}
	return &b
}

func TestAStreamIsReplayedAsItWasWritten(t *testing.T) {
	var got list
	must(t, Replay(t.Context(), origin(), written(t, scene()), &got))
	for i, want := range scene() {
		if !reflect.DeepEqual(got.records[i].Descriptor, want.Descriptor) ||
			!bytes.Equal(got.records[i].Data, want.Data) {
			t.Errorf("record %d is %+v", i, got.records[i].Descriptor)
		}
	}
	if want := []State{StateInit, StateFileCopy, StatePageCopy, StateRedoCopy}; !slices.Equal(got.accepted, want) {
		t.Errorf("accepted %v", got.accepted)
	}
}

func TestAStreamThatIsNotWholeIsIncomplete(t *testing.T) {
	whole := written(t, scene()).Bytes()
	for n := range len(whole) {
		if n%997 != 0 && len(whole)-n > 70 {
			continue
		}
		if err := Replay(t.Context(), origin(), bytes.NewReader(whole[:n]), new(list)); !errors.Is(err, Incomplete) {
			t.Fatalf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}

func TestARecordThatLiesAboutItsLengthIsRefused(t *testing.T) {
	for name, header := range map[string][]uint32{
		"a descriptor longer than any": {maxDescriptor + 1, 0},
		"data longer than any":         {dataSize, maxData + 1},
		"data without a block":         {taskSize, 1},
	} {
		stream := Task{}.Append(u32s(nil, header...))
		if _, err := NewReader(bytes.NewReader(append(stream, make([]byte, 100)...))).Next(); !errors.Is(err,
			Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := NewWriter(io.Discard).Write(Record{Block{Length: 2}, []byte{1}}); !errors.Is(err, Malformed) {
		t.Errorf("a block with one byte of two is written: %v", err)
	}
}

func TestRecordsInAnotherOrderAreRefused(t *testing.T) {
	all := scene()
	without := func(i int) []Record { return slices.Delete(slices.Clone(all), i, i+1) }
	with := func(i int, r Record) []Record { return slices.Insert(slices.Clone(all), i, r) }
	for name, records := range map[string][]Record{
		"a second task":       with(1, Record{Descriptor: Task{}}),
		"a locator":           with(1, Record{Descriptor: Locator{}}),
		"no end of a state":   without(10),
		"no start of a state": without(2),
		"a sign of life": with(3,
			Record{Descriptor: StateChange{State: 2, Flags: stateStart | stateAck}}),
		"a file too few":                        without(5),
		"a file too many":                       with(6, table(StateFileCopy, 9, 0, "./x.ibd")),
		"a file twice":                          with(5, table(StateFileCopy, 1, 0, "./x.ibd")),
		"data of a file that is not known":      with(7, block(StateFileCopy, 9, 0, 1, 'x')),
		"data of another state":                 with(7, block(StatePageCopy, 0, 0, 1, 'x')),
		"data before all files":                 with(5, block(StateFileCopy, 0, 0, 1, 'x')),
		"redo data of a file that is not known": with(21, block(StateRedoCopy, 1, 0, 1, 'x')),
		"a redo file of many": with(20, Record{Descriptor: File{State: StateRedoCopy,
			Index: maxRedoFiles}}),
		"a new file in the middle of PageCopy":    with(16, table(StatePageCopy, 9, 0, "./x.ibd")),
		"a change without a name":                 with(11, table(StatePageCopy, 9, 0, "")),
		"a change before FileCopy":                with(2, table(StateFileCopy, 9, 0, "./x.ibd")),
		"a change two states ahead":               with(11, table(StateRedoCopy, 9, 0, "./x.ibd")),
		"something behind the end of everything ": append(slices.Clone(all), table(StateDone, 9, 0, "./x.ibd")),
	} {
		if err := Replay(t.Context(), origin(), written(t, records), new(list)); !errors.Is(err, Malformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDonorsThatWereNotVerifiedAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*Origin)
		why  *Reason
	}{
		"an older protocol": {func(o *Origin) { o.Protocol = protocolFirst - 1 }, UnknownVersion},
		"a newer protocol":  {func(o *Origin) { o.Protocol = protocolLast + 1 }, UnknownVersion},
		"another series":    {func(o *Origin) { o.Config["version"] = "10.1.0" }, UnknownVersion},
		"redo elsewhere":    {func(o *Origin) { o.Config["version"] = "8.0.29" }, UnknownVersion},
		"no version":        {func(o *Origin) { delete(o.Config, "version") }, UnknownVersion},
		"pages of 8 KiB":    {func(o *Origin) { o.Config["innodb_page_size"] = "8192" }, PageSize},
	} {
		from := origin()
		c.edit(&from)
		if err := Replay(t.Context(), from, written(t, scene()), new(list)); !errors.Is(err, c.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for text, want := range map[string]uint32{"9.7.4-2": 90704, "8.0.45": 80045} {
		from := Origin{Config: map[string]string{"version": text}}
		if got, err := from.serverNumber(); got != want || err != nil {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
}
