package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnmsql.co/tools/localkube/internal/mounts"
)

// Host is how this machine mounts its control groups.
type Host struct {
	Roots []string // one for each v1 controller, or the one of v2
	V2    bool
	// Trees are the roots and, on a hybrid host, the v2 tree without controllers:
	// runc makes groups there that nobody asked for.
	Trees []string
}

// Detect reads the mounts of this machine.
func Detect() (Host, error) {
	all, err := mounts.Read()
	if err != nil {
		return Host{}, err
	}
	return FromMounts(all)
}

// FromMounts chooses v1 wherever a controller is mounted that way: on a hybrid
// host the v2 tree has no controllers, and runc and the kubelet take v1 as well.
func FromMounts(all []mounts.Mount) (Host, error) {
	var v1, v2 []string
	for _, m := range all {
		switch {
		case !strings.HasPrefix(m.Point, "/sys/fs/cgroup") || slices.Contains(v1, m.Point):
		case m.FSType == "cgroup":
			v1 = append(v1, m.Point)
		case m.FSType == "cgroup2":
			v2 = append(v2, m.Point)
		}
	}
	if len(v1) > 0 {
		return Host{Roots: v1, Trees: append(slices.Clone(v1), v2...)}, nil
	}
	if len(v2) > 0 {
		return Host{Roots: v2[:1], V2: true, Trees: v2[:1]}, nil
	}
	return Host{}, errors.New("no control groups are mounted under /sys/fs/cgroup: mount cgroup2 there (`mount -t " +
		"cgroup2 none /sys/fs/cgroup`)")
}

// Create makes a group in every tree, ready for processes and for groups below.
func (h Host) Create(path string) error {
	for _, root := range h.Roots {
		dir := root
		for _, part := range strings.Split(strings.Trim(path, "/"), "/") {
			if h.V2 {
				if err := delegate(dir); err != nil {
					return err
				}
			}
			parent := dir
			dir = filepath.Join(dir, part)
			if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("making a control group: %w", err)
			}
			if err := inheritCpuset(parent, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

// inheritCpuset fills in what a v1 cpuset group is made without, and without
// which no process can enter it.
func inheritCpuset(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		own, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil || strings.TrimSpace(string(own)) != "" {
			continue
		}
		value, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return fmt.Errorf("copying %s to control group %s: %w", file, dir, err)
		}
	}
	return nil
}

// delegate hands the v2 controllers of a group to the groups below it. A
// controller that the kernel refuses is left out; the kubelet says what it
// misses.
func delegate(dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("reading the controllers of %s: %w", dir, err)
	}
	for _, c := range strings.Fields(string(data)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644)
	}
	return nil
}

// ProcsFiles are the files a process writes its id to in order to join a group.
func (h Host) ProcsFiles(path string) []string {
	files := make([]string, len(h.Roots))
	for i, root := range h.Roots {
		files[i] = filepath.Join(root, path, "cgroup.procs")
	}
	return files
}

// Remove removes a group and all below it. Processes must have left.
func (h Host) Remove(path string) error {
	var failed []error
	for _, root := range h.Trees {
		dirs := below(filepath.Join(root, path))
		for _, d := range slices.Backward(dirs) {
			if err := os.Remove(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// RemoveIfEmpty removes one group that others may still use.
func (h Host) RemoveIfEmpty(path string) {
	for _, root := range h.Trees {
		_ = os.Remove(filepath.Join(root, path))
	}
}

// below lists a group and the groups in it, parents first.
func below(dir string) []string {
	var dirs []string
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, p)
		}
		return nil
	})
	return dirs
}
