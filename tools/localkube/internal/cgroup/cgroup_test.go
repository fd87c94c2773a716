package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"cnmsql.co/tools/localkube/internal/mounts"
)

func fromText(t *testing.T, mountinfo string) Host {
	t.Helper()
	h, err := FromMounts(mounts.Parse(mountinfo))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHybridHostUsesV1AndCleansV2(t *testing.T) {
	h := fromText(t, `1 0 0:1 / /sys/fs/cgroup rw - tmpfs tmpfs rw
2 1 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
3 1 0:3 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer
4 1 0:4 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`)
	if h.V2 || !slices.Equal(h.Roots, []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/freezer"}) {
		t.Errorf("%+v", h)
	}
	if !slices.Contains(h.Trees, "/sys/fs/cgroup/unified") {
		t.Errorf("leftovers in the v2 tree would stay: %+v", h)
	}
}

func TestPureV2Host(t *testing.T) {
	h := fromText(t, "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
	if !h.V2 || !slices.Equal(h.Roots, []string{"/sys/fs/cgroup"}) {
		t.Errorf("%+v", h)
	}
}

func TestNoControlGroupsIsAnError(t *testing.T) {
	if _, err := FromMounts(nil); err == nil {
		t.Error("no error")
	}
}

func TestProcsFilesAreOfEveryTree(t *testing.T) {
	h := Host{Roots: []string{"/r/cpu", "/r/pids"}}
	want := []string{"/r/cpu/localkube/a/cgroup.procs", "/r/pids/localkube/a/cgroup.procs"}
	if got := h.ProcsFiles("/localkube/a"); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

// fakeTree has plain directories for groups, which is enough for what does not
// need the kernel.
func fakeTree(t *testing.T, files map[string]string) Host {
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Host{Roots: []string{root}, Trees: []string{root}}
}

func TestPidsAreThoseOfAllGroupsBelow(t *testing.T) {
	h := fakeTree(t, map[string]string{
		"localkube/a/cgroup.procs":              "",
		"localkube/a/node1/pods/x/cgroup.procs": "12\n13\n",
		"localkube/a/node1/cgroup.procs":        "11\n",
		"localkube/b/cgroup.procs":              "99\n",
	})
	got := h.Pids("/localkube/a")
	slices.Sort(got)
	if !slices.Equal(got, []int{11, 12, 13}) {
		t.Errorf("got %v", got)
	}
}

func TestCreateFillsInCpusets(t *testing.T) {
	h := fakeTree(t, map[string]string{
		"cpuset.cpus": "0-1\n", "cpuset.mems": "0\n",
		"localkube/cpuset.cpus": "", "localkube/cpuset.mems": "",
	})
	if err := h.Create("/localkube"); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(h.Roots[0], "localkube/cpuset.cpus"))
	if string(got) != "0-1\n" {
		t.Errorf("cpuset.cpus is %q", got)
	}
}

func TestCreateHandsDownV2Controllers(t *testing.T) {
	h := fakeTree(t, map[string]string{
		"cgroup.controllers": "cpu", "cgroup.subtree_control": "",
		"localkube/cgroup.controllers": "cpu", "localkube/cgroup.subtree_control": "",
		"localkube/a/cgroup.subtree_control": "",
	})
	h.V2 = true
	if err := h.Create("/localkube/a"); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"cgroup.subtree_control":             "+cpu",
		"localkube/cgroup.subtree_control":   "+cpu",
		"localkube/a/cgroup.subtree_control": "", // or no process could enter it
	} {
		if got, _ := os.ReadFile(filepath.Join(h.Roots[0], file)); string(got) != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}
