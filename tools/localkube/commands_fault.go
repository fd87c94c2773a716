package main

import (
	"context"

	"github.com/spf13/cobra"

	"cnmsql.co/tools/localkube/internal/cluster"
	"cnmsql.co/tools/localkube/internal/layout"
	"cnmsql.co/tools/localkube/internal/network"
)

// onNode makes the body of a command whose argument is a node.
func onNode(s *settings, do func(context.Context, *cluster.Cluster, layout.Node) error) func(*cobra.Command,
	[]string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := s.open()
		if err != nil {
			return err
		}
		n, err := c.FindNode(args[0])
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, n)
	}
}

func partitionCommand(s *settings) *cobra.Command {
	from, way := "", ""
	cmd := &cobra.Command{
		Use:   "partition NODE",
		Short: "Cut a node and its Pods off from the API server, the other nodes, or everything",
		Args:  cobra.ExactArgs(1),
		RunE: onNode(s, func(ctx context.Context, c *cluster.Cluster, n layout.Node) error {
			return c.Partition(ctx, n, network.From(from), network.Direction(way))
		}),
	}
	cmd.Flags().StringVar(&from, "from", string(network.FromAll), "api, nodes or all")
	cmd.Flags().StringVar(&way, "direction", string(network.BothWays), "in: the node hears nothing of them; out: "+
		"they hear nothing of it; both")
	return cmd
}

func healCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "heal NODE", Short: "End every partition of a node", Args: cobra.ExactArgs(1),
		RunE: onNode(s, func(ctx context.Context, c *cluster.Cluster, n layout.Node) error { return c.Heal(ctx, n) }),
	}
}

func powerOffCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "poweroff NODE", Short: "Cut a node's power: SIGKILL to everything on it at once; disks stay",
		Args: cobra.ExactArgs(1),
		RunE: onNode(s, func(ctx context.Context, c *cluster.Cluster, n layout.Node) error {
			return c.PowerOff(ctx, n)
		}),
	}
}

func powerOnCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "poweron NODE", Short: "Boot a node again and wait until it is ready", Args: cobra.ExactArgs(1),
		RunE: onNode(s, func(ctx context.Context, c *cluster.Cluster, n layout.Node) error {
			return c.PowerOn(ctx, n)
		}),
	}
}
