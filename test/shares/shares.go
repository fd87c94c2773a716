package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// sharesIn is where the scheduler is told who shares the cores: of the first version of control
// groups, or of the second.
var sharesIn = []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}

// share is a part of the machine's cores for a server without an operator, as a node of the local
// Kubernetes has one. Without it, each thread of the server would count as much as all nodes of
// the local Kubernetes together.
type share struct{ dir string }

// newShare makes one beside those of other names.
func newShare(name string) (*share, error) {
	for _, root := range sharesIn {
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil {
			continue
		}
		s := &share{filepath.Join(root, "loadbench", name)}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return nil, fmt.Errorf("a share of the cores: %w", err)
		}
		// The first version has no such file, and shares without being told.
		_ = os.WriteFile(filepath.Join(root, "loadbench", "cgroup.subtree_control"), []byte("+cpu"), 0o644)
		return s, nil
	}
	return nil, errors.New("control groups of the CPU are in none of /sys/fs/cgroup/cpu and /sys/fs/cgroup: mount them")
}

// take puts a process into it.
func (s *share) take(pid int) error {
	err := os.WriteFile(filepath.Join(s.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
	if err != nil {
		return fmt.Errorf("giving a server its share of the cores: %w", err)
	}
	return nil
}

// end removes it, once its processes have ended, which takes the kernel a moment.
func (s *share) end() {
	for range 50 {
		if err := os.Remove(s.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.Remove(filepath.Dir(s.dir)) // if it was the last
}
