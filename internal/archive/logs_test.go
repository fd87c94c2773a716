package archive

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// uuidOf is the server of an epoch.
func uuidOf(epoch int64) string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000", epoch) }

func ids(epoch int64, text string) gtid.Set {
	if text == "" {
		return gtid.Set{}
	}
	return gtid.MustParse(uuidOf(epoch) + ":" + text)
}

// logs are the binary logs of a server that is none.
type logs struct {
	t        testing.TB
	dir      string
	names    []string
	number   int
	written  gtid.Set // in all logs
	executed gtid.Set
	mu       sync.Mutex // for executed, where a test does not wait before it changes it
	next     map[int64]int
	// ahead is by how much its clock is.
	ahead time.Duration
	// origin is when what it receives now was committed elsewhere.
	origin time.Time
	asked  int
}

func newLogs(t testing.TB) *logs {
	l := &logs{t: t, dir: t.TempDir(), next: map[int64]int{}}
	l.rotate()
	return l
}

// snapshot is the volume as it is now, on which a server was begun.
func (l *logs) snapshot() *logs {
	l.t.Helper()
	back := &logs{t: l.t, dir: l.t.TempDir(), names: slices.Clone(l.names), number: l.number, next: maps.Clone(l.next),
		written: l.written, executed: l.executed}
	must(l.t, os.CopyFS(back.dir, os.DirFS(l.dir)))
	return back
}

// questions is how often the server was asked what it has executed.
func (l *logs) questions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *logs) index() string { return filepath.Join(l.dir, "binlog.index") }

func (l *logs) path() string { return filepath.Join(l.dir, l.names[len(l.names)-1]) }

// formatOf a real server, which checks its events.
func formatOf(t testing.TB) []byte {
	real, err := os.ReadFile("../binlog/testdata/writes.bin")
	must(t, err)
	return real[:4+binary.LittleEndian.Uint32(real[4+9:])]
}

func logEvent(kind byte, body []byte) []byte {
	out := make([]byte, 19, 19+len(body)+4)
	out[4] = kind
	binary.LittleEndian.PutUint32(out[5:], 77)
	binary.LittleEndian.PutUint32(out[9:], uint32(19+len(body)+4))
	out = append(out, body...)
	return binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}

// rotate begins another log.
func (l *logs) rotate() {
	l.t.Helper()
	if l.number > 0 {
		l.append(logEvent(4, append(make([]byte, 8), "next"...)))
	}
	l.number++
	l.names = append(l.names, fmt.Sprintf("binlog.%06d", l.number))
	head := formatOf(l.t)
	head[4+17] |= 1 // in use
	var sources []byte
	for _, source := range l.written.Sources() {
		id, err := hex.DecodeString(strings.ReplaceAll(source, "-", ""))
		must(l.t, err)
		text := strings.Split(l.written.Of(source).String(), ":")[1:]
		sources = binary.LittleEndian.AppendUint64(append(sources, id...), uint64(len(text)))
		for _, interval := range text {
			var a, b uint64
			if n, _ := fmt.Sscanf(interval, "%d-%d", &a, &b); n < 2 {
				b = a
			}
			sources = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(sources, a), b+1)
		}
	}
	n := binary.LittleEndian.AppendUint64(nil, uint64(len(l.written.Sources())))
	must(l.t, os.WriteFile(l.path(), append(head, logEvent(35, append(n, sources...))...), 0o600))
	l.writeIndex()
}

func (l *logs) writeIndex() {
	must(l.t, os.WriteFile(l.index(), []byte("./"+strings.Join(l.names, "\n./")+"\n"), 0o600))
}

// purge the first n logs.
func (l *logs) purge(n int) {
	for _, name := range l.names[:n] {
		must(l.t, os.Remove(filepath.Join(l.dir, name)))
	}
	l.names = l.names[n:]
	l.writeIndex()
}

func (l *logs) append(b []byte) {
	l.t.Helper()
	f, err := os.OpenFile(l.path(), os.O_APPEND|os.O_WRONLY, 0)
	must(l.t, err)
	_, err = f.Write(b)
	must(l.t, errors.Join(err, f.Close()))
}

