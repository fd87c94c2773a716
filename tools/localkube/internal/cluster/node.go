package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/mounts"
	"cnmsql.co/tools/localkube/internal/network"
	"cnmsql.co/tools/localkube/internal/process"
)

// prepareNode brings a node to where its runtime answers and can start Pods. A
// node of which nothing runs is booted: what a power loss takes from a computer
// is taken from it first.
func (c *Cluster) prepareNode(ctx context.Context, n layout.Node) error {
	if !c.runs(n) {
		if err := c.cgroups.Kill(n.Cgroup); err != nil {
			return err
		}
		if err := c.forgetVolatile(ctx, n); err != nil {
			return fmt.Errorf("%s: clearing what its last run left: %w", n.Name, err)
		}
	}
	if err := c.prepareMachine(ctx, n.Machine); err != nil {
		return fmt.Errorf("%s: %w", n.Name, err)
	}
	if err := network.Heal(ctx, n); err != nil {
		return fmt.Errorf("%s: ending its partitions: %w", n.Name, err)
	}
	if err := c.writeNodeConfigs(ctx, n); err != nil {
		return fmt.Errorf("%s: writing its configuration: %w", n.Name, err)
	}
	if err := os.MkdirAll(n.RunDir(), 0o755); err != nil {
		return err
	}
	if err := c.startContainerd(ctx, n); err != nil {
		return err
	}
	return c.loadOn(ctx, n, c.build.PauseArchive())
}

// runs is false also for a node whose network namespace was removed under it:
// its Pods can never be reached again.
func (c *Cluster) runs(n layout.Node) bool {
	return len(c.cgroups.Pids(n.Cgroup)) > 0 && network.NetnsExists(n.Machine) && !c.containerd(n).Astray()
}

func (c *Cluster) prepareMachine(ctx context.Context, m layout.Machine) error {
	if err := network.EnsureMachine(ctx, c.Cluster, m); err != nil {
		return err
	}
	return c.cgroups.Create(m.DaemonCgroup())
}

func (c *Cluster) startContainerd(ctx context.Context, n layout.Node) error {
	containerd := c.containerd(n)
	if err := noteShims(n); err != nil {
		return fmt.Errorf("%s: noting its shims: %w", n.Name, err)
	}
	if err := containerd.Ensure(); err != nil {
		return err
	}
	return waitFor(ctx, containerd.Name, time.Minute, []process.Process{containerd}, func(context.Context) error {
		conn, err := net.Dial("unix", n.Socket())
		if err == nil {
			conn.Close()
		}
		return err
	})
}

// forgetVolatile removes mounts, sockets, namespaces and control groups of a
// node without processes. Images, containers' file systems and volumes stay.
func (c *Cluster) forgetVolatile(ctx context.Context, n layout.Node) error {
	outside := filesOutside(n)
	if err := mounts.Unmount(n.RunDir(), n.Path("kubelet")); err != nil {
		return err
	}
	return errors.Join(
		network.RemoveMachine(ctx, n.Machine),
		c.cgroups.Remove(n.Cgroup),
		removeAll(append(outside, n.RunDir())),
	)
}

func removeAll(paths []string) error {
	var failed []error
	for _, p := range paths {
		failed = append(failed, os.RemoveAll(p))
	}
	return errors.Join(failed...)
}
