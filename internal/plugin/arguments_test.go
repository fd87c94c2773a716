package plugin

import (
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
