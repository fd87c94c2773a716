package archive

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"testing"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// TestWhatAFailoverLostCanBeRead: of three parts, of which the first survived.
func TestWhatAFailoverLostCanBeRead(t *testing.T) {
	story("", t, func(t *testing.T, former *logs, m *memory) {
		s := begin(t, former.config(m, 1))
		former.commit(1, 10)
		settle()
		former.commit(1, 5)
		settle()
		former.commit(1, 3)
		settle()
		must(t, s.end())
		successor := newLogs(t)
		successor.commit(1, 12)
		s = begin(t, successor.config(m, 2))
		successor.commit(2, 1)
		settle()
		must(t, s.end())

		a, err := Load(t.Context(), m, prefix)
		must(t, err)
		lost := lostOf(t, m, a)
		if len(lost) != 1 || !lost[0].GTIDs.Equal(ids(1, "13-18")) || len(lost[0].Steps) != 2 {
			t.Fatalf("lost are %+v", lost)
		}
		var log bytes.Buffer
		must(t, place(m).WriteLost(t.Context(), lost[0], &log))
		if got := transactionsIn(t, &log); !got.Equal(ids(1, "13-18")) {
			t.Errorf("the log has %s", got)
		}
		lost[0].Steps[0].Take = ids(1, "13-99")
		if err := place(m).WriteLost(t.Context(), lost[0], &log); !errors.Is(err, PartDamaged) {
			t.Errorf("a part that lacks transactions: %v", err)
		}
	})
}

// transactionsIn reads a binary log as anybody would.
func transactionsIn(t *testing.T, log *bytes.Buffer) (all gtid.Set) {
	t.Helper()
	stream, err := binlog.NewStream(log)
	must(t, err)
	for {
		e, err := stream.Next()
		if err != nil {
			return all
		}
		if e.Begins != nil {
			all = all.Union(e.Begins.ID)
		}
	}
}

// uncheckedLog is a log of a transaction as a server with binlog_checksum=NONE writes it.
func uncheckedLog(checked []byte) []byte {
	end := 4 + int(binary.LittleEndian.Uint32(checked[4+9:]))
	out := bytes.Clone(checked[:end])
	out[4+17] &^= 1 // in use, which its checksum leaves out
	out[end-5] = 0  // how its events are checked
	binary.LittleEndian.PutUint32(out[end-4:], crc32.ChecksumIEEE(out[4:end-4]))
	for rest := checked[end:]; len(rest) > 0; {
		n := binary.LittleEndian.Uint32(rest[9:])
		event := bytes.Clone(rest[:n-4])
		binary.LittleEndian.PutUint32(event[9:], n-4)
		out, rest = append(out, event...), rest[n:]
	}
	return out
}

// TestWhatWasLostUnderTwoFormatsCanBeRead holds that each part's events stand behind the format that they have.
func TestWhatWasLostUnderTwoFormatsCanBeRead(t *testing.T) {
	l := newLogs(t)
	parts := [3][]byte{}
	for i := range parts {
		l.commit(1, 2)
		raw, err := os.ReadFile(l.path())
		must(t, err)
		if parts[i] = raw; i == 1 {
			parts[i] = uncheckedLog(raw)
		}
		l.rotate()
	}
	var log bytes.Buffer
	out := &relayWriter{Writer: bufio.NewWriter(&log)}
	for i, raw := range parts {
		out.step, out.begins = facts.Step{Take: l.executed, Pieces: []facts.Part{{File: l.names[i]}}}, true
		stream, err := binlog.NewStream(bytes.NewReader(raw))
		must(t, err)
		for e, err := stream.Next(); err == nil; e, err = stream.Next() {
			must(t, out.event(stream, e))
		}
	}
	must(t, out.Flush())
	if got := transactionsIn(t, &log); !got.Equal(l.executed) {
		t.Errorf("the log has %s, not %s", got, l.executed)
	}
}
