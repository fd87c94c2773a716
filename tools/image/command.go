package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// command is one program to run, and what the reader of its failure can do.
type command struct {
	Argv   []string
	Advice string
	Chroot string
	Env    []string
	UID    uint32
}

// run returns the program's standard output.
func (c command) run(ctx context.Context, progress io.Writer) (string, error) {
	fmt.Fprintln(progress, "+", c)
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	var stdout, all strings.Builder
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, &all), &all
	cmd.Env = append(os.Environ(), c.Env...)
	if c.Chroot != "" {
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.Chroot,
			Credential: &syscall.Credential{Uid: c.UID, Gid: c.UID}}
	}
	// Politely first: a killed mmdebstrap would leave its half-made tree behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%q failed: %w\n%sWhat to do: %s", c, err, output(all.String()), c.Advice)
	}
	return stdout.String(), nil
}

func (c command) String() string {
	words := strings.Join(c.Argv, " ")
	if c.Chroot != "" {
		return "chroot " + c.Chroot + " " + words
	}
	return words
}

func output(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return "It printed nothing.\n"
	}
	return "Its output:\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}
