package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/mounts"
	"cnmsql.co/tools/localkube/internal/network"
)

// Down removes everything a cluster made, also a half-made one. A cluster that
// does not exist is down already.
func Down(ctx context.Context, name, cache string, out io.Writer) error {
	if err := layout.CheckName(name); err != nil {
		return err
	}
	unlock, err := lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	plan, ok, err := Registry().Find(name)
	if err != nil {
		return err
	}
	if !ok {
		fmt.Fprintf(out, "there is no cluster %q: nothing to do\n", name)
		return nil
	}
	c, err := newCluster(plan, cache, out)
	if err != nil {
		return err
	}
	return c.step(fmt.Sprintf("cluster %q removed", name), func() error { return c.remove(ctx) })
}

// remove gives the index back last: until then nobody else takes the addresses.
func (c *Cluster) remove(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		c.killAll, c.removeVolatile, c.removeNetwork, c.removeDir,
	} {
		if err := part(ctx); err != nil {
			return fmt.Errorf("%w\nwhat to do: repeat `localkube down --name %s`, it goes on from here", err, c.Name)
		}
	}
	return Registry().Release(c.Name)
}

// killAll finds processes twice: by control group, and by recorded id in case
// the group was lost.
func (c *Cluster) killAll(context.Context) error {
	if err := c.cgroups.Kill(c.CgroupPath()); err != nil {
		return err
	}
	for _, p := range c.processes() {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) removeVolatile(context.Context) error {
	var outside []string
	for _, n := range c.AllNodes() {
		outside = append(outside, filesOutside(n)...)
	}
	if err := mounts.Unmount(c.RunDir(), c.Dir); err != nil {
		return err
	}
	if err := removeAll(append(outside, c.RunDir())); err != nil {
		return err
	}
	removeEmptyParent(c.RunDir())
	if err := c.cgroups.Remove(c.CgroupPath()); err != nil {
		return err
	}
	c.cgroups.RemoveIfEmpty(filepath.Dir(c.CgroupPath()))
	return nil
}

// removeNetwork needs not care for routes: they go with the bridge.
func (c *Cluster) removeNetwork(ctx context.Context) error {
	var failed []error
	for _, m := range c.Machines() {
		failed = append(failed, network.RemoveMachine(ctx, m))
	}
	failed = append(failed, network.RemoveLink(ctx, c.Bridge()))
	return errors.Join(failed...)
}

func (c *Cluster) removeDir(context.Context) error {
	if err := checkDir(c.Dir, c.Name); err != nil {
		return err
	}
	return errors.Join(removeLogLinks(c.Dir), removeMarked(c.Dir))
}

// removeMarked removes the marker last: without it an interrupted removal could
// not go on.
func removeMarked(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == marker {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}

// removeLogLinks removes what the kubelets left outside: a link to each log.
func removeLogLinks(dir string) error {
	links, _ := filepath.Glob("/var/log/containers/*.log")
	var failed []error
	for _, link := range links {
		target, err := os.Readlink(link)
		if err == nil && strings.HasPrefix(target, dir+"/") {
			failed = append(failed, os.Remove(link))
		}
	}
	return errors.Join(failed...)
}

// removeEmptyParent fails silently where other clusters live.
func removeEmptyParent(dir string) { _ = os.Remove(filepath.Dir(dir)) }
