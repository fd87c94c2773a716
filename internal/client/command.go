package client

import (
	"context"

	"github.com/spf13/cobra"

	"cnmsql.co/internal/endmark"
)

// Command is "instance client", which kubectl cnmsql mysql carries out in a Pod.
func Command() *cobra.Command {
	var account string
	var marked bool
	cmd := &cobra.Command{
		Use:   "client [--user root|app] [-- ARGS]",
		Short: "Become the image's mysql client, logged in to this Pod's mysqld",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runOrBecome(cmd.Context(), marked, "mysql", account, args)
		},
	}
	MarkFlag(cmd, &marked)
	cmd.Flags().StringVar(&account, "user", "root", "root, or app for the application's account")
	return cmd
}

// DumpCommand is "instance dump", which kubectl cnmsql dump carries out in a Pod.
func DumpCommand() *cobra.Command {
	var marked bool
	cmd := &cobra.Command{
		Use:   "dump -- ARGS",
		Short: "Become the image's mysqldump, as root, with the flags that another cluster needs",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runOrBecome(cmd.Context(), marked, "mysqldump", "root", append(DumpFlags(), args...))
		},
	}
	MarkFlag(cmd, &marked)
	return cmd
}

// MarkFlag gives a command the flag by which it is asked for the end mark.
func MarkFlag(cmd *cobra.Command, marked *bool) {
	cmd.Flags().BoolVar(marked, endmark.Flag, false,
		"end standard error with a line that tells how much was written: for kubectl cnmsql")
}

func runOrBecome(ctx context.Context, marked bool, program, account string, args []string) error {
	if marked {
		return Run(ctx, program, account, args)
	}
	return Exec(program, account, args)
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
