package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// loadedConnections write as fast as they can in rows that are loaded.
const loadedConnections = 16

// busy keeps every core and the disk busy until the function that it returns is called: a loop a
// core, and one that writes 200 MiB and flushes them, again and again.
func busy(ctx context.Context) (stop func(), err error) {
	dir, err := os.MkdirTemp("", "bench-busy")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running []*exec.Cmd
	stop = func() {
		cancel()
		for _, cmd := range running {
			_ = cmd.Wait() // it was killed
		}
		_ = os.RemoveAll(dir)
	}
	start := func(script string, args ...string) error {
		cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", script}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		if err := cmd.Start(); err != nil {
			return fmt.Errorf("keeping the machine busy: %w", err)
		}
		running = append(running, cmd)
		return nil
	}
	for range runtime.NumCPU() {
		err = errors.Join(err, start("while :; do :; done"))
	}
	err = errors.Join(err, start(`while :; do dd if=/dev/zero of="$0" bs=1M count=200 conv=fsync 2>/dev/null; done`,
		filepath.Join(dir, "file")))
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}
