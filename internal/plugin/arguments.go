package plugin

import (
	"fmt"

	"github.com/spf13/cobra"
)

// exactArgs wants so many arguments, and otherwise says which.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return wanted(cmd, args, len(args) == n) }
}

// atLeastArgs wants no fewer arguments, and otherwise says which.
func atLeastArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error { return wanted(cmd, args, len(args) >= n) }
}

func wanted(cmd *cobra.Command, args []string, enough bool) error {
	if enough {
		return nil
	}
	given := "no argument was given"
	if len(args) > 0 {
		given = fmt.Sprintf("the arguments %q were given", args)
	}
	if cmd.HasParent() {
		return fmt.Errorf("%s; the command is %s %s", given, cmd.Parent().CommandPath(), cmd.Use)
	}
	return fmt.Errorf("%s; the command is %s", given, cmd.Use)
}
