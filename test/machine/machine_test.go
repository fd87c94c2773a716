package machine

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFieldOfAFileIsFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "status")
	if err := os.WriteFile(file, []byte("VmPeak:\t  9 kB\nVmHWM:\t  524288 kB\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Field(file, "VmHWM"); got != "524288 kB" || Field(file, "VmSwap") != "" {
		t.Errorf("%q", got)
	}
	if got := gib("25165824 kB"); got != "24" {
		t.Errorf("%q", got)
	}
}
