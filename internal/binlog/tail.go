package binlog

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"cnmsql.co/internal/gtid"
)

const (
	headerSize = 19
	// maxEvent is the most that max_allowed_packet allows, with its envelope. An event with two images of a row
	// may be longer; a log is archived as long as it holds none.
	maxEvent = 1<<30 + 1<<20
	// maxGTIDEvent is more than an event that begins a transaction has.
	maxGTIDEvent = 1 << 12

	typeGTID         = 33
	typeAnonymous    = 34
	typeGTIDTagged   = 42
	gtidBodySize     = 1 + 16 + 8
	offsetType       = 4
	offsetLength     = 9
	offsetSourceUUID = 1
	offsetSequence   = 17
)

var (
	magic          = [4]byte{0xfe, 'b', 'i', 'n'}
	magicEncrypted = [4]byte{0xfd, 'b', 'i', 'n'}
)

// Reasons for which a log cannot be judged.
var (
	ErrEncrypted   = errors.New("the binary log is encrypted")
	ErrTagged      = errors.New("the binary log holds tagged GTIDs")
	ErrAnonymous   = errors.New("the binary log holds transactions without GTID")
	ErrInterleaved = errors.New("behind the first transaction that the successor lacks there are some that it holds")
	ErrNotABinlog  = errors.New("the file is no binary log")
)

// Tail is what a log holds beyond what a successor does.
type Tail struct {
	// Offset in the file at which it begins; 0 when there is none.
	Offset int64
	// Transactions in it, the successor lacks all of them.
	Transactions gtid.Set
}

// findTail reads a binary log up to its end, or up to an event that a crash left
// incomplete, and finds the first transaction that is not in held.
func findTail(r io.Reader, held gtid.Set) (Tail, error) {
	var tail Tail
	err := scan(r, func(t entry) error {
		switch {
		case !held.Contains(t.id):
			if tail.Offset == 0 {
				tail.Offset = t.offset
			}
			tail.Transactions = tail.Transactions.Union(t.id)
		case tail.Offset != 0:
			return ErrInterleaved
		}
		return nil
	})
	return tail, err
}

func checkMagic(in io.Reader) error {
	var got [4]byte
	if _, err := io.ReadFull(in, got[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrNotABinlog, err)
	}
	switch got {
	case magic:
		return nil
	case magicEncrypted:
		return ErrEncrypted
	default:
		return fmt.Errorf("%w: it begins with %x", ErrNotABinlog, got)
	}
}

// entry is a transaction in a log, as the first of its events tells.
type entry struct {
	id gtid.Set
	// offset in the file, and when it was committed where it came from, by that
	// server's clock, in whole seconds.
	offset int64
	at     time.Time
}

// scan calls visit with every transaction, up to the end of what is complete.
func scan(r io.Reader, visit func(entry) error) error { return scanContent(r, visit, nil) }

// scanContent also calls event with every other event; its body is nil when it is long.
func scanContent(r io.Reader, visit func(entry) error, event func(kind byte, body []byte)) error {
	in := bufio.NewReaderSize(r, 1<<20)
	if err := checkMagic(in); err != nil {
		return err
	}
	s := scanner{in: in, offset: int64(len(magic)), checksum: -1, visit: visit, event: event}
	for {
		more, err := s.next()
		if err != nil || !more {
			return err
		}
	}
}

type scanner struct {
	in     *bufio.Reader
	offset int64
	// checksum is how many bytes at the end of an event check it; -1 while that is not known.
	checksum int
	visit    func(entry) error
	event    func(kind byte, body []byte) // nil if nobody asks
}

// next reads one event; more is false at the end of what is complete.
func (s *scanner) next() (more bool, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(s.in, header[:]); err != nil {
		return false, endOr(err)
	}
	length := int64(binary.LittleEndian.Uint32(header[offsetLength:]))
	if length < headerSize {
		return false, nil // what a crash left; mysqld drops it, too
	}
	rest := length - headerSize
	switch header[offsetType] {
	case typeGTIDTagged:
		return false, ErrTagged
	case typeAnonymous:
		return false, ErrAnonymous
	case typeGTID:
		err := s.transaction(header[:], rest)
		if err != nil {
			return false, endOr(err)
		}
		rest = 0
	default:
		if s.event != nil || header[offsetType] == typeFormat {
			return s.other(header[offsetType], length)
		}
	}
	if _, err := io.CopyN(io.Discard, s.in, rest); err != nil {
		return false, endOr(err)
	}
	s.offset += length
	return true, nil
}

// other reads an event that begins no transaction as a whole.
func (s *scanner) other(kind byte, length int64) (more bool, err error) {
	var body []byte
	rest := length - headerSize
	if rest <= maxWholeEvent {
		body = make([]byte, rest)
		_, err = io.ReadFull(s.in, body)
	} else {
		_, err = io.CopyN(io.Discard, s.in, rest)
	}
	if err != nil {
		return false, endOr(err)
	}
	if kind == typeFormat {
		s.checksum = checksumOf(body)
	}
	if s.event != nil {
		s.event(kind, body)
	}
	s.offset += length
	return true, nil
}

// transaction reads the GTID event that begins one. One that is wrong is the end of what is complete: a
// machine that lost its power may have kept the length of a file and not what was written last, and
// mysqld drops that, too.
func (s *scanner) transaction(header []byte, rest int64) error {
	if rest < gtidBodySize || rest > maxGTIDEvent {
		return io.ErrUnexpectedEOF
	}
	body := make([]byte, rest)
	if _, err := io.ReadFull(s.in, body); err != nil {
		return err
	}
	if s.checksum > 0 && check(Event{Header: header, Body: body}, s.offset) != nil {
		return io.ErrUnexpectedEOF
	}
	id, err := gtid.Parse(fmt.Sprintf("%s:%d", hex.EncodeToString(body[offsetSourceUUID:offsetSequence]),
		binary.LittleEndian.Uint64(body[offsetSequence:])))
	if err != nil || id.IsEmpty() {
		return io.ErrUnexpectedEOF
	}
	return s.visit(entry{id, s.offset, time.Unix(int64(binary.LittleEndian.Uint32(header)), 0)})
}

// endOr returns nil where the log ends, also in the middle of an event, for an incomplete event is
// the end of the log. It returns any other error as it is.
func endOr(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
