package instance

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/internal/core"
)

// The dirty pages of a large restore take longer to write than any limit that would be right for a
// small one.
func TestARestoredServerMayWriteForAsLongAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &restorer{log: newLogger(io.Discard, "info")}
		done := make(chan struct{})
		began := time.Now()
		time.AfterFunc(3*time.Hour, func() { close(done) })
		err := r.awaitEnding(t.Context(), done, func() (int64, error) {
			return int64(time.Since(began) / (9 * time.Minute)), nil // a page now and then
		})
		if took := time.Since(began); err != nil || took != 3*time.Hour {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

func TestARestoredServerThatWritesNothingAndStaysIsGivenUpByName(t *testing.T) {
	for name, of := range map[string]struct {
		written     func() (int64, error)
		says, never string
	}{
		"it is seen": {func() (int64, error) { return 17, nil },
			"and has written nothing for 10m0s: look", "not known"},
		"nobody knows": {func() (int64, error) { return 0, errors.New("no such file") },
			"and it is not known whether it writes: no such file: look", "has written"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &restorer{log: newLogger(io.Discard, "info")}
				began := time.Now()
				err := r.awaitEnding(t.Context(), make(chan struct{}), of.written)
				var named *namedError
				if !errors.As(err, &named) || named.Reason != core.InstanceRestoreFailed {
					t.Fatalf("it ends with %v", err)
				}
				if !strings.Contains(named.Message, of.says) || strings.Contains(named.Message, of.never) {
					t.Errorf("it says %q", named.Message)
				}
				if took := time.Since(began); took < endingStall || took > endingStall+2*endingLook {
					t.Errorf("it is given up after %s", took)
				}
			})
		})
	}
}

func TestWhatAProcessHasWrittenIsCounted(t *testing.T) {
	before, err := writtenBy(os.Getpid())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(t.TempDir(), "file"), make([]byte, 1<<20), 0o600))
	after, err := writtenBy(os.Getpid())
	must(t, err)
	if after-before < 1<<20 {
		t.Errorf("of 1 MiB it counts %d bytes", after-before)
	}
	if _, err := writtenBy(-1); err == nil {
		t.Error("of no process something is known")
	}
}
