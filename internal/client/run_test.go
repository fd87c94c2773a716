package client

import (
	"bytes"
	"errors"
	"testing"

	"cnmsql.co/internal/endmark"
)

// ran runs a script of the shell as a program of the image, and returns what it wrote and complained.
func ran(t *testing.T, args ...string) (out, complaints string, err error) {
	t.Helper()
	var written, complained bytes.Buffer
	err = runMarked(t.Context(), "/bin/sh", append([]string{"sh", "-c"}, args...), &written, &complained)
	return written.String(), complained.String(), err
}

func TestAProgramThatSucceedsTellsHowMuchItWrote(t *testing.T) {
	out, complaints, err := ran(t, "echo INSERT; echo careful >&2")
	if err != nil || out != "INSERT\n" {
		t.Fatalf("%q, %v", out, err)
	}
	var shown bytes.Buffer
	f := endmark.NewFilter(&shown)
	if _, err := f.Write([]byte(complaints)); err != nil {
		t.Fatal(err)
	}
	if shown.String() != "careful\n" || !f.Ended(int64(len(out))) {
		t.Errorf("it complains %q", complaints)
	}
}

func TestAProgramThatFailsKeepsItsExitCode(t *testing.T) {
	for script, code := range map[string]int{"echo no such table >&2; exit 3": 3,
		"echo no such table >&2; kill -9 $$": 137} {
		_, complaints, err := ran(t, script)
		var ended *Ended
		if !errors.As(err, &ended) || ended.Code != code || complaints != "no such table\n" {
			t.Errorf("%s: %v, and it complains %q", script, err, complaints)
		}
	}
}

// The file is in memory, and the child's by inheritance.
func TestAChildReadsItsOptions(t *testing.T) {
	path, err := optionFile("[client]\n")
	if err != nil {
		t.Fatal(err)
	}
	if out, complaints, err := ran(t, `cat "$0"`, path); err != nil || out != "[client]\n" {
		t.Errorf("%q, %q, %v", out, complaints, err)
	}
}
