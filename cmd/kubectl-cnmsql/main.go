// Command kubectl-cnmsql is a plugin of kubectl for MySQL clusters.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"cnmsql.co/internal/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := plugin.Command().ExecuteContext(ctx)
	stop()
	code, tell := plugin.ExitCode(err)
	if tell {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(code)
}
