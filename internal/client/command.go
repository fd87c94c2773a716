package client

import (
	"context"

	"github.com/spf13/cobra"
)

// Command is "instance client", which kubectl cnmsql mysql carries out in a Pod.
func Command() *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:   "client [--user root|app] [-- ARGS]",
		Short: "Become the image's mysql client, logged in to this Pod's mysqld",
		RunE:  func(_ *cobra.Command, args []string) error { return Exec("mysql", account, args) },
	}
	cmd.Flags().StringVar(&account, "user", "root", "root, or app for the application's account")
	return cmd
}

// DumpCommand is "instance dump", which kubectl cnmsql dump carries out in a Pod.
func DumpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dump -- ARGS",
		Short: "Become the image's mysqldump, as root, with the flags that another cluster needs",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return Exec("mysqldump", "root", append(DumpFlags(), args...))
		},
	}
}

// StatusCommand is "instance status", by which the plugin asks a Pod's manager.
func StatusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print what this Pod's manager says of itself and its mysqld, as JSON",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), statusLimit)
			defer cancel()
			m, err := thisPod()
			if err != nil {
				return err
			}
			return m.status(ctx, cmd.OutOrStdout())
		},
	}
}
