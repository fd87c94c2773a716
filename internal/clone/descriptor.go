package clone

import (
	"bytes"
	"encoding/binary"
	"path"
	"strings"
)

// State is how far a snapshot is. Each but the first and the last has a start and an end.
type State uint32

// The states, in their order.
const (
	StateInit State = 1 + iota
	StateFileCopy
	StatePageCopy
	StateRedoCopy
	StateDone
)

// String returns the name of the state; "unknown" for a number that is none.
func (s State) String() string {
	names := [...]string{StateInit: "Init", StateFileCopy: "FileCopy", StatePageCopy: "PageCopy",
		StateRedoCopy: "RedoCopy", StateDone: "Done"}
	if s < StateInit || s > StateDone {
		return "unknown"
	}
	return names[s]
}

// Descriptors are big-endian. They begin with their version, length and type, 12 bytes.
const (
	descriptorVersion = 100
	descriptorHeader  = 12

	typeLocator = 1
	typeTask    = 2
	typeState   = 3
	typeFile    = 4
	typeData    = 5

	locatorSize = 34
	taskSize    = 24
	stateSize   = 46
	fileSize    = 62 // and the name
	dataSize    = 52

	// maxName is the longest name of a file, with the NUL at its end; InnoDB's own
	// limit of a path is 4000.
	maxName       = 4096
	maxDescriptor = fileSize + maxName
	// maxFile is the size of the largest tablespace with pages of 16 KiB.
	maxFile = 64 << 40
)

// Descriptor says what a record is about.
type Descriptor interface {
	// Append adds the bytes as they are on the wire.
	Append([]byte) []byte
}

// Locator names a snapshot on its donor.
type Locator struct {
	CloneID, SnapshotID uint64
	Index               uint32
	// Reached and FilesKnown matter to a restart only.
	Reached    uint8
	FilesKnown uint8
}

// Task is the first record of all that a connection gets.
type Task struct{ Task, Chunk, Block uint32 }

// StateChange begins or ends a state, or says that the donor is still there.
type StateChange struct {
	State  State
	Task   uint32
	Chunks uint32
	// Files is the number of files; in PageCopy, of pages.
	Files uint32
	// Bytes and BytesOnDisk are estimates.
	Bytes, BytesOnDisk uint64
	Flags              uint16
}

const (
	stateStart = 1
	stateAck   = 2
)

// Start reports whether it is the start of a state. One that is neither Start nor KeepAlive is the
// end of the state.
func (s StateChange) Start() bool { return s.Flags == stateStart }

// KeepAlive reports whether it says only that the donor is still there.
func (s StateChange) KeepAlive() bool { return s.Flags&stateAck != 0 }

// File is a file of the data directory, or what DDL made of it.
type File struct {
	State State
	// Size and Allocated in bytes; DDL and writes meanwhile may make it larger.
	Size, Allocated uint64
	// FSP are the flags of the tablespace, noFSP where it has none.
	FSP       uint32
	BlockSize uint32
	Flags     uint16
	Space     uint32
	// Index is how data refer to it. Redo files have indices of their own.
	Index                 uint32
	FirstChunk, LastChunk uint32
	// Name is relative to the data directory and as file names there are; "" for redo.
	Name string
}

const (
	noFSP = 0xffffffff

	fileAES     = 4
	fileRenamed = 8
	fileDeleted = 0x10
	fileHasKey  = 0x20
	fileFlags   = 0x3f // all that are known
)

// Block is what the data that follow are: where they belong.
type Block struct {
	State              State
	Task, Chunk, Block uint32
	File               uint32
	Length             uint32
	Offset             uint64
	// FileSize is what the file has at least; in FileCopy, at least Offset and Length together.
	FileSize uint64
}

