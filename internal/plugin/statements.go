package plugin

import (
	"github.com/spf13/cobra"

	"cnmsql.co/internal/layout"
)

func statementsCommand(k *kube) *cobra.Command {
	var f statementsFlags
	cmd := &cobra.Command{
		Use:   "statements CLUSTER",
		Short: "List statements such as DROP TABLE in the binary logs of an instance, with their GTIDs",
		Example: `  kubectl cnmsql statements demo --since 6h
  kubectl cnmsql statements demo --archive --since 2026-11-23T20:00:00Z --matching '(?i)orders'`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return k.runIn(cmd, args[0], f.instance, f.command(cmd.Flags().Changed))
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.matching, "matching", "",
		"a regular expression of Go; those that drop, truncate, alter or rename when absent, and all when empty")
	flags.StringVar(&f.since, "since", "", "committed then or later: 2026-11-23T21:04:05Z, or 2h: so long ago")
	flags.StringVar(&f.until, "until", "", "committed then or before")
	flags.BoolVar(&f.archive, "archive", false, "search the archive, which has what instances have purged")
	flags.StringVar(&f.instance, "instance", "", "instance that searches, by name or number, instead of the primary")
	return cmd
}

type statementsFlags struct {
	matching, since, until, instance string
	archive                          bool
}

// command is carried out in the Pod, which has the binary logs and reaches the archive. It has the flags that
// were given: an empty one is not an absent one.
func (f statementsFlags) command(isGiven func(flag string) bool) []string {
	out := []string{layout.Binary, "instance", "statements"}
	for _, flag := range []struct{ name, value string }{
		{"matching", f.matching}, {"since", f.since}, {"until", f.until},
	} {
		if isGiven(flag.name) {
			out = append(out, "--"+flag.name+"="+flag.value)
		}
	}
	if f.archive {
		out = append(out, "--archive")
	}
	return out
}
