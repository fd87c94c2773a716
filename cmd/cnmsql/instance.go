package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/internal/byhand"
	"cnmsql.co/internal/client"
	"cnmsql.co/internal/cores"
	"cnmsql.co/internal/endmark"
	"cnmsql.co/internal/instance"
	"cnmsql.co/internal/layout"
)

func instanceCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "instance", Short: "Manage the mysqld of this Pod"}
	cmd.AddCommand(instanceRunCommand(), instanceInstallCommand(), instanceKillCommand(), instanceHandoverCommand(),
		instanceLostCommand(), instanceStatementsCommand(),
		client.Command(), client.DumpCommand(), client.StatusCommand())
	return cmd
}

func instanceRunCommand() *cobra.Command {
	return &cobra.Command{Use: "run", Short: "Run as the first process of an instance's Pod", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := instance.OptionsFromEnv()
			if err != nil {
				return err
			}
			ctx, stop := untilTerminated(cmd.Context())
			defer stop()
			cores.RestOnOne()
			return instance.Run(ctx, o)
		}}
}

// instanceHandoverCommand is asked of a binary before it takes a manager's place.
func instanceHandoverCommand() *cobra.Command {
	return &cobra.Command{Use: "handover-format", Short: "Tell from what managers this one can take over",
		Hidden: true, Args: cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), instance.HandoverFormat) }}
}

// instanceKillCommand is how a drill kills mysqld in a Pod that has no shell:
// kubectl exec POD -c mysql -- /opt/cnmsql/bin/cnmsql instance kill-mysqld.
func instanceKillCommand() *cobra.Command {
	return &cobra.Command{Use: "kill-mysqld", Short: "Kill this Pod's mysqld (SIGKILL), to try what happens then",
		Hidden: true, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return instance.KillServer(1) }}
}

// instanceLostCommand reads the archive, which the user's machine may not reach.
func instanceLostCommand() *cobra.Command {
	var epoch int64
	cmd := &cobra.Command{Use: "lost", Short: "List what failovers have lost of what was archived", Args: cobra.NoArgs}
	runMarked(cmd, func(out io.Writer) error {
		return instance.Lost(cmd.Context(), layout.ArchiveDir, os.Getenv(layout.EnvCluster), epoch, out)
	})
	cmd.Flags().Int64Var(&epoch, "epoch", 0, "write what was lost of this epoch, as a binary log")
	return cmd
}

// instanceStatementsCommand is for images without mysqlbinlog, which MySQL's own are.
func instanceStatementsCommand() *cobra.Command {
	var f search
	var archived bool
	cmd := &cobra.Command{Use: "statements", Args: cobra.NoArgs,
		Short: "List statements of this Pod's binary logs, or of the archive, with times and GTIDs"}
	runMarked(cmd, func(out io.Writer) error {
		s, err := f.parse(time.Now(), out)
		if err != nil {
			return err
		}
		if !archived {
			return s.Logs(cmd.Context(), filepath.Join(layout.DataDir, "binlog.index"))
		}
		w := byhand.Where{Store: layout.ArchiveDir, Cluster: os.Getenv(layout.EnvCluster)}
		return s.Archive(cmd.Context(), w)
	})
	f.flags(cmd)
	cmd.Flags().BoolVar(&archived, "archive", false, "search the archive, which has what was purged here")
	return cmd
}

// runMarked has a command write by write, and end with the mark where that is asked for.
func runMarked(cmd *cobra.Command, write func(out io.Writer) error) {
	var marked bool
	client.MarkFlag(cmd, &marked)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if !marked {
			return write(cmd.OutOrStdout())
		}
		return endmark.Write(cmd.OutOrStdout(), cmd.ErrOrStderr(), write)
	}
}

func instanceInstallCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{Use: "install", Short: "Copy this binary to where the main container finds it",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return instance.CopySelf(to) }}
	cmd.Flags().StringVar(&to, "to", layout.BinDir, "directory to copy to")
	return cmd
}
