package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const tested = `package x
import "testing"
func TestGood(t *testing.T) { t.Log("quiet") }
func TestBad(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("loud") }) }
func TestLeftOut(t *testing.T) { t.Skip("not here") }
func TestSteps(t *testing.T) { t.Run("One", func(t *testing.T) { t.Skip("not now") }) }
`

// TestShowsWhatGoTestShowsAndNotesWhatWasSkipped runs a real go test.
func TestShowsWhatGoTestShowsAndNotesWhatWasSkipped(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n\ngo 1.24\n", "x_test.go": tested} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("go", withJSON([]string{"-C", dir, "-count=1", "./..."})...).Output()
	if err == nil {
		t.Error("a test fails, and go test -json does not")
	}
	var shown bytes.Buffer
	notes := string(relay(bytes.NewReader(out), &shown, false))
	for word, is := range map[string]bool{"loud": true, "--- FAIL: TestBad": true, "FAIL\tx": true, "quiet": false,
		"TestLeftOut": false, "PASS": false} {
		if strings.Contains(shown.String(), word) != is {
			t.Errorf("that it shows %q should be %t:\n%s", word, is, shown.String())
		}
	}
	got, _, _ := strings.Cut(say(notes), "\n")
	if want := "skipped tests: 2: x.TestLeftOut x.TestSteps/One"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestWhatWasPlayedOnceIsNotSkipped(t *testing.T) {
	const unit, real = "skip cnmsql.co/a.TestA\nskip cnmsql.co/a.TestB\n", "pass cnmsql.co/a.TestA\n"
	for notes, want := range map[string]string{
		unit:        "skipped tests: 2: a.TestA a.TestB",
		unit + real: "skipped tests: 1: a.TestB",
		real + unit: "skipped tests: 1: a.TestB",
		real:        "skipped tests: none",
	} {
		if got, _, _ := strings.Cut(say(notes), "\n"); got != want {
			t.Errorf("of %q it says %q, want %q", notes, got, want)
		}
	}
}

func TestTellsWhereTheTimeWent(t *testing.T) {
	const notes = "pass cnmsql.co/a.TestA 3.0\nskip cnmsql.co/a.TestB 0.0\npackage cnmsql.co/a 9.0\n" +
		"package cnmsql.co/b 90.2\npass cnmsql.co/a.TestB/One 4.4\npackage cnmsql.co/a 2.0\npackage cnmsql.co/c 0.4\n"
	const want = "skipped tests: 1: a.TestB\nlongest packages: b 90 s, a 9 s\n" +
		"longest tests: a.TestB/One 4 s, a.TestA 3 s"
	if got := say(notes); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}
