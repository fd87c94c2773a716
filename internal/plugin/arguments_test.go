package plugin

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
)

// TestACommandSaysWhichArgumentsItWants has some of them be missing: how many there are to be does not tell which.
func TestACommandSaysWhichArgumentsItWants(t *testing.T) {
	root := &cobra.Command{Use: "cnmsql"}
	promote, dump := promoteCommand(&kube{}), dumpCommand(&kube{})
	root.AddCommand(promote, dump)
	mustFail(t, promote.Args(promote, []string{"demo"}),
		`the arguments ["demo"] were given; the command is cnmsql promote CLUSTER INSTANCE`)
	mustFail(t, promote.Args(promote, nil), "no argument was given; the command is cnmsql promote CLUSTER INSTANCE")
	mustFail(t, dump.Args(dump, []string{"demo"}), "the command is cnmsql dump CLUSTER -- DATABASE [TABLE...]")
	for _, err := range []error{promote.Args(promote, []string{"demo", "2"}),
		dump.Args(dump, []string{"demo", "shop", "orders"})} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestAnOptionThatCannotBeReadIsToldWithWhatIsExpected has the whole command read what somebody typed.
func TestAnOptionThatCannotBeReadIsToldWithWhatIsExpected(t *testing.T) {
	for _, c := range []struct {
		typed []string
		said  string
	}{
		{[]string{"promote", "db", "-1"}, "-1 is no option, and no argument: an instance is given by its name or " +
			"number, like 1; the command is kubectl cnmsql promote CLUSTER INSTANCE"},
		{[]string{"fence", "on", "db", "-2"}, "like 1; the command is kubectl cnmsql fence on CLUSTER INSTANCE"},
		{[]string{"events", "db", "--since", "banana"}, `--since is a duration, like 90s, 30m or 2h, and "banana"`},
		{[]string{"promote", "db", "1", "--timeout=5"}, `--timeout is a duration, like 90s, 30m or 2h, and "5"`},
		{[]string{"promote", "db", "-x"}, "unknown shorthand flag: 'x' in -x"},
		{[]string{"promote", "db", "1", "--no-wait=banana"}, `invalid argument "banana" for "--no-wait" flag`},
	} {
		cmd := Command()
		cmd.SetArgs(c.typed)
		cmd.SetOut(io.Discard)
		mustFail(t, cmd.Execute(), c.said)
	}
}
