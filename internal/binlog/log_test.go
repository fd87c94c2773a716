package binlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/internal/gtid"
)

func opened(t *testing.T, log []byte) (*Log, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "binlog.000001")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, path
}

// TestALogOfAServerIsReadTransactionByTransaction, as it grows byte by byte.
func TestALogOfAServerIsReadTransactionByTransaction(t *testing.T) {
	whole := fileOf(t, "writes.bin")
	var previous, all gtid.Set
	for n := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := OpenLog(path)
		if errors.Is(err, ErrTorn) || errors.Is(err, ErrNotABinlog) && n < 4 {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		previous, all = l.Previous, readAll(t, l)
		_ = l.Close()
	}
	if want := gtid.MustParse(real + ":1-14"); !want.Contains(all) || !all.Contains(gtid.MustParse(real+":1")) ||
		!previous.IsEmpty() {
		t.Errorf("it has %s, behind %s", all, previous)
	}
}

func readAll(t *testing.T, l *Log) (all gtid.Set) {
	t.Helper()
	for {
		tr, err := l.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, ErrTorn) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if !tr.Origin.Equal(tr.Committed) { // it was written here
			t.Fatalf("%s was committed %s, and at its origin %s", tr.ID, tr.Committed, tr.Origin)
		}
		if tr.Committed.Year() < 2020 || tr.Committed.After(time.Now().AddDate(1, 0, 0)) {
			t.Fatalf("%s was committed %s", tr.ID, tr.Committed)
		}
		all = all.Union(tr.ID)
		l.Pass(tr)
	}
}

func TestALogThatIsMadeOfAnotherIsOne(t *testing.T) {
	source, _ := opened(t, fileOf(t, "writes.bin"))
	for _, text := range []string{"", real + ":1-3:7", real + ":5," +
		"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100:200-300"} {
		before := gtid.MustParse(text)
		begin, err := source.Begin(before)
		if err != nil {
			t.Fatal(err)
		}
		made, _ := opened(t, begin)
		if !made.Previous.Equal(before) || made.ServerID() != source.ServerID() {
			t.Errorf("behind %s it says %s", before, made.Previous)
		}
		s, err := NewStream(bytes.NewReader(begin))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Next(); err != nil {
			t.Error(err)
		}
	}
	if _, err := source.Begin(gtid.MustParse(real + ":tag:1")); !errors.Is(err, ErrTagged) {
		t.Errorf("with tags: %v", err)
	}
}

func TestAStreamNoticesWhatIsDamaged(t *testing.T) {
	whole := fileOf(t, "writes.bin")
	count := func(log []byte) (n int, err error) {
		s, err := NewStream(bytes.NewReader(log))
		for err == nil {
			if _, err = s.Next(); err == nil {
				n++
			}
		}
		return n, err
	}
	n, err := count(whole)
	if !errors.Is(err, io.EOF) || n < 5 {
		t.Fatalf("%d events: %v", n, err)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if _, err := count(bad); errors.Is(err, io.EOF) {
			t.Errorf("byte %d is not noticed", i)
		}
	}
	if _, err := count(whole[:len(whole)-1]); !errors.Is(err, ErrTorn) {
		t.Errorf("a short one: %v", err)
	}
}

func FuzzLog(f *testing.F) {
	whole, err := os.ReadFile("testdata/writes.bin")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	path := filepath.Join(f.TempDir(), "log")
	f.Fuzz(func(t *testing.T, log []byte) {
		if err := os.WriteFile(path, log, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := OpenLog(path); err == nil {
			for tr, err := l.Next(); err == nil; tr, err = l.Next() {
				l.Pass(tr)
			}
			_ = l.Close()
		}
		if s, err := NewStream(bytes.NewReader(log)); err == nil {
			for err == nil {
				_, err = s.Next()
			}
		}
	})
}
