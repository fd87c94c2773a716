package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Command is one program to run to its end.
type Command struct {
	Argv  []string
	Stdin io.Reader
	Env   []string // added to the caller's environment
	Dir   string
	// Advice tells the reader of a failure what to do about it.
	Advice string
}

// Error is a failed command.
type Error struct {
	Argv   []string
	Output string
	Advice string
	Err    error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` failed: %v", strings.Join(e.Argv, " "), e.Err)
	if out := strings.TrimSpace(e.Output); out != "" {
		fmt.Fprintf(&b, "\n%s", indent(out))
	}
	if e.Advice != "" {
		fmt.Fprintf(&b, "\nwhat to do: %s", e.Advice)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Run runs a program by its words and returns what it printed.
func Run(ctx context.Context, argv ...string) (string, error) {
	return Command{Argv: argv}.Run(ctx)
}

// Run returns standard output and standard error, mixed as they came.
func (c Command) Run(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var out bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, &out, &out
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	if err := cmd.Run(); err != nil {
		return out.String(), &Error{Argv: c.Argv, Output: lastLines(out.String(), 40), Advice: c.Advice, Err: err}
	}
	return out.String(), nil
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(s, "\n", "\n    ")
}

func lastLines(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("(%d lines before)", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}
