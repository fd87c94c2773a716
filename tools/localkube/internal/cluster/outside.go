package cluster

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cnmsql.co/tools/localkube/internal/layout"
)

// filesOutside are what the runtime of a node leaves where all nodes share.
func filesOutside(n layout.Node) []string {
	files := shimSockets(n)
	sandboxes, _ := os.ReadDir(n.Sandboxes())
	for _, s := range sandboxes {
		cached, _ := filepath.Glob("/var/lib/cni/results/*-" + s.Name() + "-*")
		files = append(files, cached...)
	}
	return files
}

// shimSockets are where the containers' shims listen, or did: outside of the
// node's directories, named only in each container's bundle, and noted.
func shimSockets(n layout.Node) []string {
	files, _ := filepath.Glob(filepath.Join(n.ContainerdState(), "io.containerd.runtime.v2.task", "*", "*", "address"))
	known := map[string]bool{}
	for _, f := range append(files, notedShims(n)) {
		data, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(data)) {
			if path := strings.TrimPrefix(word, "unix://"); strings.HasPrefix(path, "/run/containerd/s/") {
				known[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(known))
}

// noteShims remembers the sockets of shims over a restart of containerd, which
// forgets a container whose shim has died, but leaves the shim's socket.
func noteShims(n layout.Node) error {
	sockets := shimSockets(n)
	return os.WriteFile(notedShims(n), []byte(strings.Join(sockets, "\n")), 0o644)
}

func notedShims(n layout.Node) string { return filepath.Join(n.RunDir(), "shims") }
