package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cnmsql.co/internal/gtid"
)

const source = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// event makes an event of a type with a body.
func event(kind byte, body []byte) []byte {
	out := make([]byte, headerSize, headerSize+len(body))
	out[offsetType] = kind
	binary.LittleEndian.PutUint32(out[offsetLength:], uint32(headerSize+len(body)))
	return append(out, body...)
}

// transaction makes a GTID event with some more events behind it.
func transaction(t *testing.T, n uint64) []byte {
	t.Helper()
	id, err := hex.DecodeString(strings.ReplaceAll(source, "-", ""))
	if err != nil {
		t.Fatal(err)
	}
	body := append([]byte{1}, id...)
	body = binary.LittleEndian.AppendUint64(body, n)
	body = append(body, make([]byte, 21)...) // logical clock and timestamps
	return bytes.Join([][]byte{event(typeGTID, body), event(2, []byte("BEGIN")), event(16, make([]byte, 12))}, nil)
}

func logOf(t *testing.T, numbers ...uint64) []byte {
	t.Helper()
	out := append([]byte{}, magic[:]...)
	out = append(out, event(15, make([]byte, 100))...)
	out = append(out, event(35, make([]byte, 12))...)
	for _, n := range numbers {
		out = append(out, transaction(t, n)...)
	}
	return out
}

func TestFindTail(t *testing.T) {
	two := len(logOf(t, 1, 2))
	for name, c := range map[string]struct {
		log    []byte
		held   string
		offset int
		tail   string
		err    error
	}{
		"the successor holds all":         {logOf(t, 1, 2, 3), source + ":1-3", 0, "", nil},
		"the last two are not held":       {logOf(t, 1, 2, 3, 4), source + ":1-2", two, source + ":3-4", nil},
		"a crash left half a transaction": {logOf(t, 1, 2, 3)[:two+30], source + ":1-2", 0, "", nil},
		"a crash left half an event":      {logOf(t, 1, 2, 3)[:len(logOf(t, 1, 2, 3))-5], source + ":1-2", two, source + ":3", nil},
		"one in the middle is not held":   {logOf(t, 1, 2, 3), source + ":1:3", 0, "", ErrInterleaved},
		"an encrypted log":                {[]byte{0xfd, 'b', 'i', 'n', 1, 2, 3}, "", 0, "", ErrEncrypted},
		"no log":                          {[]byte("hello"), "", 0, "", ErrNotABinlog},
		"an empty file":                   {nil, "", 0, "", ErrNotABinlog},
		"tagged GTIDs":                    {append(logOf(t, 1), event(typeGTIDTagged, make([]byte, 40))...), source + ":1", 0, "", ErrTagged},
		"no GTIDs":                        {append(logOf(t), event(typeAnonymous, make([]byte, 40))...), "", 0, "", ErrAnonymous},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := FindTail(bytes.NewReader(c.log), gtid.MustParse(c.held))
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && (got.Offset != int64(c.offset) || !got.Transactions.Equal(gtid.MustParse(c.tail))) {
				t.Errorf("got %+v, want offset %d and %s", got, c.offset, c.tail)
			}
		})
	}
}

func TestCutTailKeepsWhatItCuts(t *testing.T) {
	dir := t.TempDir()
	whole := logOf(t, 1, 2, 3, 4)
	log := filepath.Join(dir, "binlog.000007")
	if err := errors.Join(os.WriteFile(log, whole, 0o600), os.WriteFile(filepath.Join(dir, "binlog.index"), []byte("./binlog.000006\n./binlog.000007\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	last, err := Last(filepath.Join(dir, "binlog.index"))
	if err != nil || last != log {
		t.Fatalf("the last log is %q (%v), want %q", last, err, log)
	}
	for range 2 { // the second time there is nothing left to cut
		if _, _, err = CutTail(last, gtid.MustParse(source+":1-3"), filepath.Join(dir, "kept")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadFile(log)
	if err != nil || !bytes.Equal(left, logOf(t, 1, 2, 3)) {
		t.Errorf("%d bytes are left (%v), want %d", len(left), err, len(logOf(t, 1, 2, 3)))
	}
	kept, err := os.ReadFile(filepath.Join(dir, "kept", "binlog.000007.from-"+strconv.Itoa(len(left))))
	if err != nil || !bytes.Equal(append(left, kept...), whole) {
		t.Errorf("what was kept and what is left do not make up the log: %v", err)
	}
}

func FuzzFindTail(f *testing.F) {
	f.Add(append(magic[:], event(typeGTID, make([]byte, 46))...))
	f.Fuzz(func(_ *testing.T, log []byte) {
		_, _ = FindTail(bytes.NewReader(log), gtid.Set{})
	})
}
