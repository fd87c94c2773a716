package binlog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
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
	begin := event(typeGTID, body)
	binary.LittleEndian.PutUint32(begin, uint32(1000+n)) // when it was committed
	return bytes.Join([][]byte{begin, event(2, []byte("BEGIN")), event(16, make([]byte, 12))}, nil)
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
		"a crash left half an event": {logOf(t, 1, 2, 3)[:len(logOf(t, 1, 2, 3))-5], source + ":1-2",
			two, source + ":3", nil},
		"one in the middle is not held": {logOf(t, 1, 2, 3), source + ":1:3", 0, "", ErrInterleaved},
		"an encrypted log":              {[]byte{0xfd, 'b', 'i', 'n', 1, 2, 3}, "", 0, "", ErrEncrypted},
		"no log":                        {[]byte("hello"), "", 0, "", ErrNotABinlog},
		"an empty file":                 {nil, "", 0, "", ErrNotABinlog},
		"tagged GTIDs": {append(logOf(t, 1), event(typeGTIDTagged, make([]byte, 40))...), source +
			":1", 0, "", ErrTagged},
		"no GTIDs": {append(logOf(t), event(typeAnonymous, make([]byte, 40))...), "",
			0, "", ErrAnonymous},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findTail(bytes.NewReader(c.log), gtid.MustParse(c.held))
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err == nil && (got.Offset != int64(c.offset) || !got.Transactions.Equal(gtid.MustParse(c.tail))) {
				t.Errorf("got %+v, want offset %d and %s", got, c.offset, c.tail)
			}
		})
	}
}

// TestATailThatAPowerLossLeft holds that a GTID event that was not written as a whole, though the file has its
// length, is the end of what is complete, and that events behind a long one are looked at.
func TestATailThatAPowerLossLeft(t *testing.T) {
	crc := func(event []byte) []byte {
		binary.LittleEndian.PutUint32(event[offsetLength:], uint32(len(event)+checksumSize))
		return binary.LittleEndian.AppendUint32(event, crc32.ChecksumIEEE(event))
	}
	format := crc(event(typeFormat, append(make([]byte, 90), checksumCRC32)))
	gtidEvent := func(n uint64) []byte {
		all := transaction(t, n)
		return crc(all[:binary.LittleEndian.Uint32(all[offsetLength:])])
	}
	zeroed := func(event []byte, from int) []byte {
		return append(event[:from:from], make([]byte, len(event)-from)...)
	}
	whole := bytes.Join([][]byte{magic[:], format, gtidEvent(1000), gtidEvent(1001)}, nil)
	for name, last := range map[string][]byte{
		"nothing of the body":                          zeroed(gtidEvent(1002), headerSize),
		"half of the number, which is one from before": zeroed(gtidEvent(1002), headerSize+offsetSequence+1),
		"all but the checksum":                         zeroed(gtidEvent(1002), len(gtidEvent(1002))-checksumSize),
		"neither header nor body":                      make([]byte, 60),
		"another length":                               event(typeGTID, make([]byte, maxGTIDEvent+1)),
	} {
		got, err := findTail(bytes.NewReader(append(whole[:len(whole):len(whole)], last...)),
			gtid.MustParse(source+":1-1000"))
		if want := int64(len(whole) - len(gtidEvent(1001))); err != nil || got.Offset != want ||
			!got.Transactions.Equal(gtid.MustParse(source+":1001")) {
			t.Errorf("%s: %+v, %v; the tail begins at %d", name, got, err, want)
		}
	}
	if got, err := findTail(bytes.NewReader(append(logOf(t, 1), event(typeGTID, make([]byte, 46))...)),
		gtid.MustParse(source+":1")); err != nil || got.Offset != 0 {
		t.Errorf("in a log without checksums: %+v, %v", got, err)
	}
}

// zeros are endless.
type zeros struct{}

func (zeros) Read(to []byte) (int, error) { clear(to); return len(to), nil }

// TestATailBehindALongEventIsFound holds for an update of which both images of a row are nearly as long as a packet.
func TestATailBehindALongEventIsFound(t *testing.T) {
	const long = maxEvent + 1
	header := event(31, nil)
	binary.LittleEndian.PutUint32(header[offsetLength:], long)
	before := logOf(t, 1)
	in := io.MultiReader(bytes.NewReader(append(before, header...)), io.LimitReader(zeros{}, long-headerSize),
		bytes.NewReader(transaction(t, 2)))
	got, err := findTail(in, gtid.MustParse(source+":1"))
	if err != nil || got.Offset != int64(len(before))+long || !got.Transactions.Equal(gtid.MustParse(source+":2")) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestCutTailKeepsWhatItCuts(t *testing.T) {
	dir := t.TempDir()
	whole := logOf(t, 1, 2, 3, 4)
	log := filepath.Join(dir, "binlog.000007")
	if err := errors.Join(os.WriteFile(log, whole, 0o600), os.WriteFile(filepath.Join(dir, "binlog.index"),
		[]byte("./binlog.000006\n./binlog.000007\n"), 0o600)); err != nil {
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
		_, _ = findTail(bytes.NewReader(log), gtid.Set{})
	})
}

func TestTimes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, log []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, log, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("binlog.000001", logOf(t, 1, 2, 3))
	write("binlog.000002", logOf(t, 4, 5))
	last := logOf(t, 6, 7)
	write("binlog.000003", last[:len(last)-5]) // its end is being written
	index := write("binlog.index", []byte("./binlog.000001\n./binlog.000002\n./binlog.000003\n"))
	for name, c := range map[string]struct {
		wanted, found string
		first, last   int64
		limit         int64
	}{
		"in two logs":              {":3:5", ":3:5", 1003, 1005, 1 << 20},
		"in the last one":          {":7", ":7", 1007, 1007, 1 << 20},
		"some are nowhere":         {":2-4:99", ":2-4", 1002, 1004, 1 << 20},
		"only as much as it may":   {":1-7", ":6-7", 1006, 1007, int64(len(last)) - 5},
		"nothing is looked for":    {"", "", 0, 0, 1 << 20},
		"what is wanted is absent": {":50", "", 0, 0, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(text string) gtid.Set {
				if text == "" {
					return gtid.Set{}
				}
				return gtid.MustParse(source + text)
			}
			got, err := Times(t.Context(), index, set(c.wanted), c.limit)
			if err != nil {
				t.Fatal(err)
			}
			if !got.Found.Equal(set(c.found)) || c.first != 0 &&
				(got.First.Unix() != c.first || got.Last.Unix() != c.last) {
				t.Errorf("got %s from %d to %d", got.Found, got.First.Unix(), got.Last.Unix())
			}
		})
	}
}
