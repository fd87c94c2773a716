package binlog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Stream reads a whole log event by event, checks each, and tells which of them begin a
// transaction.
type Stream struct {
	in       *bufio.Reader
	format   []byte
	checksum int
	offset   int64
}

// Event is one of a Stream. It is valid until the next one is asked for.
type Event struct {
	// Header of 19 bytes, and the body with its checksum.
	Header []byte
	Body   []byte
	// Begins is set if the event begins a transaction.
	Begins *Transaction
}

// ServerID of the server at which the event arose.
func (e Event) ServerID() uint32 { return binary.LittleEndian.Uint32(e.Header[offsetServerID:]) }

// IsOfTransaction reports whether the event belongs to a transaction, and not to the file itself.
func (e Event) IsOfTransaction() bool {
	switch e.Header[offsetType] {
	case typeFormat, typePrevious, typeRotate, typeStop:
		return false
	default:
		return true
	}
}

// IsStatement reports whether an event is a statement, which may make, change or drop tables, and
// neither rows nor where a transaction begins and ends. What cannot be told is one.
func (s *Stream) IsStatement(e Event) bool {
	switch e.Header[offsetType] {
	case typeLoad:
		return true
	case typeQuery:
		return !control.MatchString(statementOf(e.Body, s.checksum))
	default:
		return false
	}
}

// NewStream begins to read a log.
func NewStream(r io.Reader) (*Stream, error) {
	s := &Stream{in: bufio.NewReaderSize(r, 1<<20), offset: int64(len(magic))}
	if err := checkMagic(s.in); err != nil {
		return nil, err
	}
	first, err := s.Next()
	if err != nil || first.Header[offsetType] != typeFormat {
		return nil, errors.Join(fmt.Errorf("%w: it does not begin with its format", ErrDamaged), err)
	}
	first.Header[offsetFlags] &^= flagInUse // set while a server writes the log, and not part of the checksum
	s.format = concat(first.Header, first.Body)
	if s.checksum = checksumOf(first.Body); s.checksum < 0 {
		return nil, fmt.Errorf("%w: its events are checked in a way that is not known", ErrDamaged)
	}
	return s, check(first, int64(len(magic))) // its own has a checksum in any case
}

// Offset of the next event, in what is read.
func (s *Stream) Offset() int64 { return s.offset }

func concat(a, b []byte) []byte { return append(bytes.Clone(a), b...) }

// Next is the next event; io.EOF at the end.
func (s *Stream) Next() (e Event, err error) {
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(s.in, header); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return e, ErrTorn
		}
		return e, err
	}
	length := int64(binary.LittleEndian.Uint32(header[offsetLength:]))
	if length < headerSize+int64(s.checksum) || length > maxEvent {
		return e, fmt.Errorf("%w: an event of %d bytes at %d", ErrDamaged, length, s.offset)
	}
	body := bytes.NewBuffer(make([]byte, 0, min(length, 1<<20)))
	if _, err := io.CopyN(body, s.in, length-headerSize); errors.Is(err, io.EOF) {
		return e, ErrTorn // which is no end
	} else if err != nil {
		return e, err
	}
	e = Event{Header: header, Body: body.Bytes()}
	if again := header[offsetType] == typeFormat && s.format != nil; again {
		if s.checksum = checksumOf(e.Body); s.checksum < 0 {
			return e, fmt.Errorf("%w: the format at %d is of events that are checked in an unknown way", ErrDamaged,
				s.offset)
		}
		if err := check(e, s.offset); err != nil { // its own has a checksum in any case
			return e, err
		}
	} else if s.checksum > 0 {
		if err := check(e, s.offset); err != nil {
			return e, err
		}
	}
	if header[offsetType] == typeGTID {
		t, err := parseGTID(e.Body[:len(e.Body)-s.checksum])
		if err != nil {
			return e, fmt.Errorf("at %d: %w", s.offset, err)
		}
		t.Offset, e.Begins = s.offset, &t
	}
	s.offset += length
	return e, nil
}

// check the last four bytes of an event.
func check(e Event, offset int64) error {
	n := len(e.Body) - checksumSize
	sum := crc32.Update(crc32.ChecksumIEEE(e.Header), crc32.IEEETable, e.Body[:n])
	if sum != binary.LittleEndian.Uint32(e.Body[n:]) {
		return fmt.Errorf("%w: the checksum of the event at %d is wrong", ErrDamaged, offset)
	}
	return nil
}

// MagicSize is how many bytes of the beginning of a file stand before its format.
const MagicSize = len(magic)

// Format is the beginning of a file with the same kind of events: the magic and the event
// that describes the format.
func (s *Stream) Format() []byte { return concat(magic[:], s.format) }

// Rotation is an event that says that what follows stands in another log of the server:
// numbers of its logical clock start again.
func (s *Stream) Rotation(log string) []byte {
	body := binary.LittleEndian.AppendUint64(nil, uint64(len(magic)))
	event := makeEvent(s.format, false, typeRotate, append(body, log...))
	binary.LittleEndian.PutUint16(event[offsetFlags:], flagArtificial)
	if s.checksum == 0 {
		return event
	}
	binary.LittleEndian.PutUint32(event[offsetLength:], uint32(len(event)+checksumSize))
	return binary.LittleEndian.AppendUint32(event, crc32.ChecksumIEEE(event))
}

// flagArtificial marks an event that stands in no log of a server.
const flagArtificial = 0x20
