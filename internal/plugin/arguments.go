package plugin

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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
	return fmt.Errorf("%s; the command is %s", given, usageOf(cmd))
}

func usageOf(cmd *cobra.Command) string {
	if cmd.HasParent() {
		return cmd.Parent().CommandPath() + " " + cmd.Use
	}
	return cmd.Use
}

// flagError says what is expected in the place of an option that cannot be read.
func flagError(cmd *cobra.Command, err error) error {
	var unreadable *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &unreadable) && unreadable.GetFlag().Value.Type() == "duration":
		return fmt.Errorf("--%s is a duration, like 90s, 30m or 2h, and %q is none", unreadable.GetFlag().Name,
			unreadable.GetValue())
	case errors.As(err, &unknown) && isNumber(unknown.GetSpecifiedShortnames()):
		return fmt.Errorf("-%s is no option, and no argument: an instance is given by its name or number, like 1; the "+
			"command is %s", unknown.GetSpecifiedShortnames(), usageOf(cmd))
	}
	return err
}

// isNumber reports whether a text begins as a number does.
func isNumber(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }
