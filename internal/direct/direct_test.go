package direct

import (
	"bytes"
	"math/rand/v2"
	"os"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made is a file that is open, in a directory of the test.
func made(t *testing.T, size int64) (*os.Root, *File) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { must(t, root.Close()) })
	f, err := root.Create("file")
	must(t, err)
	return root, Of(root, "file", f, size)
}

func TestWhatGoesEitherWayMakesOneFile(t *testing.T) {
	root, f := made(t, From)
	if f.past == nil {
		t.Log("this file system knows no writes past the page cache")
	}
	want := make([]byte, 64*unit+3)
	_, _ = rand.NewChaCha8([32]byte{3}).Read(want)
	write := func(from, to int64) {
		t.Helper()
		n, err := f.WriteAt(want[from:to], from)
		if must(t, err); n != int(to-from) {
			t.Errorf("%d bytes were written of %d", n, to-from)
		}
	}
	for at := int64(0); at < 32*unit; at += 8 * unit {
		write(at, at+4*unit)              // both on a unit
		write(at+4*unit, at+6*unit+7)     // one is begun,
		write(at+6*unit+7, at+8*unit)     // and ended
		write(at+1, at+unit+1)            // over what was
		write(at+7*unit, at+8*unit)       // again
		write(at+2*unit-1, at+3*unit+100) // across two
	}
	shifted := make([]byte, 32*unit+1)[1:] // memory that no device takes from
	copy(shifted, want[32*unit:])
	n, err := f.WriteAt(shifted, 32*unit)
	if must(t, err); n != len(shifted) {
		t.Errorf("%d bytes were written of %d", n, len(shifted))
	}
	write(64*unit, 64*unit+3)
	must(t, f.Sync())
	must(t, f.Close())
	got, err := root.ReadFile("file")
	if must(t, err); !bytes.Equal(got, want) {
		t.Errorf("the file of %d bytes is not the %d that were written", len(got), len(want))
	}
}

func TestSmallFilesAreOpenedOnce(t *testing.T) {
	_, f := made(t, From-1)
	if f.past != nil {
		t.Error("it is open twice")
	}
	must(t, f.Close())
}
