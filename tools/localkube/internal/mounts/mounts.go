package mounts

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Mount is one line of mountinfo.
type Mount struct {
	Point  string
	FSType string
	Super  string // the file system's own options
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// Parse reads the form of /proc/self/mountinfo, oldest mount first.
func Parse(mountinfo string) []Mount {
	var all []Mount
	for line := range strings.Lines(mountinfo) {
		before, after, ok := strings.Cut(strings.TrimSpace(line), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		all = append(all, Mount{Point: unescape.Replace(left[4]), FSType: right[0], Super: right[2]})
	}
	return all
}

// Read returns the mounts of this process.
func Read() ([]Mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return Parse(string(data)), nil
}

// Under returns the mount points at or below the directories, in the order in
// which they can be unmounted: the newest first.
func Under(all []Mount, dirs ...string) []string {
	var points []string
	for _, m := range slices.Backward(all) {
		for _, d := range dirs {
			if m.Point == d || strings.HasPrefix(m.Point, strings.TrimSuffix(d, "/")+"/") {
				points = append(points, m.Point)
				break
			}
		}
	}
	return points
}

// Unmount removes every mount at or below the directories. It does so lazily:
// a process that still has a file open must not keep the mount in the tree. It
// looks twice, since mounts can be stacked, and fails if any is left, because
// the caller is about to remove the directories.
func Unmount(dirs ...string) error {
	var last error
	for range 3 {
		all, err := Read()
		if err != nil {
			return err
		}
		points := Under(all, dirs...)
		if len(points) == 0 {
			return nil
		}
		for _, p := range points {
			if err := syscall.Unmount(p, syscall.MNT_DETACH); err != nil {
				last = fmt.Errorf("unmounting %s: %w", p, err)
			}
		}
	}
	all, err := Read()
	if err != nil {
		return err
	}
	if left := Under(all, dirs...); len(left) > 0 {
		return fmt.Errorf("still mounted: %s (last error: %v); unmount with `umount -l` and repeat",
			strings.Join(left, ", "), last)
	}
	return nil
}
