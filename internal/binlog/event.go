package binlog

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/internal/gtid"
)

// Transaction is what the first event of a transaction tells of it.
type Transaction struct {
	ID gtid.Set
	// Committed is when the server that wrote this log committed it, by its own clock, to
	// the microsecond.
	Committed time.Time
	// Origin is when the server that wrote the transaction committed it, by that server's clock: Committed, unless
	// this server received it.
	Origin time.Time
	// Offset in the log and Size, in bytes, with all of its events.
	Offset, Size int64
}

const (
	offsetEnd = 13 // of the header: where the event ends
	// Of the body of a GTID event: behind the number stand a type, two numbers of the
	// logical clock, and the time of the commit in seven bytes.
	offsetClockType = gtidBodySize
	clockSize       = 1 + 8 + 8
	offsetCommit    = offsetClockType + clockSize
	timeSize        = 7
	clockTyped      = 2
	timeBits        = 55
	maxTransaction  = 1 << 50
)

// parseGTID reads the body of the event that begins a transaction.
func parseGTID(body []byte) (t Transaction, err error) {
	if len(body) < offsetCommit+timeSize+1 || body[offsetClockType] != clockTyped {
		return t, fmt.Errorf("%w: its GTID events tell neither time nor size; a server before 8.0 wrote it", ErrDamaged)
	}
	text := hex.EncodeToString(body[offsetSourceUUID:offsetSequence]) + ":" +
		strconv.FormatUint(binary.LittleEndian.Uint64(body[offsetSequence:]), 10)
	if t.ID, err = gtid.Parse(text); err != nil || t.ID.IsEmpty() {
		return t, fmt.Errorf("%w: GTID event: %w", ErrDamaged, err)
	}
	commit := little(body[offsetCommit:], timeSize)
	origin, rest := commit, body[offsetCommit+timeSize:]
	if commit>>timeBits != 0 { // when it was committed at its origin follows
		if len(rest) < timeSize+1 {
			return t, fmt.Errorf("%w: a short GTID event", ErrDamaged)
		}
		origin, rest = little(rest, timeSize), rest[timeSize:]
	}
	t.Committed, t.Origin = timeOf(commit), timeOf(origin)
	size, ok := packed(rest)
	if !ok || size < headerSize || size > maxTransaction {
		return t, fmt.Errorf("%w: a transaction of %d bytes", ErrDamaged, size)
	}
	t.Size = int64(size)
	return t, nil
}

// timeOf is the time that a GTID event tells, without the bit that another one follows.
func timeOf(told uint64) time.Time { return time.UnixMicro(int64(told & (1<<timeBits - 1))).UTC() }

// little is a number of some bytes.
func little(b []byte, n int) (v uint64) {
	for i := range n {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// packed is a number of the protocol's variable length.
func packed(b []byte) (uint64, bool) {
	size := map[byte]int{252: 2, 253: 3, 254: 8}[b[0]]
	switch {
	case b[0] < 251:
		return uint64(b[0]), true
	case size == 0 || len(b) < 1+size:
		return 0, false
	}
	return little(b[1:], size), true
}

const (
	sourceSize   = 16
	intervalSize = 16
)

// parsePrevious reads the body of the event that tells the GTIDs before a log.
func parsePrevious(body []byte) (gtid.Set, error) {
	short := fmt.Errorf("%w: a short event of previous GTIDs", ErrDamaged)
	if len(body) < 8 {
		return gtid.Set{}, short
	}
	sources := binary.LittleEndian.Uint64(body)
	if sources>>56 != 0 {
		return gtid.Set{}, ErrTagged
	}
	var text strings.Builder
	for body = body[8:]; sources > 0; sources-- {
		if len(body) < sourceSize+8 {
			return gtid.Set{}, short
		}
		text.WriteString("," + hex.EncodeToString(body[:sourceSize]))
		intervals := binary.LittleEndian.Uint64(body[sourceSize:])
		for body = body[sourceSize+8:]; intervals > 0; intervals-- {
			if len(body) < intervalSize {
				return gtid.Set{}, short
			}
			fmt.Fprintf(&text, ":%d-%d", binary.LittleEndian.Uint64(body), binary.LittleEndian.Uint64(body[8:])-1)
			body = body[intervalSize:]
		}
	}
	return gtid.Parse(text.String())
}

// previousBody is what parsePrevious reads. ErrTagged for a set with tags.
func previousBody(set gtid.Set) ([]byte, error) {
	sources := set.Sources()
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(sources)))
	for _, source := range sources {
		id, err := hex.DecodeString(strings.ReplaceAll(source, "-", ""))
		if err != nil {
			return nil, err
		}
		_, list, _ := strings.Cut(set.Of(source).String(), ":")
		intervals := strings.Split(list, ":")
		out = binary.LittleEndian.AppendUint64(append(out, id...), uint64(len(intervals)))
		for _, interval := range intervals {
			first, last, isRange := strings.Cut(interval, "-")
			if !isRange {
				last = first
			}
			a, err := strconv.ParseUint(first, 10, 64)
			b, err2 := strconv.ParseUint(last, 10, 64)
			if err != nil || err2 != nil {
				return nil, ErrTagged
			}
			out = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(out, a), b+1)
		}
	}
	return out, nil
}
