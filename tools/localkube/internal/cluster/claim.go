package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/registry"
)

// claim checks the directory before it takes an index: a refused command must
// leave nothing behind.
func claim(o Options, out io.Writer) (*Cluster, error) {
	if err := layout.CheckName(o.Name); err != nil {
		return nil, err
	}
	dir, err := resolve(o.Dir, filepath.Join(registry.DefaultRoot, o.Name))
	if err != nil {
		return nil, err
	}
	if _, known, err := Registry().Find(o.Name); err != nil {
		return nil, err
	} else if !known {
		if err := checkDir(dir, o.Name); err != nil {
			return nil, err
		}
	}
	if o.Dir != "" {
		o.Dir = dir
	}
	plan, err := Registry().Claim(o.Name, o.Dir, o.Nodes)
	if err != nil {
		return nil, err
	}
	if err := markDir(plan.Dir, plan.Name); err != nil {
		return nil, err
	}
	return newCluster(plan, o.Cache, out)
}

// marker is the file by which `down` knows a directory as its own.
const marker = ".localkube"

// checkDir refuses a directory in which somebody else has something.
func checkDir(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(entries) == 0) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking into the cluster's directory: %w", err)
	}
	owner, err := os.ReadFile(filepath.Join(dir, marker))
	if err != nil {
		return fmt.Errorf("%s is not empty and not made by localkube: choose another --dir, or empty it", dir)
	}
	if strings.TrimSpace(string(owner)) != name {
		return fmt.Errorf("%s belongs to the cluster %q: choose another --dir", dir, strings.TrimSpace(string(owner)))
	}
	return nil
}

// resolve makes a directory absolute and free of links: mounts are found by the
// path the kernel tells, and other commands start elsewhere.
func resolve(dir, otherwise string) (string, error) {
	if dir == "" {
		return otherwise, nil
	}
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(absolute); err == nil {
		return real, nil
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(absolute))
	if err != nil {
		return "", fmt.Errorf("the cluster's directory needs a parent: %w", err)
	}
	return filepath.Join(parent, filepath.Base(absolute)), nil
}

func markDir(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the cluster's directory: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, marker), []byte(name+"\n"), 0o644)
}
