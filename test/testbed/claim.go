package testbed

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Claim keeps the local Kubernetes of that name for this process, as long as it lives:
// another one would take it down, or wait for what this one does to it.
func Claim(name string) error {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "cnmsql-testbed-"+name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		return fmt.Errorf("the local Kubernetes %q is in use by another run of the tests, the soak or the benchmark "+
			"(%w): wait until that has ended, or choose another name", name, err)
	}
	claims = append(claims, f)
	return nil
}

// claims keeps the locks from being collected as garbage, and given back.
var claims []*os.File
