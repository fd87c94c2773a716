// Command writer writes rows through a MySQL endpoint until it is told to stop, and tells what
// became of them: how long the longest time without a write was, and whether anything that had
// been acknowledged is lost. It knows nothing that package writer does not.
//
// It ends with 0 if the table holds what was acknowledged, with 1 if rows are lost or there that
// the server had refused, and with 2 if it could not write or could not check.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cnmsql.co/test/writer"
)

const (
	exitGood = iota
	exitRowsWrong
	exitCannotTell
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// run keeps stdout for the result; progress goes to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return exitCannotTell, err
	}
	if o.stop {
		return exitGood, syscall.Kill(1, syscall.SIGTERM)
	}
	w := writer.New(o.config)
	if err := w.Start(ctx); err != nil {
		return exitCannotTell, err
	}
	watch(ctx, w, o.duration, stderr)
	outcome := result{Report: w.Stop()}
	outcome.Verification, err = verify(w, o)
	if err != nil {
		outcome.VerifyError = err.Error()
	}
	if err := outcome.print(stdout, o.json); err != nil {
		return exitCannotTell, err
	}
	return outcome.exitCode(), nil
}

// watch prints a line each second until the time is over or a signal comes.
func watch(ctx context.Context, w *writer.Writer, duration time.Duration, out io.Writer) {
	if duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, duration)
		defer cancel()
	}
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	before := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			s := w.Snapshot()
			fmt.Fprintln(out, progress(s, s.Acknowledged-before))
			before = s.Acknowledged
		}
	}
}

// verify has its own time: the signal that ended the writing must not end the checking, and the
// endpoint may be in the middle of what the writer was there to observe.
func verify(w *writer.Writer, o options) (*writer.Verification, error) {
	config := o.config
	if o.verifyAddr != "" {
		config.Addr = o.verifyAddr
	}
	db, err := writer.Open(config)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	v, err := w.VerifyWithin(context.Background(), db, o.verifyTimeout)
	if err != nil {
		return nil, fmt.Errorf("%w; --verify-timeout makes it longer", err)
	}
	return &v, nil
}