// ParseDescriptor reads one descriptor, which takes all of b. What a snapshot must not
// hold is refused here already: encrypted files, names outside of the data directory,
// other page sizes.
func ParseDescriptor(b []byte) (Descriptor, error) {
	if len(b) < descriptorHeader || len(b) > maxDescriptor {
		return nil, refuse(Malformed, "a descriptor of %d bytes", len(b))
	}
	in := fields{b: b}
	version, length, kind := in.u32(), in.u32(), in.u32()
	if version != descriptorVersion {
		return nil, refuse(UnknownVersion, "a descriptor of version %d", version)
	}
	if int64(length) != int64(len(b)) {
		return nil, refuse(Malformed, "a descriptor of %d bytes calls itself %d long", len(b), length)
	}
	sizes := map[uint32]int{typeLocator: locatorSize, typeTask: taskSize, typeState: stateSize,
		typeFile: fileSize, typeData: dataSize}
	size, known := sizes[kind]
	if !known {
		return nil, refuse(UnknownVersion, "a descriptor of type %d", kind)
	}
	if len(b) < size || len(b) > size && kind != typeFile {
		return nil, refuse(Malformed, "a descriptor of type %d and %d bytes", kind, len(b))
	}
	switch kind {
	case typeLocator:
		return Locator{in.u64(), in.u64(), in.u32(), in.u8(), in.u8()}, nil
	case typeTask:
		return Task{in.u32(), in.u32(), in.u32()}, nil
	case typeState:
		return in.stateChange()
	case typeFile:
		return in.file()
	}
	return in.block()
}

// fields reads one field behind the other. Whoever uses it has looked at the length.
type fields struct{ b []byte }

func (f *fields) take(n int) []byte {
	out := f.b[:n]
	f.b = f.b[n:]
	return out
}

func (f *fields) u8() uint8   { return f.take(1)[0] }
func (f *fields) u16() uint16 { return binary.BigEndian.Uint16(f.take(2)) }
func (f *fields) u32() uint32 { return binary.BigEndian.Uint32(f.take(4)) }
func (f *fields) u64() uint64 { return binary.BigEndian.Uint64(f.take(8)) }

func (f *fields) stateChange() (Descriptor, error) {
	s := StateChange{State(f.u32()), f.u32(), f.u32(), f.u32(), f.u64(), f.u64(), f.u16()}
	if s.Flags > stateStart|stateAck {
		return nil, refuse(UnknownVersion, "flags %#x of a state", s.Flags)
	}
	return s, known(s.State)
}

func (f *fields) block() (Descriptor, error) {
	d := Block{State(f.u32()), f.u32(), f.u32(), f.u32(), f.u32(), f.u32(), f.u64(), f.u64()}
	end := d.FileSize
	if d.State != StateFileCopy {
		// A file that grew since FileCopy has its new size with its first page only, and the
		// last block of the redo log comes behind what was called its size.
		end = maxFile
	}
	if d.Length > maxData || d.FileSize > maxFile || d.Offset > end || uint64(d.Length) > end-d.Offset {
		return nil, refuse(Malformed, "a block of %d bytes at %d in a file of %d", d.Length, d.Offset, d.FileSize)
	}
	return d, known(d.State)
}

func (f *fields) file() (Descriptor, error) {
	d := File{State: State(f.u32()), Size: f.u64(), Allocated: f.u64(), FSP: f.u32(), BlockSize: f.u32(),
		Flags: f.u16(), Space: f.u32(),
		Index: f.u32(), FirstChunk: f.u32(), LastChunk: f.u32()}
	length := int64(f.u32())
	if d.Flags&^fileFlags != 0 {
		return nil, refuse(UnknownVersion, "flags %#x of a file", d.Flags)
	}
	if d.Flags&(fileAES|fileHasKey) != 0 {
		return nil, d.encrypted()
	}
	if length != int64(len(f.b)) || d.Size > maxFile {
		return nil, refuse(Malformed, "a file of %d bytes, whose name has %d bytes of %d", d.Size, length, len(f.b))
	}
	if err := d.setName(f.b); err != nil {
		return nil, err
	}
	return d, d.check()
}

// Numbers of tablespaces: the redo log has the last one, and those of the undo logs come before it.
const (
	redoSpace  = 0xfffffff0
	undoSpaces = 127 * 400_000
)

