package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	_ "github.com/go-sql-driver/mysql" // the driver

	"cnmsql.co/test/mysqld"
)

// server is a real mysqld on loopback.
type server struct {
	dir, root, address string
	files              mysqld.Files
	db                 *sql.DB
	process            *mysqld.Process
}

// newServer prepares a server in a directory of its own, without data.
func newServer(dir, rootfs string) (*server, error) {
	files, err := mysqld.Open(rootfs)
	if err != nil {
		return nil, err
	}
	address, err := mysqld.FreeAddress()
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, root: rootfs, files: files, address: address}
	return s, errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(dir+"/tmp", 0o755), os.Mkdir(s.data(), 0o755), mysqld.Certify(dir))
}

func (s *server) data() string { return s.dir + "/data" }

func (s *server) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	return s.files.Program(ctx, name, append([]string{"--no-defaults"}, args...)...)
}

func (s *server) mysqld(ctx context.Context, args ...string) *exec.Cmd {
	all := []string{"--tmpdir=" + s.dir + "/tmp", "--datadir=" + s.data(), "--innodb-redo-log-capacity=100M", "--secure-file-priv=NULL"}
	for name, value := range s.files.Settings() {
		all = append(all, "--"+name+"="+value)
	}
	return s.program(ctx, "sbin/mysqld", append(all, args...)...)
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
	s.process, err = mysqld.Start(s.mysqld(ctx, "--socket="+s.socket(), "--port="+port, "--bind-address=127.0.0.1", "--mysqlx=OFF",
		"--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--plugin-load-add=mysql_clone.so", "--local-infile=ON",
		"--ssl-cert="+s.dir+"/cert.pem", "--ssl-key="+s.dir+"/key.pem", "--ssl-ca="+s.dir+"/ca.pem", "--innodb-buffer-pool-size=1G"))
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("mysql", "root@unix("+s.socket()+")/mysql?interpolateParams=true"); err != nil {
		return err
	}
	return s.process.Answers("mysqld", func() error { return s.db.PingContext(ctx) })
}

func (s *server) socket() string { return s.dir + "/s" }

// end ends the server; one that was not started has ended.
func (s *server) end() {
	if s.db != nil {
		_ = s.db.Close()
	}
	s.process.End()
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
