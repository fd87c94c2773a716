package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"cnmsql.co/tools/localkube/internal/cluster"
	"cnmsql.co/tools/localkube/internal/kubebuild"
)

// settings are the flags every command has.
type settings struct{ name, cache string }

func (s *settings) open() (*cluster.Cluster, error) {
	return cluster.Open(s.name, s.cache, os.Stderr)
}

func newRootCommand() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:           "localkube",
		Short:         "A real Kubernetes of several nodes on this machine, without Docker",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if os.Geteuid() != 0 && cmd.Name() != "build" && cmd.Name() != "help" {
				return errors.New("network namespaces, mounts and control groups need root: use sudo")
			}
			return nil
		},
	}
	root.PersistentFlags().StringVar(&s.name, "name", "localkube", "name of the cluster; clusters of different names "+
		"do not touch each other")
	root.PersistentFlags().StringVar(&s.cache, "cache", kubebuild.DefaultCache(),
		"directory of built Kubernetes binaries")
	root.AddCommand(upCommand(s), downCommand(s), statusCommand(s), loadCommand(s), buildCommand(s))
	root.AddCommand(partitionCommand(s), healCommand(s), powerOffCommand(s), powerOnCommand(s))
	root.AddCommand(kubeconfigCommand(s), kubectlCommand(s), execCommand(s))
	return root
}

func upCommand(s *settings) *cobra.Command {
	o := cluster.Options{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Make the cluster, or repair it: start what does not run, end every fault",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Name, o.Cache = s.name, s.cache
			kubeconfig, err := cluster.Up(cmd.Context(), o, os.Stderr)
			if err != nil {
				return err
			}
			fmt.Println(kubeconfig)
			return nil
		},
	}
	cmd.Flags().IntVar(&o.Nodes, "nodes", 0, "number of nodes (default 3, or what the cluster has)")
	cmd.Flags().StringVar(&o.Dir, "dir", "", "directory of the cluster (default /var/lib/localkube/NAME)")
	return cmd
}

func downCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove the cluster and everything it made, volumes included",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cluster.Down(cmd.Context(), s.name, s.cache, os.Stderr)
		},
	}
}

func statusCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show components, nodes and faults; fails if anything is not well",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := cluster.Open(s.name, s.cache, os.Stdout)
			if err != nil {
				return err
			}
			if !c.Status(cmd.Context()) {
				return fmt.Errorf("not all is well; `localkube up --name %s` repairs the cluster", s.name)
			}
			return nil
		},
	}
}

func loadCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "load IMAGE.tar...",
		Short: "Load image archives (docker save, OCI layout) on all nodes",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			c, err := s.open()
			if err != nil {
				return err
			}
			for _, f := range files {
				if err := c.Load(cmd.Context(), f); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func buildCommand(s *settings) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build Kubernetes into the cache and print the path of its kubectl",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			build, err := kubebuild.Ensure(cmd.Context(), s.cache)
			if err != nil {
				return err
			}
			fmt.Println(build.Component("kubectl"))
			return nil
		},
	}
}
