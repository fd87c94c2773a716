package main

import (
	"bufio"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSizesAreReadAsTheyAreWritten(t *testing.T) {
	for text, want := range map[string]bytesFlag{"5GiB": 5 << 30, "128MiB": 128 << 20, "4097": 4097} {
		var b bytesFlag
		if err := b.Set(text); err != nil || b != want || b.String() != text {
			t.Errorf("%s is read as %d, %v, and written as %s", text, b, err, b.String())
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "0", "5TiB", "1.5GiB", "99999999999GiB"} {
		if b := new(bytesFlag); b.Set(text) == nil {
			t.Errorf("%q is read as %d", text, *b)
		}
	}
}

func TestRowsAreAsLongAsIsCounted(t *testing.T) {
	lines := bufio.NewScanner(&rowReader{source: rand.New(rand.NewPCG(1, 1)), left: 50})
	n := 0
	for ; lines.Scan(); n++ {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 || len(fields[1]) > 800 || len(fields[2]) > 250 || len(lines.Text()) < rowLen*9/10 ||
			len(lines.Text()) > rowLen {
			t.Fatalf("a row of %d bytes: %q", len(lines.Text()), lines.Text())
		}
	}
	if n != 50 {
		t.Errorf("%d rows, and not 50", n)
	}
}

func TestRowsAreTheSameInEveryRun(t *testing.T) {
	var read [2]string
	for i := range read {
		text, _ := io.ReadAll(&rowReader{source: rand.New(rand.NewPCG(1, 2)), left: 10})
		read[i] = string(text)
	}
	if read[0] != read[1] || read[0] == "" {
		t.Errorf("%q is not %q", read[0], read[1])
	}
}

func TestASizeIsOfAllFilesBelow(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "one", "b/c": "three", "b/d/e": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := sizeOf(dir); err != nil || n != 8 {
		t.Errorf("%d, %v", n, err)
	}
	if err := readAll(filepath.Join(dir, "none")); err == nil {
		t.Error("what is not there is read")
	}
}
