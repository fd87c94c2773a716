package instance

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// children are the processes that this manager started and waits for itself. As
// PID 1 it also inherits orphans, which it must reap, and must not take the exit
// status of its own children away from those who wait for them.
var children = childSet{own: map[int]bool{}}

type childSet struct {
	mu  sync.Mutex
	own map[int]bool
}

// start starts a command; under the lock, so that reaping never sees a child that
// is not yet known as ours.
func (c *childSet) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	c.own[cmd.Process.Pid] = true
	return nil
}

// inherited takes in a child that this process started before it became what it is.
func (c *childSet) inherited(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[pid] = true
}

// ended is called when a child was waited for.
func (c *childSet) ended(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.own, pid)
}

func (c *childSet) run(cmd *exec.Cmd) error {
	if err := c.start(cmd); err != nil {
		return err
	}
	defer c.ended(cmd.Process.Pid)
	return cmd.Wait()
}

// reapOrphans waits for processes that nobody else waits for, as PID 1 must.
func reapOrphans(ctx context.Context) {
	died := make(chan os.Signal, 1)
	signal.Notify(died, syscall.SIGCHLD)
	defer signal.Stop(died)
	for {
		select {
		case <-ctx.Done():
			return
		case <-died:
			children.reap(os.Getpid())
		}
	}
}

func (c *childSet) reap(parent int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		pid, ppid, state := readStat(file)
		if ppid == parent && state == "Z" && !c.own[pid] {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
		}
	}
}

// readStat reads pid, parent and state; the command in between may hold anything.
func readStat(file string) (pid, ppid int, state string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, 0, ""
	}
	line := string(text)
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return 0, 0, ""
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(line[:open]))
	if rest := strings.Fields(line[end+1:]); len(rest) > 1 {
		state = rest[0]
		ppid, _ = strconv.Atoi(rest[1])
	}
	return pid, ppid, state
}
