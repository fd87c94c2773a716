package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"cnmsql.co/tools/localkube/internal/layout"
)

// DefaultRoot holds the registry, and the clusters that name no directory.
const DefaultRoot = "/var/lib/localkube"

// Registry is a file of clusters, safe for concurrent commands.
type Registry struct {
	Root string
	// Usable refuses an index whose networks the machine already uses.
	Usable func(layout.Cluster) error
}

// Find returns a cluster, and whether there is one.
func (r Registry) Find(name string) (layout.Cluster, bool, error) {
	var found layout.Cluster
	var ok bool
	err := r.locked(func(all []layout.Cluster) ([]layout.Cluster, error) {
		found, ok = find(all, name)
		return all, nil
	})
	return found, ok, err
}

// Claim returns the cluster of a name, made if there is none. Zero values of dir
// and nodes mean: as it is, or the default.
func (r Registry) Claim(name, dir string, nodes int) (layout.Cluster, error) {
	var claimed layout.Cluster
	err := r.locked(func(all []layout.Cluster) ([]layout.Cluster, error) {
		known, ok := find(all, name)
		var err error
		if ok {
			claimed, err = grow(known, dir, nodes)
		} else {
			claimed, err = r.create(all, name, dir, nodes)
		}
		if err != nil {
			return nil, err
		}
		return replace(all, claimed), nil
	})
	return claimed, err
}

// Release forgets a cluster of which nothing is left.
func (r Registry) Release(name string) error {
	return r.locked(func(all []layout.Cluster) ([]layout.Cluster, error) {
		return slices.DeleteFunc(all, func(c layout.Cluster) bool { return c.Name == name }), nil
	})
}

func grow(c layout.Cluster, dir string, nodes int) (layout.Cluster, error) {
	if dir != "" && dir != c.Dir {
		return c,
			fmt.Errorf("cluster %q lives in %s, not in %s: take `localkube down --name %s` first, or another --name",
				c.Name, c.Dir, dir, c.Name)
	}
	if nodes != 0 && nodes < c.Nodes {
		return c, fmt.Errorf("cluster %q has %d nodes and cannot shrink to %d: take it down first",
			c.Name, c.Nodes, nodes)
	}
	c.Nodes = max(c.Nodes, nodes)
	return c, checkNodes(c.Nodes)
}

func (r Registry) create(all []layout.Cluster, name, dir string, nodes int) (layout.Cluster, error) {
	c := layout.Cluster{Name: name, Dir: dir, Nodes: nodes}
	if dir == "" {
		c.Dir = filepath.Join(r.Root, name)
	}
	if nodes == 0 {
		c.Nodes = 3
	}
	if err := checkNodes(c.Nodes); err != nil {
		return c, err
	}
	var refusals []error
	for c.Index = range layout.MaxClusters {
		if slices.ContainsFunc(all, func(o layout.Cluster) bool { return o.Index == c.Index }) {
			continue
		}
		if err := r.Usable(c); err != nil {
			refusals = append(refusals, err)
			continue
		}
		return c, nil
	}
	return c, fmt.Errorf("no free network for cluster %q: %d clusters exist; %w", name, len(all),
		errors.Join(refusals...))
}

func checkNodes(n int) error {
	if n < 1 || n > layout.MaxNodes {
		return fmt.Errorf("%d nodes: use 1 to %d", n, layout.MaxNodes)
	}
	return nil
}

func find(all []layout.Cluster, name string) (layout.Cluster, bool) {
	i := slices.IndexFunc(all, func(c layout.Cluster) bool { return c.Name == name })
	if i < 0 {
		return layout.Cluster{}, false
	}
	return all[i], true
}

func replace(all []layout.Cluster, c layout.Cluster) []layout.Cluster {
	all = slices.DeleteFunc(all, func(o layout.Cluster) bool { return o.Name == c.Name })
	return append(all, c)
}

// locked gives change the clusters and stores what it returns.
func (r Registry) locked(change func([]layout.Cluster) ([]layout.Cluster, error)) error {
	if err := os.MkdirAll(r.Root, 0o755); err != nil {
		return fmt.Errorf("making the registry's directory: %w", err)
	}
	unlock, err := Lock(filepath.Join(r.Root, "clusters.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	all, err := r.read()
	if err != nil {
		return err
	}
	changed, err := change(slices.Clone(all))
	if err != nil || slices.Equal(all, changed) {
		return err
	}
	return r.write(changed)
}

func (r Registry) file() string { return filepath.Join(r.Root, "clusters.json") }

func (r Registry) read() ([]layout.Cluster, error) {
	data, err := os.ReadFile(r.file())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []layout.Cluster
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the registry %s: %w; repair it or, if no cluster is left, remove it",
			r.file(), err)
	}
	return all, nil
}

// write replaces the file whole: a torn registry would lose clusters.
func (r Registry) write(all []layout.Cluster) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	next := r.file() + ".new"
	if err := os.WriteFile(next, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, r.file())
}

// Lock waits until no other localkube command holds the file.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
