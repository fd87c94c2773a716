// Command cnmsql is the operator, the instance manager and its one-shot jobs in
// one static binary.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cnmsql.co/internal/client"
	"cnmsql.co/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		var ended *client.Ended
		if errors.As(err, &ended) {
			os.Exit(ended.Code)
		}
		tellLast(err)
		os.Exit(1)
	}
}

// tellLast tells why the process ends, and does not keep it when nobody reads that.
func tellLast(err error) {
	told := make(chan struct{})
	go func() {
		fmt.Fprintln(os.Stderr, "cnmsql:", err)
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(logPatience):
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{Use: "cnmsql", Short: "A Kubernetes operator for MySQL", Version: version.Version,
		SilenceUsage: true, SilenceErrors: true}
	cmd.AddCommand(operatorCommand(), instanceCommand(), backupCommand(), storeCommand())
	return cmd
}

// untilTerminated ends the context at SIGTERM, too.
func untilTerminated(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, syscall.SIGTERM)
}
