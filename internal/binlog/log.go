package binlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"cnmsql.co/internal/gtid"
)

// Log reads the transactions of a binary log one by one, while a server may be writing
// more of them.
type Log struct {
	// Format is the beginning of the file: the magic and the event that describes the
	// format, as in a file that is closed.
	Format []byte
	// Previous is what the server's logs held when this one was begun.
	Previous gtid.Set
	file     *os.File
	offset   int64
	size     int64
	checksum int
}

// Reasons for which a log cannot be read on.
var (
	// ErrTorn says that what comes next in the log is not whole, or not yet.
	ErrTorn = errors.New("the binary log ends in the middle of an event")
	// ErrDamaged says that the log cannot become whole any more.
	ErrDamaged = errors.New("the binary log is damaged")
)

const (
	offsetServerID = 5
	offsetFlags    = 17
	flagInUse      = 1
	// firstRead is enough for the header and the body of an event that begins a transaction.
	firstRead = headerSize + 128
	// maxHead bounds the first two events; one interval of a GTID set takes 16 bytes.
	maxHead = 64 << 20
)

// OpenLog opens a binary log. ErrTorn when its beginning was not written yet.
func OpenLog(path string) (l *Log, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l = &Log{file: f}
	if err := l.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the beginning of %s: %w", path, err), f.Close())
	}
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// IsAt reports whether the file that is being read is the one that lies at a path now.
func (l *Log) IsAt(path string) (bool, error) {
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	own, err := l.file.Stat()
	return err == nil && os.SameFile(own, there), err
}

// Offset is where the next transaction begins, or what stands before it.
func (l *Log) Offset() int64 { return l.offset }

// Size returns how many bytes of the file there are now. A server that writes it makes it longer.
func (l *Log) Size() (int64, error) {
	info, err := l.file.Stat()
	if err != nil {
		return 0, err
	}
	l.size = info.Size()
	return l.size, nil
}

func (l *Log) begin() error {
	if size, err := l.Size(); err != nil || size < int64(len(magic)) {
		return errors.Join(err, ErrTorn)
	}
	if err := checkMagic(io.NewSectionReader(l.file, 0, int64(len(magic)))); err != nil {
		return err
	}
	l.offset = int64(len(magic))
	format, err := l.whole(typeFormat)
	if err != nil {
		return err
	}
	if l.checksum = checksumOf(format[headerSize:]); l.checksum < 0 {
		return fmt.Errorf("%w: its events are checked in a way that is not known", ErrDamaged)
	}
	binary.LittleEndian.PutUint16(format[offsetFlags:], binary.LittleEndian.Uint16(format[offsetFlags:])&^flagInUse)
	l.Format = append(bytes.Clone(magic[:]), format...)
	previous, err := l.whole(typePrevious)
	if err != nil {
		return err
	}
	l.Previous, err = parsePrevious(previous[headerSize : len(previous)-l.checksum])
	return err
}

// whole reads the next event, which has to be of a type, and passes it.
func (l *Log) whole(kind byte) ([]byte, error) {
	var header [headerSize]byte
	if err := l.readAt(header[:], l.offset); err != nil {
		return nil, err
	}
	length := int64(binary.LittleEndian.Uint32(header[offsetLength:]))
	if header[offsetType] != kind || length < headerSize+int64(l.checksum) || length > maxHead {
		return nil, fmt.Errorf("%w: at %d stands an event of type %d and of %d bytes, not of type %d", ErrDamaged,
			l.offset, header[offsetType], length, kind)
	}
	event := make([]byte, length)
	if err := l.readAt(event, l.offset); err != nil {
		return nil, err
	}
	l.offset += length
	return event, nil
}

// readAt reads what is there, or tells that it is not.
func (l *Log) readAt(to []byte, offset int64) error {
	if _, err := l.file.ReadAt(to, offset); errors.Is(err, io.EOF) {
		return ErrTorn
	} else if err != nil {
		return err
	}
	return nil
}

// Next finds the next transaction that is there as a whole, and does not pass it: Pass
// does. io.EOF at the end of the file, ErrTorn if there is a part of an event.
func (l *Log) Next() (Transaction, error) {
	for {
		size, err := l.Size()
		if err != nil {
			return Transaction{}, err
		}
		if size < l.offset {
			return Transaction{}, fmt.Errorf("%w: it has become shorter, %d bytes, and was read up to %d",
				ErrDamaged, size, l.offset)
		}
		t, length, err := l.peek()
		if err != nil || length == 0 {
			return t, err
		}
		l.offset += length
	}
}

// peek looks at the next event. If it begins no transaction, its length is told.
func (l *Log) peek() (t Transaction, length int64, err error) {
	buffer := make([]byte, min(firstRead, l.size-l.offset))
	switch {
	case len(buffer) == 0:
		return t, 0, io.EOF
	case len(buffer) < headerSize:
		return t, 0, ErrTorn
	}
	if err := l.readAt(buffer, l.offset); err != nil {
		return t, 0, err
	}
	length = int64(binary.LittleEndian.Uint32(buffer[offsetLength:]))
	switch kind := buffer[offsetType]; {
	case length < headerSize:
		return t, 0, fmt.Errorf("%w: an event of %d bytes at %d", ErrDamaged, length, l.offset)
	case l.offset+length > l.size:
		return t, 0, ErrTorn
	case kind == typeAnonymous:
		return t, 0, ErrAnonymous
	case kind == typeGTIDTagged:
		return t, 0, ErrTagged
	case kind != typeGTID:
		return t, length, nil
	}
	t, err = parseGTID(buffer[headerSize:min(int64(len(buffer)), length)])
	if err != nil {
		return t, 0, fmt.Errorf("at %d: %w", l.offset, err)
	}
	if t.Offset = l.offset; t.Offset+t.Size > l.size {
		return t, 0, ErrTorn
	}
	return t, 0, nil
}

// Pass goes behind a transaction that Next has found.
func (l *Log) Pass(t Transaction) { l.offset = t.Offset + t.Size }

// ReadAt reads bytes of the file, as they are; ErrTorn when it has not so many.
func (l *Log) ReadAt(to []byte, offset int64) error { return l.readAt(to, offset) }

// ServerID returns the server_id of the server that wrote the log.
func (l *Log) ServerID() uint32 {
	return binary.LittleEndian.Uint32(l.Format[len(magic)+offsetServerID:])
}

// Begin is the beginning of a file of its own, for transactions of this log that come
// after previous.
func (l *Log) Begin(previous gtid.Set) ([]byte, error) {
	body, err := previousBody(previous)
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(l.Format), l.event(typePrevious, body)...), nil
}

// event makes one as this log's server does.
func (l *Log) event(kind byte, body []byte) []byte {
	return makeEvent(l.Format[len(magic):], l.checksum > 0, kind, body)
}

// makeEvent makes an event of the time and server of another.
func makeEvent(like []byte, checked bool, kind byte, body []byte) []byte {
	out := append(make([]byte, 0, headerSize+len(body)+checksumSize), like[:headerSize]...)
	out = append(out, body...)
	length := len(out)
	if checked {
		length += checksumSize
	}
	out[offsetType] = kind
	binary.LittleEndian.PutUint32(out[offsetLength:], uint32(length))
	binary.LittleEndian.PutUint32(out[offsetEnd:], 0)
	binary.LittleEndian.PutUint16(out[offsetFlags:], 0)
	if checked {
		out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	}
	return out
}
