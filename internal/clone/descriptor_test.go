package clone

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"path/filepath"
	"reflect"
	"testing"
)

// one of each, as a donor sends them.
var samples = []Descriptor{
	Locator{CloneID: 1, SnapshotID: 2, Reached: 1},
	Task{Task: 0, Chunk: 3, Block: 4},
	StateChange{State: StateFileCopy, Chunks: 380, Files: 380, Bytes: 1 << 30, Flags: stateStart},
	StateChange{State: StatePageCopy},
	File{State: StateFileCopy, Size: 1 << 20, Allocated: 1 << 19, FSP: 0x4021, BlockSize: 4096, Space: 7, Index: 9,
		FirstChunk: 2, LastChunk: 2, Name: "./db/t#p#p0.ibd"},
	File{State: StateRedoCopy, Size: 2 << 20, FSP: noFSP, Index: 1},
	Block{State: StatePageCopy, Chunk: 1, Block: 2, File: 9, Length: 16384, Offset: 1 << 20, FileSize: 2 << 20},
	// it grew since FileCopy
	Block{State: StatePageCopy, Chunk: 1, Block: 3, File: 9, Length: 16384, Offset: 29 << 14, FileSize: 29 << 14},
}

// The bytes of a locator as MySQL 9.7.4 sent them.
func TestADescriptorIsAsItIsOnTheWire(t *testing.T) {
	want := "0000006400000022000000010000000000000001000000000000000200000000" + "0100"
	if got := hex.EncodeToString(samples[0].Append(nil)); got != want {
		t.Errorf("%s", got)
	}
}

func TestADescriptorIsReadAsItWasWritten(t *testing.T) {
	for _, want := range samples {
		got, err := ParseDescriptor(want.Append(nil))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

// spoilt is a descriptor with one number of 4 bytes changed.
func spoilt(d Descriptor, at int, value uint32) []byte {
	b := d.Append(nil)
	binary.BigEndian.PutUint32(b[at:], value)
	return b
}

func TestDescriptorsAreRefusedByName(t *testing.T) {
	file := func(edit func(*File)) []byte {
		f := samples[4].(File)
		edit(&f)
		return f.Append(nil)
	}
	aesFile := func(space uint32) []byte {
		return file(func(f *File) { f.Flags, f.Space = fileAES, space })
	}
	block := samples[6].(Block)
	for name, c := range map[string]struct {
		bytes []byte
		why   *Reason
	}{
		"nothing":                {nil, Malformed},
		"another version":        {spoilt(Task{}, 0, 101), UnknownVersion},
		"another type":           {spoilt(Task{}, 8, 6), UnknownVersion},
		"a length that lies":     {spoilt(Task{}, 4, 25), Malformed},
		"too short for its type": {spoilt(Task{}, 8, typeData), Malformed},
		"too long for its type":  {spoilt(Block{State: 2}, 8, typeState), Malformed},
		"another state":          {spoilt(StateChange{}, 12, 6), UnknownVersion},
		"other flags of a state": {StateChange{State: 2, Flags: 4}.Append(nil), UnknownVersion},
		"data larger than any":   {spoilt(block, 32, maxData+1), Malformed},
		"data behind the file's end": {Block{State: 2, Length: 1, Offset: 10, FileSize: 10}.Append(nil),
			Malformed},
		"data at an offset that wraps": {Block{State: 4, Length: 16, Offset: 1<<64 - 8, FileSize: 10}.Append(nil),
			Malformed},
		"a file larger than any":          {file(func(f *File) { f.Size = maxFile + 1 }), Malformed},
		"a name longer than it is":        {spoilt(samples[4], 58, 1000), Malformed},
		"a name without its end":          {append(file(func(f *File) { f.Name = "" })[:58], 0, 0, 0, 1), Malformed},
		"a name with NUL":                 {file(func(f *File) { f.Name = "a\x00b" }), Malformed},
		"an encrypted file":               {file(func(f *File) { f.Flags = fileAES }), Encrypted},
		"an encrypted file made by DDL":   {file(func(f *File) { f.Flags = fileHasKey }), Encrypted},
		"an encrypted redo log":           {aesFile(4294967280), LogsEncrypted},
		"an encrypted undo log":           {aesFile(4294967277), LogsEncrypted},
		"an unknown flag":                 {file(func(f *File) { f.Flags = 0x40 }), UnknownVersion},
		"an absolute name":                {file(func(f *File) { f.Name = "/var/lib/t.ibd" }), UnsafeName},
		"a name above":                    {file(func(f *File) { f.Name = "./db/../../t.ibd" }), UnsafeName},
		"no name at all":                  {file(func(f *File) { f.Name = "./" }), UnsafeName},
		"a flag of the clone as a name":   {file(func(f *File) { f.Name = "#clone/#status_fix" }), UnsafeName},
		"pages of 4 KiB":                  {file(func(f *File) { f.FSP |= 3 << 6 }), PageSize},
		"compressed pages of 32 KiB":      {file(func(f *File) { f.FSP |= 6 << 1 }), PageSize},
		"a descriptor longer than any is": {make([]byte, maxDescriptor+1), Malformed},
	} {
		if d, err := ParseDescriptor(c.bytes); !errors.Is(err, c.why) {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// FuzzParseDescriptor: whatever is accepted is written as it was read.
func FuzzParseDescriptor(f *testing.F) {
	for _, d := range samples {
		f.Add(d.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := ParseDescriptor(b)
		if err != nil {
			var why *Reason
			if !errors.As(err, &why) {
				t.Errorf("an error without a name: %v", err)
			}
			return
		}
		if got := d.Append(nil); !bytes.Equal(got, b) {
			t.Errorf("%x became %+v, and that %x", b, d, got)
		}
		if file, ok := d.(File); ok && file.Name != "" && !filepath.IsLocal(file.Name) {
			t.Errorf("the name %q leads out of the directory", file.Name)
		}
	})
}

// FuzzReader: no stream makes the reader panic, or keep more than one record.
func FuzzReader(f *testing.F) {
	for _, d := range samples[:6] {
		var b bytes.Buffer
		must(f, NewWriter(&b).Write(Record{Descriptor: d}))
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := NewReader(bytes.NewReader(b))
		var again bytes.Buffer
		out := NewWriter(&again)
		for {
			r, err := in.Next()
			if err != nil {
				break
			}
			if err := out.Write(r); err != nil {
				t.Fatalf("%+v was read and cannot be written: %v", r.Descriptor, err)
			}
		}
		if !bytes.HasPrefix(b, again.Bytes()) {
			t.Errorf("%x was read as %x", b, again.Bytes())
		}
		if cap(in.data) > maxData || cap(in.head) > maxDescriptor {
			t.Errorf("buffers of %d and %d bytes", cap(in.head), cap(in.data))
		}
	})
}
