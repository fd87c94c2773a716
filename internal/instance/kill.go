package instance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// KillServer sends SIGKILL to the mysqld of this Pod, past its manager: a fault to
// try a cluster with. manager is the process id that the manager has.
func KillServer(manager int) error {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return err
	}
	for _, file := range stats {
		pid, parent, _ := readStat(file)
		name, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if parent != manager || strings.TrimSpace(string(name)) != "mysqld" {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing mysqld (pid %d): %w", pid, err)
		}
		return nil
	}
	return errors.New("killing mysqld: the instance manager of this Pod has none running")
}