// encrypted refuses a file, and says what encrypts it: it is no table in the case of logs.
func (f *File) encrypted() error {
	switch {
	case f.Space == redoSpace:
		return refuse(LogsEncrypted, "the redo log (innodb_redo_log_encrypt)")
	case f.Space >= redoSpace-undoSpaces && f.Space < redoSpace:
		return refuse(LogsEncrypted, "undo tablespace %d (innodb_undo_log_encrypt)", f.Space)
	default:
		return refuse(Encrypted, "tablespace %d", f.Space)
	}
}

// setName takes a name with its NUL; none has no bytes at all.
func (f *File) setName(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	name, ok := bytes.CutSuffix(b, []byte{0})
	if !ok || len(name) == 0 || bytes.IndexByte(name, 0) >= 0 {
		return refuse(Malformed, "the name %q of a file", b)
	}
	f.Name = string(name)
	return nil
}

// check refuses what could not be restored, or would do harm.
func (f *File) check() error {
	if strings.HasPrefix(f.Name, "/") || f.Name != "" && path.Clean(f.Name) == "." {
		return refuse(UnsafeName, "file %q", f.Name)
	}
	for part := range strings.SplitSeq(f.Name, "/") {
		if part == ".." || strings.HasPrefix(part, "#clone") {
			return refuse(UnsafeName, "file %q", f.Name)
		}
	}
	// Bits 6 to 9 are the page size, 0 for 16 KiB; bits 1 to 4 that of compressed rows,
	// 512 bytes shifted by it.
	if f.FSP != noFSP && (f.FSP>>6&0xf != 0 || f.FSP>>1&0xf > 5) {
		return refuse(PageSize, "file %q has FSP flags %#x", f.Name, f.FSP)
	}
	return known(f.State)
}

func known(s State) error {
	if s < StateInit || s > StateDone {
		return refuse(UnknownVersion, "state %d", s)
	}
	return nil
}

func header(b []byte, kind uint32, size int) []byte {
	b = binary.BigEndian.AppendUint32(b, descriptorVersion)
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	return binary.BigEndian.AppendUint32(b, kind)
}

func u32s(b []byte, values ...uint32) []byte {
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func u64s(b []byte, values ...uint64) []byte {
	for _, v := range values {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

// Append implements Descriptor.
func (l Locator) Append(b []byte) []byte {
	b = u64s(header(b, typeLocator, locatorSize), l.CloneID, l.SnapshotID)
	return append(u32s(b, l.Index), l.Reached, l.FilesKnown)
}

// Append implements Descriptor.
func (t Task) Append(b []byte) []byte {
	return u32s(header(b, typeTask, taskSize), t.Task, t.Chunk, t.Block)
}

// Append implements Descriptor.
func (s StateChange) Append(b []byte) []byte {
	b = u32s(header(b, typeState, stateSize), uint32(s.State), s.Task, s.Chunks, s.Files)
	return binary.BigEndian.AppendUint16(u64s(b, s.Bytes, s.BytesOnDisk), s.Flags)
}

// Append implements Descriptor.
func (f File) Append(b []byte) []byte {
	length := 0
	if f.Name != "" {
		length = len(f.Name) + 1
	}
	b = u32s(header(b, typeFile, fileSize+length), uint32(f.State))
	b = u32s(u64s(b, f.Size, f.Allocated), f.FSP, f.BlockSize)
	b = binary.BigEndian.AppendUint16(b, f.Flags)
	b = u32s(b, f.Space, f.Index, f.FirstChunk, f.LastChunk, uint32(length))
	if length > 0 {
		b = append(append(b, f.Name...), 0)
	}
	return b
}

// Append implements Descriptor.
func (d Block) Append(b []byte) []byte {
	b = u32s(header(b, typeData, dataSize), uint32(d.State), d.Task, d.Chunk, d.Block, d.File, d.Length)
	return u64s(b, d.Offset, d.FileSize)
}
