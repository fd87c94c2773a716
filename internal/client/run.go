package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"cnmsql.co/internal/endmark"
)

// Ended is the error of a program that has said itself why it failed.
type Ended struct{ Code int }

func (e *Ended) Error() string { return fmt.Sprintf("the program ended with exit code %d", e.Code) }

// Run runs a program of the image as Exec does, but as a child, and writes the end mark when it has succeeded.
func Run(ctx context.Context, program, account string, args []string) error {
	binary, argv, err := commandLine(program, account, args)
	if err != nil {
		return err
	}
	return runMarked(ctx, binary, argv, os.Stdout, os.Stderr)
}

func runMarked(ctx context.Context, binary string, argv []string, out, complaints io.Writer) error {
	return endmark.Write(out, complaints, func(out io.Writer) error {
		child := exec.CommandContext(ctx, binary)
		child.Args, child.Env = argv, environment(os.Environ())
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, out, complaints
		err := child.Run()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			return &Ended{codeOf(exit.ProcessState)}
		case err != nil:
			return fmt.Errorf("executing %s: %w", binary, err)
		}
		return nil
	})
}

// codeOf is as shells tell it: of a program that was killed, 128 and the signal.
func codeOf(p *os.ProcessState) int {
	if status, is := p.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}
