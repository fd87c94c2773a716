package mounts

import (
	"slices"
	"testing"
)

const sample = `27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:7 master:1 - cgroup cgroup rw,cpu
90 27 0:50 / /run/localkube/a/node1/containerd/one/rootfs rw - overlay overlay rw
91 27 0:51 / /run/localkube/a/node1/containerd/with\040space rw - tmpfs shm rw
92 90 0:52 / /run/localkube/a/node1/containerd/one/rootfs/proc rw - proc proc rw
93 27 0:53 / /run/localkube/a-b/node1/x rw - tmpfs shm rw
broken line
`

func TestNewestMountIsUnmountedFirst(t *testing.T) {
	got := Under(Parse(sample), "/run/localkube/a")
	want := []string{
		"/run/localkube/a/node1/containerd/one/rootfs/proc",
		"/run/localkube/a/node1/containerd/with space",
		"/run/localkube/a/node1/containerd/one/rootfs",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestMountsOfAClusterWithALongerNameAreLeft(t *testing.T) {
	if slices.Contains(Under(Parse(sample), "/run/localkube/a"), "/run/localkube/a-b/node1/x") {
		t.Error("cluster a would unmount what a-b has")
	}
}

func TestFileSystemTypeIsReadAfterOptionalFields(t *testing.T) {
	m := Parse(sample)[1]
	if m.FSType != "cgroup" || m.Super != "rw,cpu" {
		t.Errorf("%+v", m)
	}
}
