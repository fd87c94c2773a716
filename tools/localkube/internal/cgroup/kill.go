package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Pids are the processes in a group and the groups below, in any tree.
func (h Host) Pids(path string) []int {
	seen := map[int]bool{}
	var pids []int
	for _, root := range h.Trees {
		for _, dir := range below(filepath.Join(root, path)) {
			for _, pid := range readPids(filepath.Join(dir, "cgroup.procs")) {
				if !seen[pid] {
					seen[pid] = true
					pids = append(pids, pid)
				}
			}
		}
	}
	return pids
}

func readPids(file string) []int {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var pids []int
	for _, word := range strings.Fields(string(data)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Freeze stops every process of a group in the same instant, so that none sees
// another die.
func (h Host) Freeze(path string) { h.setFrozen(path, true) }

// Thaw lets them run on; killed ones die now.
func (h Host) Thaw(path string) { h.setFrozen(path, false) }

func (h Host) setFrozen(path string, frozen bool) {
	for _, root := range h.Roots {
		f := freezerOf(filepath.Join(root, path), h.V2)
		if _, err := os.Stat(f.control); err != nil {
			continue // a v1 controller other than the freezer
		}
		value, want := f.thaw, f.thawed
		if frozen {
			value, want = f.freeze, f.frozen
		}
		_ = os.WriteFile(f.control, []byte(value), 0o644)
		waitForLine(f.state, want)
	}
}

// freezer tells what to write where, and which line says that it is done.
type freezer struct {
	control, freeze, thaw string
	state, frozen, thawed string
}

func freezerOf(dir string, v2 bool) freezer {
	if v2 {
		return freezer{
			control: filepath.Join(dir, "cgroup.freeze"), freeze: "1", thaw: "0",
			state: filepath.Join(dir, "cgroup.events"), frozen: "frozen 1", thawed: "frozen 0",
		}
	}
	file := filepath.Join(dir, "freezer.state")
	return freezer{
		control: file, freeze: "FROZEN", thaw: "THAWED",
		state: file, frozen: "FROZEN", thawed: "THAWED",
	}
}

// waitForLine gives up after a second: freezing is for neatness, and a process
// in uninterruptible sleep would hold it up for ever.
func waitForLine(file, want string) {
	for range 100 {
		data, err := os.ReadFile(file)
		if err != nil || slices.Contains(strings.Split(string(data), "\n"), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Kill ends every process of a group with SIGKILL and returns when none is left.
// It repeats, because a process may be born while the list is read.
func (h Host) Kill(path string) error {
	deadline := time.Now().Add(20 * time.Second)
	for {
		pids := h.Pids(path)
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf(
				"control group %s: processes %v survive SIGKILL; look at /proc/<pid>/stack for what they wait",
				path, pids)
		}
		h.Freeze(path)
		for _, pid := range h.Pids(path) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				h.Thaw(path)
				return fmt.Errorf("killing process %d of control group %s: %w", pid, path, err)
			}
		}
		h.Thaw(path)
		time.Sleep(20 * time.Millisecond)
	}
}
