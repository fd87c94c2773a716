package instance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/mysql"
)

// exitRestart is how mysqld ends when it wants to be started again: after
// RESTART, and after a clone.
const exitRestart = 16

// binary is the mysqld of the image.
type binary struct {
	command []string
	version mysql.Version
	// missing is why there is none that can be used.
	missing error
}

var errNoMysqld = errors.New("the image holds no mysqld in PATH, /usr/sbin, /usr/local/bin, /usr/local/mysql/bin, " +
	"/usr/bin or /usr/libexec: set spec.imageName to an official MySQL or Percona Server image")

// findMysqld finds mysqld and asks it for its version. An image without one is
// told of in the report, which is where people look.
func findMysqld(ctx context.Context, command []string) binary {
	b, err := lookForMysqld(ctx, command)
	if err != nil {
		h := &namedError{core.Problem{Reason: core.InstanceMysqldUnusable, Message: err.Error()}, time.Minute}
		switch {
		case errors.Is(err, errNoMysqld):
			h.Reason, h.again = core.InstanceMysqldNotFound, 10*time.Minute
		case errors.Is(err, context.DeadlineExceeded): // on a node that is slow just now
			h.Reason, h.again = core.InstanceMysqldSilent, 5*time.Second
		}
		b.missing = h
	}
	return b
}

// versionLimit is how long mysqld may take to tell its version.
const versionLimit = 10 * time.Second

func lookForMysqld(ctx context.Context, command []string) (binary, error) {
	if len(command) == 0 {
		path, err := lookFor("mysqld")
		if err != nil {
			return binary{}, err
		}
		command = []string{path}
	}
	out, err := run(ctx, versionLimit, command, "--no-defaults", "--version")
	if err != nil {
		return binary{}, fmt.Errorf("asking %s for its version: %w: %s", command[0], err, out)
	}
	v, err := mysql.ParseVersion(out)
	return binary{command: command, version: v}, err
}

func lookFor(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/bin", "/usr/local/mysql/bin", "/usr/bin", "/usr/libexec"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() {
			return path, nil
		}
	}
	return "", errNoMysqld
}

// run runs a command to its end and returns what it printed. The error wraps
// context.DeadlineExceeded when it did not end within the limit.
func run(ctx context.Context, limit time.Duration, command []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], append(command[1:len(command):len(command)], args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := children.run(cmd)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", limit, ctx.Err())
	}
	return strings.TrimSpace(out.String()), err
}

// process is one life of mysqld.
type process struct {
	handle  *os.Process
	log     *errorLog
	started time.Time
	output  *output
	// done is closed when it has ended and that is noted; exit is valid then.
	done chan struct{}
	exit *os.ProcessState
}

// start starts mysqld with a configuration file. Whoever starts it waits for it.
func (b binary) start(log *errorLog, config string, args ...string) (*process, error) {
	if b.missing != nil {
		return nil, b.missing
	}
	args = append([]string{"--defaults-file=" + config}, args...)
	cmd := exec.Command(b.command[0], append(b.command[1:len(b.command):len(b.command)], args...)...)
	// mysqld then ends with a code of its own when it wants to be restarted,
	// instead of refusing to.
	cmd.Env = append(environment(), "MYSQLD_PARENT_PID="+strconv.Itoa(os.Getpid()))
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = w, w
	p := &process{log: log, started: time.Now(), output: newOutput(r), done: make(chan struct{})}
	err = children.start(cmd)
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, fmt.Errorf("starting %s: %w", b.command[0], err)
	}
	p.handle = cmd.Process
	go p.output.read(log)
	return p, nil
}

// inheritProcess goes on with a mysqld that this process started before it became what
// it is.
func inheritProcess(pid, output int, started time.Time, log *errorLog) (*process, error) {
	handle, err := os.FindProcess(pid)
	if err != nil {
		return nil, fmt.Errorf("taking over mysqld (pid %d): %w", pid, err)
	}
	children.inherited(pid)
	p := &process{handle: handle, log: log, started: started, output: newOutput(os.NewFile(uintptr(output),
		"mysqld's output")), done: make(chan struct{})}
	go p.output.read(log)
	return p, nil
}

// wait waits for its end, and has it noted: noted closes done, in one with all else that
// is true from then on, so that nobody decides by a part of it.
func (p *process) wait(noted func()) {
	p.exit, _ = p.handle.Wait()
	children.ended(p.handle.Pid)
	// The pipe may be held open by a child of mysqld's; its last lines are
	// worth a moment, not more.
	select {
	case <-p.output.ended:
	case <-time.After(100 * time.Millisecond):
	}
	noted()
}

// environment is our own without what is the manager's business.
func environment() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CNMSQL_") && !strings.HasPrefix(v, "MYSQL") {
			out = append(out, v)
		}
	}
	return out
}

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// dataRemoved reports whether the directory that mysqld works in is known to be removed: nothing that
// it writes is kept. One that is only mounted elsewhere, or nowhere any more, is not.
func (p *process) dataRemoved() bool {
	dir, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", p.handle.Pid))
	if err != nil {
		return false
	}
	is, known := dir.Sys().(*syscall.Stat_t)
	return known && is.Nlink == 0
}

// signal sends a signal; a process that has ended is no error.
func (p *process) signal(s syscall.Signal) {
	if p.running() {
		_ = p.handle.Signal(s)
	}
}

// kill ends the process at once and returns when it has ended: a process in
// uninterruptible sleep may take its time, and is not gone before.
func (p *process) kill(ctx context.Context) error {
	p.signal(syscall.SIGKILL)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf(
			"mysqld (pid %d) was killed and has not ended yet: it hangs in the kernel, probably on its volume",
			p.handle.Pid)
	}
}

// ending says how the process ended, for people.
func (p *process) ending() string {
	if p.exit == nil {
		return "mysqld ended in an unknown way"
	}
	ws, ok := p.exit.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return fmt.Sprintf("mysqld was ended by signal %d (%s)", ws.Signal(), ws.Signal())
	}
	return fmt.Sprintf("mysqld ended with code %d", p.exit.ExitCode())
}

// diagnose makes an error of a mysqld that ended early.
func (p *process) diagnose(reason core.Reason, what string) error {
	last, full := p.log.last()
	if full {
		return diskFull(last)
	}
	return &namedError{core.Problem{Reason: reason, Message: what + ": " + p.ending() + ": " + last}, 5 * time.Second}
}
