package cluster

import (
	"context"
	"fmt"
	"os"
	"time"

	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
)

// PowerOff is a power loss: every process of the node stops in one instant, the
// cable goes dead before any of them can say good-bye, and memory is gone. What
// was on disk stays.
func (c *Cluster) PowerOff(ctx context.Context, n layout.Node) error {
	unlock, err := lock(c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.step(n.Name+" powered off", func() error {
		c.cgroups.Freeze(n.Cgroup)
		if err := network.RemoveLink(ctx, n.Link); err != nil {
			c.cgroups.Thaw(n.Cgroup)
			return err
		}
		if err := c.cgroups.Kill(n.Cgroup); err != nil {
			return err
		}
		return network.RemoveMachine(ctx, n.Machine)
	})
}

// PowerOn boots a node and waits until it is ready.
func (c *Cluster) PowerOn(ctx context.Context, n layout.Node) error {
	unlock, err := lock(c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	began := time.Now()
	return c.step(n.Name+" powered on and ready", func() error {
		if err := c.prepareNode(ctx, n); err != nil {
			return err
		}
		if err := ensureAll(c.nodeProcesses(n)); err != nil {
			return err
		}
		return c.waitNode(ctx, n, began)
	})
}

// Partition cuts a node off.
func (c *Cluster) Partition(ctx context.Context, n layout.Node, from network.From, way network.Direction) error {
	return c.step(fmt.Sprintf("%s cut off from %s", n.Name, from), func() error {
		return network.Partition(ctx, c.Cluster, n, from, way)
	})
}

// Heal ends every partition of a node.
func (c *Cluster) Heal(ctx context.Context, n layout.Node) error {
	return c.step(n.Name+" healed", func() error { return network.Heal(ctx, n) })
}

func startedSince(pidFile string, since time.Time) bool {
	info, err := os.Stat(pidFile)
	return err == nil && !info.ModTime().Before(since.Truncate(time.Second))
}
