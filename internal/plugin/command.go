package plugin

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"cnmsql.co/internal/version"
)

// Command is kubectl cnmsql.
func Command() *cobra.Command {
	// The libraries' logs would be mixed with what is printed; what matters of
	// them comes back as errors.
	klog.SetLogger(logr.Discard())
	ctrllog.SetLogger(logr.Discard())
	cmd := &cobra.Command{
		Use:           "kubectl-cnmsql",
		Short:         "See and steer MySQL clusters of the cnmsql operator",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnmsql"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetFlagErrorFunc(flagError)
	k := newKube(cmd.PersistentFlags())
	cmd.AddCommand(statusCommand(k), eventsCommand(k), promoteCommand(k), fenceCommand(k), reinitCommand(k),
		failoverCommand(k), groupCommand(k),
		whatifCommand(k), backupCommand(k), restoreCommand(k), mysqlCommand(k), dumpCommand(k),
		statementsCommand(k), versionCommand())
	aimErrors(cmd, k)
	return cmd
}

// ExitCode is what the process should end with: the remote command's own code
// where there is one. told is false when nothing need be printed, for the
// remote command has said it all.
func ExitCode(err error) (code int, told bool) {
	var exit interface{ ExitStatus() int }
	var taken *allTaken
	switch {
	case err == nil:
		return 0, false
	case errors.As(err, &exit):
		return exit.ExitStatus(), errors.As(err, &taken)
	default:
		return 1, true
	}
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Show the version of this plugin", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), thisPlugin())
			return err
		}}
}

// thisPlugin tells the version that was built, and what the Go toolchain noted.
func thisPlugin() string {
	text := "kubectl-cnmsql " + version.Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " (" + s.Value + ")"
			}
		}
	}
	return fmt.Sprintf("%s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
