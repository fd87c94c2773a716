package endmark

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// marked are the streams of a command that writes and complains.
func marked(t *testing.T, writes, complains string) (out, complaints *bytes.Buffer) {
	t.Helper()
	out, complaints = &bytes.Buffer{}, bytes.NewBufferString(complains)
	if err := Write(out, complaints, func(out io.Writer) error {
		_, err := io.Copy(out, iotest.HalfReader(strings.NewReader(writes)))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return out, complaints
}

func TestTheMarkIsTakenOutHoweverItArrives(t *testing.T) {
	for _, complains := range []string{"", "Warning: a password\n", "no line", "\x1e", "\x1ecnmsql-end x\n",
		"\x1ecnmsql-end 1", "\x1ecnmsql-end +5\n", strings.Repeat("\x1e", 2*longest)} {
		out, complaints := marked(t, "INSERT", complains)
		for name, read := range map[string]func(io.Reader) io.Reader{"at once": same,
			"byte by byte": iotest.OneByteReader} {
			var shown bytes.Buffer
			f := NewFilter(&shown)
			if _, err := io.Copy(struct{ io.Writer }{f}, read(bytes.NewReader(complaints.Bytes()))); err != nil {
				t.Fatal(err)
			}
			if f.Close() != nil || shown.String() != complains {
				t.Errorf("%q, %s: shown is %q", complains, name, shown.String())
			}
			if n := int64(out.Len()); !f.Ended(n) || f.Ended(n-1) {
				t.Errorf("%q, %s: the end after %d bytes: %t, after %d: %t", complains, name, n, f.Ended(n), n-1,
					f.Ended(n-1))
			}
		}
	}
}

func TestWithoutTheMarkNothingHasEnded(t *testing.T) {
	var shown bytes.Buffer
	f := NewFilter(&shown)
	_, complaints := marked(t, "", "late\n")
	text := complaints.String()
	if _, err := io.WriteString(f, text[:len(text)-1]); err != nil {
		t.Fatal(err)
	}
	if f.Ended(0) {
		t.Error("half a mark is an end")
	}
	if f.Close() != nil || shown.String() != text[:len(text)-1] {
		t.Errorf("shown is %q", shown.String())
	}
}

func TestACommandThatFailsWritesNoMark(t *testing.T) {
	var out, complaints bytes.Buffer
	fails := errors.New("no such table")
	if err := Write(&out, &complaints, func(io.Writer) error { return fails }); !errors.Is(err, fails) {
		t.Error(err)
	}
	if complaints.Len() > 0 {
		t.Errorf("it says %q", complaints.String())
	}
}

func same(r io.Reader) io.Reader { return r }
