// Package shares gives processes parts of the machine's cores, as Kubernetes gives them to Pods:
// by control groups. Without one, each thread of a server counts as much as all Pods together.
package shares

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// version is one of the two versions of control groups.
type version struct {
	root string // where the scheduler is told who shares the cores
	file string // of a group, which has its weight
	// weighs is what file has for a weight as the first version counts it.
	weighs func(weight int) int
}

var versions = []version{
	{"/sys/fs/cgroup/cpu", "cpu.shares", func(weight int) int { return weight }},
	// As Kubernetes does it: 2 is 1, and 262144 is 10000.
	{"/sys/fs/cgroup", "cpu.weight", func(weight int) int { return 1 + (weight-2)*9999/262142 }},
}

// Share is a part of the machine's cores.
type Share struct {
	dir string
	of  version
}

// New makes the share of a name beside the others of a group, all of which weigh the same.
func New(group, name string) (*Share, error) {
	for _, v := range versions {
		if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
			continue
		}
		s := &Share{filepath.Join(v.root, group, name), v}
		if err := os.MkdirAll(s.dir, 0o755); err != nil {
			return nil, fmt.Errorf("a share of the cores: %w", err)
		}
		// The first version has no such file, and shares without being told.
		_ = os.WriteFile(filepath.Join(v.root, group, "cgroup.subtree_control"), []byte("+cpu"), 0o644)
		return s, nil
	}
	return nil, errors.New("control groups of the CPU are in none of /sys/fs/cgroup/cpu and /sys/fs/cgroup: mount them")
}

// Weigh has the share weigh as much as a Pod that requests so many thousandths of a core.
func (s *Share) Weigh(millicores int) error {
	weight := s.of.weighs(max(2, millicores*1024/1000))
	err := os.WriteFile(filepath.Join(s.dir, s.of.file), []byte(strconv.Itoa(weight)), 0o644)
	if err != nil {
		return fmt.Errorf("weighing a share of the cores: %w", err)
	}
	return nil
}

// Take puts a process into it, with all its threads and those that it makes.
func (s *Share) Take(pid int) error { return Enter(s.Path(), pid) }

// Path is by which another process finds it.
func (s *Share) Path() string { return s.dir }

// Enter puts a process into the share of a path.
func Enter(path string, pid int) error {
	err := os.WriteFile(filepath.Join(path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644)
	if err != nil {
		return fmt.Errorf("giving a process its share of the cores: %w", err)
	}
	return nil
}

// End removes it, once its processes have ended, which takes the kernel a moment.
func (s *Share) End() {
	for range 50 {
		if err := os.Remove(s.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	_ = os.Remove(filepath.Dir(s.dir)) // if it was the last
}
