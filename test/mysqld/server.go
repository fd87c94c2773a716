package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver
)

// Server is a mysqld on loopback, with one directory for all that is its own.
type Server struct {
	Dir   string
	Files Files
	// Port of 127.0.0.1 is where it listens.
	Port int
	// Binary is the mysqld, and Plugins where its libraries are. Who needs others than those of
	// the packages changes them before the server is started.
	Binary, Plugins string
	// Flags are given to mysqld whatever it is started for.
	Flags []string
	// DB is root's way to a server that was started.
	DB *sql.DB

	process *Process
}

// New prepares a server in a directory, which is made, without data: whoever does not
// initialise it makes Data.
func New(dir string, files Files) (*Server, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir, Files: files, Port: int(at.Port()), Binary: files.root + "/usr/sbin/mysqld",
		Plugins: files.root + "/usr/lib/mysql/plugin"}
	return s, errors.Join(os.MkdirAll(dir+"/tmp", 0o755), Certify(dir))
}

// Data is the data directory.
func (s *Server) Data() string { return s.Dir + "/data" }

// Address is where the server listens, as host:port.
func (s *Server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// Socket is where root gets in.
func (s *Server) Socket() string { return s.Dir + "/s" }

// PID is that of a server that was started.
func (s *Server) PID() int { return s.process.PID() }

// Authority is the file of the CA that has signed the server's certificate.
func (s *Server) Authority() string { return s.Dir + "/ca.pem" }

// Program is one of the packages, by its path below /usr. It reads no file of options.
func (s *Server) Program(ctx context.Context, name string, args ...string) *exec.Cmd {
	return s.Files.Program(ctx, name, append([]string{"--no-defaults"}, args...)...)
}

func (s *Server) mysqld(ctx context.Context, args ...string) *exec.Cmd {
	settings := s.Files.Settings()
	settings["plugin_dir"] = s.Plugins
	all := []string{"--no-defaults", "--tmpdir=" + s.Dir + "/tmp", "--datadir=" + s.Data(), "--secure-file-priv=NULL"}
	for name, value := range settings {
		all = append(all, "--"+name+"="+value)
	}
	return s.Files.run(ctx, s.Binary, append(append(all, s.Flags...), args...)...)
}

// Initialize makes the data of an empty server.
func (s *Server) Initialize(ctx context.Context, args ...string) error {
	if out, err := s.mysqld(ctx, append([]string{"--initialize-insecure"}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("initialising a data directory: %w\n%s", err, out)
	}
	return nil
}

// Start starts the server on the data that it has, and waits until it can be asked. It ends
// with ctx.
func (s *Server) Start(ctx context.Context, id int, args ...string) (err error) {
	cmd := s.mysqld(ctx, append([]string{"--socket=" + s.Socket(), fmt.Sprintf("--port=%d", s.Port),
		"--bind-address=127.0.0.1", "--mysqlx=OFF",
		fmt.Sprintf("--server-id=%d", id), "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--ssl-cert=" + s.Dir + "/cert.pem", "--ssl-key=" + s.Dir + "/key.pem", "--ssl-ca=" + s.Authority()},
		args...)...)
	if s.process, err = Start(cmd); err != nil {
		return err
	}
	if s.DB, err = sql.Open("mysql", "root@unix("+s.Socket()+")/mysql?interpolateParams=true"); err != nil {
		return err
	}
	return s.process.Answers(ctx, "mysqld", func() error { return s.DB.PingContext(ctx) })
}

// Stop has mysqld write all to its files and end.
func (s *Server) Stop() error {
	_, err := s.DB.Exec("SET GLOBAL innodb_fast_shutdown = 1")
	if err = errors.Join(err, s.DB.Close(), s.process.cmd.Process.Signal(syscall.SIGTERM)); err != nil {
		return err
	}
	select {
	case <-s.process.done:
		return nil
	case <-time.After(patience):
		return errors.New("mysqld does not end")
	}
}

// Kill ends the server at once; one that was not started has ended.
func (s *Server) Kill() {
	if s.DB != nil {
		_ = s.DB.Close()
	}
	s.process.End()
}
