package plugin

import (
	"context"
	"io"
	"slices"
	"testing"

	"cnmsql.co/internal/layout"
)

func TestAnEmptyFlagOfStatementsIsNotAnAbsentOne(t *testing.T) {
	const search = layout.Binary + " instance statements --end-mark"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"demo"}, search},
		{[]string{"demo", "--matching", ""}, search + " --matching="},
		{[]string{"demo", "--matching", "orders", "--since", "2h", "--archive"},
			search + " --matching=orders --since=2h --archive"},
	} {
		k, asked := serveCluster(t, archived())
		cmd := statementsCommand(k)
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		mustFail(t, cmd.ExecuteContext(context.Background()), "demo-1")
		if !slices.Contains(asked.commands, c.want) {
			t.Errorf("%q has the Pod asked %q", c.args, asked.commands)
		}
	}
}
