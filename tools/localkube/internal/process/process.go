package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Process is one program that should run.
type Process struct {
	Name    string
	Argv    []string
	Env     []string // added to PATH and HOME
	Netns   string   // path of the network namespace; empty: the caller's
	Cgroups []string // cgroup.procs files to enter
	LogFile string
	PidFile string
}

// entrance joins the control groups before the program starts, so that none of
// its children can be born outside of them.
const entrance = `while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"`

func (p Process) argv() []string {
	argv := append([]string{"/bin/sh", "-c", entrance, "sh"}, p.Cgroups...)
	argv = append(argv, "--")
	if p.Netns != "" {
		// Not `ip netns exec`: that hides the cgroup mounts from the kubelet.
		argv = append(argv, "nsenter", "--net="+p.Netns, "--")
	}
	return append(argv, p.Argv...)
}

// Running tells whether the process runs, and its id.
func (p Process) Running() (int, bool) {
	data, err := os.ReadFile(p.PidFile)
	if err != nil {
		return 0, false
	}
	recorded, err := parseIdentity(string(data))
	if err != nil {
		return 0, false
	}
	now, ok := observe(recorded.pid)
	return recorded.pid, ok && now == recorded
}

// Astray reports whether the process runs in another network namespace than it
// should, because the one it was started in has been recreated.
func (p Process) Astray() bool {
	pid, ok := p.Running()
	if !ok || p.Netns == "" {
		return false
	}
	is, err1 := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid))
	should, err2 := os.Stat(p.Netns)
	return err1 == nil && err2 == nil && !os.SameFile(is, should)
}

// Ensure starts the process unless it runs where it should.
func (p Process) Ensure() error {
	if p.Astray() {
		if err := p.Kill(); err != nil {
			return err
		}
	}
	if _, ok := p.Running(); ok {
		return nil
	}
	if err := p.start(); err != nil {
		return fmt.Errorf("starting %s (`%s`): %w", p.Name, strings.Join(p.Argv, " "), err)
	}
	return nil
}

// start gives the program a clean environment: a proxy setting of the caller
// would lead the API server's calls of webhooks astray.
func (p Process) start() error {
	log, err := p.openLog()
	if err != nil {
		return err
	}
	defer log.Close()
	argv := p.argv()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, "/"
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=/root"}, p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	// Reaped, or its id would stay taken by a zombie while localkube waits for it.
	go cmd.Wait()
	id, ok := observe(cmd.Process.Pid)
	if !ok {
		return fmt.Errorf("it ended at once; its log ends:\n%s", p.Tail(10))
	}
	if err := os.MkdirAll(filepath.Dir(p.PidFile), 0o755); err != nil {
		return err
	}
	return os.WriteFile(p.PidFile, []byte(id.String()+"\n"), 0o644)
}

func (p Process) openLog() (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(p.LogFile), 0o755); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(p.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(log, "--- localkube starts %s at %s\n", p.Name, time.Now().Format(time.RFC3339))
	return log, nil
}

// Kill ends the process with SIGKILL if it runs.
func (p Process) Kill() error {
	pid, ok := p.Running()
	if !ok {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing %s (process %d): %w", p.Name, pid, err)
	}
	for range 500 {
		if _, ok := p.Running(); !ok {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s (process %d) survives SIGKILL", p.Name, pid)
}

// Tail returns the last lines of the log.
func (p Process) Tail(lines int) string {
	f, err := os.Open(p.LogFile)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	const enough = 64 << 10
	if info, err := f.Stat(); err == nil && info.Size() > enough {
		f.Seek(-enough, io.SeekEnd)
	}
	data, _ := io.ReadAll(f)
	all := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return string(bytes.Join(all, []byte("\n")))
}