// transaction of about so many bytes.
func (l *logs) transaction(id gtid.Set, size int) []byte {
	source := strings.ReplaceAll(id.Sources()[0], "-", "")
	raw, err := hex.DecodeString(source)
	must(l.t, err)
	var number uint64
	_, err = fmt.Sscanf(id.String()[37:], "%d", &number)
	must(l.t, err)
	var events []byte
	for size > 0 {
		n := min(size, 4000)
		events = append(events, logEvent(2, bytes.Repeat([]byte{byte(number)}, n))...)
		size -= n
	}
	body := append([]byte{1}, raw...)
	body = append(binary.LittleEndian.AppendUint64(body, number), 2)
	body = append(body, make([]byte, 16)...)
	var at [8]byte
	binary.LittleEndian.PutUint64(at[:], uint64(time.Now().Add(l.ahead).UnixMicro()))
	if !l.origin.IsZero() {
		at[6] |= 0x80
	}
	body = append(body, at[:7]...)
	if !l.origin.IsZero() {
		binary.LittleEndian.PutUint64(at[:], uint64(l.origin.UnixMicro()))
		body = append(body, at[:7]...)
	}
	whole := 19 + len(body) + 9 + 4 + 4 + len(events)
	body = binary.LittleEndian.AppendUint64(append(body, 254), uint64(whole))
	body = append(body, 1, 2, 3, 0)
	return append(logEvent(33, body), events...)
}

// write so many transactions of an epoch's server, that are not executed yet.
func (l *logs) write(epoch int64, n, size int) gtid.Set {
	var all gtid.Set
	for range n {
		l.next[epoch]++
		id := ids(epoch, fmt.Sprint(l.next[epoch]))
		l.append(l.transaction(id, size))
		all = all.Union(id)
	}
	l.written = l.written.Union(all)
	return all
}

// commit writes and executes them.
func (l *logs) commit(epoch int64, n int) gtid.Set {
	set := l.write(epoch, n, 100)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.executed = l.executed.Union(set)
	return l.executed
}

func rawOf(t *testing.T, m *memory, p facts.Part) []byte {
	t.Helper()
	in, err := place(m).open(t.Context(), p)
	must(t, err)
	raw, err := io.ReadAll(in)
	must(t, errors.Join(err, in.Close()))
	return raw
}

// archivedOnce: the archive holds these transactions, each once, and every part is a log
// that holds what it says.
func archivedOnce(t *testing.T, m *memory, want gtid.Set) facts.Archive {
	t.Helper()
	a := loaded(t, m)
	var all gtid.Set
	for _, p := range a.Parts {
		if twice := all.Intersect(p.GTIDs); !twice.IsEmpty() {
			t.Errorf("%s is archived twice", twice)
		}
		all = all.Union(p.GTIDs)
		if p.Piece == 0 {
			isLog(t, rawOf(t, m, p), p)
		}
	}
	if !all.Equal(want) {
		t.Errorf("archived are %s, not %s", all, want)
	}
	return a
}

func isLog(t *testing.T, raw []byte, p facts.Part) {
	t.Helper()
	must(t, check(raw, p.Transactions))
	path := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(path, raw, 0o600))
	log, err := binlog.OpenLog(path)
	must(t, err)
	defer func() { must(t, log.Close()) }()
	if !log.Previous.Equal(p.Before) {
		t.Errorf("part %d tells of %s before it, and its log of %s", p.Sequence, p.Before, log.Previous)
	}
}

// A piece is stored under the hash of what was read: that of a rotten block would be right.
func TestALargeTransactionIsLookedAtBeforeItIsStored(t *testing.T) {
	const size = 35000              // of which a part holds 10000
	const last = size%4000 + 19 + 4 // bytes of its last event
	spoil := map[string]func([]byte){
		"a byte in its third piece": func(b []byte) { b[25000] ^= 1 },
		"the length of an event":    func(b []byte) { b[len(b)-last+9] ^= 0x10 },
		"an event of zeroes":        func(b []byte) { clear(b[len(b)-last:]) },
	}
	for name, spoil := range spoil {
		story(name, t, func(t *testing.T, l *logs, m *memory) {
			s := begin(t, l.config(m, 1))
			bad := l.transaction(ids(1, "1"), size)
			spoil(bad)
			l.append(bad)
			l.written = ids(1, "1")
			l.execute()
			settle()
			if err := s.end(); !errors.Is(err, LogUnreadable) || m.written() != 1 {
				t.Errorf("%d writes, %v", m.written(), err)
			}
		})
	}
}
