package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver

	"cnmsql.co/internal/pki"
)

// patience is for what takes as long as the machine takes.
const patience = 2 * time.Minute

// server is a real mysqld on loopback.
type server struct {
	dir, root, address string
	db                 *sql.DB
	process            *process
}

// newServer prepares a server in a directory of its own, without data.
func newServer(dir, rootfs string) (*server, error) {
	root, err := filepath.EvalSymlinks(rootfs)
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, root: root, address: address}
	return s, errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(dir+"/tmp", 0o755), os.Mkdir(s.data(), 0o755), certify(dir))
}

func (s *server) data() string { return s.dir + "/data" }

// program of the server's files, which are of another system than this one.
func (s *server) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	lib := s.root + "/usr/lib/x86_64-linux-gnu:" + s.root + "/usr/lib/mysql/private"
	args = append([]string{"--library-path", lib, s.root + "/usr/" + name, "--no-defaults"}, args...)
	cmd := exec.CommandContext(ctx, s.root+"/lib64/ld-linux-x86-64.so.2", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (s *server) mysqld(ctx context.Context, args ...string) *exec.Cmd {
	return s.program(ctx, "sbin/mysqld", append([]string{"--user=root", "--basedir=" + s.root + "/usr",
		"--lc-messages-dir=" + s.root + "/usr/share/mysql", "--character-sets-dir=" + s.root + "/usr/share/mysql/charsets",
		"--plugin-dir=" + s.root + "/usr/lib/mysql/plugin", "--tmpdir=" + s.dir + "/tmp", "--datadir=" + s.data(),
		"--innodb-redo-log-capacity=100M", "--secure-file-priv=NULL"}, args...)...)
}

// initialize makes an empty data directory.
func (s *server) initialize(ctx context.Context) error {
	if out, err := s.mysqld(ctx, "--initialize-insecure").CombinedOutput(); err != nil {
		return fmt.Errorf("initialising a data directory: %w\n%s", err, out)
	}
	return nil
}

// start starts the server on the data that it has, and waits until it can be asked.
func (s *server) start(ctx context.Context) error {
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return err
	}
	s.process, err = startProcess(s.mysqld(ctx, "--socket="+s.socket(), "--port="+port, "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--plugin-load-add=mysql_clone.so", "--local-infile=ON",
		"--ssl-cert="+s.dir+"/cert.pem", "--ssl-key="+s.dir+"/key.pem", "--ssl-ca="+s.dir+"/ca.pem", "--innodb-buffer-pool-size=1G"))
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("mysql", "root@unix("+s.socket()+")/mysql?interpolateParams=true"); err != nil {
		return err
	}
	return s.process.answers("mysqld", func() error { return s.db.PingContext(ctx) })
}

func (s *server) socket() string { return s.dir + "/s" }

// end ends the server; one that was not started has ended.
func (s *server) end() {
	if s.db != nil {
		_ = s.db.Close()
	}
	s.process.end()
}

func (s *server) exec(ctx context.Context, queries ...string) error {
	for _, q := range queries {
		if _, err := s.db.ExecContext(ctx, q); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	return nil
}

func (s *server) text(ctx context.Context, query string) (out string, err error) {
	if err = s.db.QueryRowContext(ctx, query).Scan(&out); err != nil {
		err = fmt.Errorf("%s: %w", query, err)
	}
	return out, err
}

// process is one that runs beside this.
type process struct {
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan struct{}
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.said, &p.said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { defer close(p.done); _ = cmd.Wait() }()
	return p, nil
}

// answers waits until it does.
func (p *process) answers(name string, ask func() error) error {
	for deadline := time.After(patience); ; {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended, and said:\n%s", name, p.said.String())
		case <-deadline:
			return fmt.Errorf("%s does not answer: %w", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (p *process) end() {
	if p != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// certify writes a certificate for loopback into a directory.
func certify(dir string) error {
	bundle, err := pki.NewCA("bench", time.Now())
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
