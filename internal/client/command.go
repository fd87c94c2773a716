package client

import "github.com/spf13/cobra"

// Command is "instance client", which kubectl cnmsql mysql carries out in a Pod.
func Command() *cobra.Command {
	var account string
	cmd := &cobra.Command{
		Use:   "client [--user root|app] [-- ARGS]",
		Short: "Become the image's mysql client, logged in to this Pod's mysqld",
		RunE:  func(_ *cobra.Command, args []string) error { return Exec(account, args) },
	}
	cmd.Flags().StringVar(&account, "user", "root", "root, or app for the application's account")
	return cmd
}
