package mysqld

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"cnmsql.co/internal/pki"
)

// patience is for what takes as long as the machine takes.
const patience = 2 * time.Minute

// Process is one that runs beside this.
type Process struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
}

// Start starts a process.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { defer close(p.done); _ = cmd.Wait() }()
	return p, nil
}

// PID is its number.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Answers waits until ask has no error, for two minutes at most. The name is for the error of a
// process that ends before, or does not answer.
func (p *Process) Answers(ctx context.Context, name string, ask func() error) error {
	for deadline := time.After(patience); ; {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended, and said:\n%s", name, p.said.String())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", name, err)
		case <-deadline:
			return fmt.Errorf("%s does not answer: %w", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// End kills it, and waits until it has ended; one that was not started has.
func (p *Process) End() {
	if p != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// FreeAddress of loopback, with a port on which nobody listens.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Certify writes ca.pem, and cert.pem and key.pem for loopback, into a directory.
func Certify(dir string) error {
	bundle, err := pki.NewCA("test", time.Now())
	if err != nil {
		return err
	}
	ca, err := pki.ParseCA(bundle)
	if err != nil {
		return err
	}
	leaf, err := ca.Issue(pki.Leaf{Name: "loopback", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now())
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(dir+"/ca.pem", ca.Trust(), 0o644), os.WriteFile(dir+"/cert.pem", leaf.Cert, 0o644),
		os.WriteFile(dir+"/key.pem", leaf.Key, 0o600))
}
