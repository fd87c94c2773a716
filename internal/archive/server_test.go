package archive

import (
	"bytes"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"cnmsql.co/internal/gtid"
)

// rootfs is where the files of a MySQL image are; without, the test is skipped.
func rootfs(t *testing.T) string {
	root := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if root == "" {
		t.Skip("set CNMSQL_MYSQL_ROOTFS to the directory that `go run ./tools/image mysql-rootfs` prints, to try this with a real mysqld")
	}
	root, err := filepath.EvalSymlinks(root)
	must(t, err)
	return root
}

// server is a real mysqld on a socket.
type server struct {
	t    *testing.T
	dir  string
	root string
	db   *sql.DB
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{}
}

func newServer(t *testing.T) *server {
	t.Helper()
	root := rootfs(t)
	dir, err := os.MkdirTemp("", "cnmsql") // t.TempDir is too long a path for a socket
	must(t, err)
	s := &server{t: t, dir: dir, root: root}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("mysqld said:\n%s", s.log.String())
		}
		must(t, os.RemoveAll(dir))
	})
	must(t, os.Mkdir(dir+"/tmp", 0o755))
	return s
}

func (s *server) data() string { return s.dir + "/data" }

func (s *server) program(name string, args ...string) *exec.Cmd {
	lib := s.root + "/usr/lib/x86_64-linux-gnu:" + s.root + "/usr/lib/mysql/private"
	cmd := exec.Command(s.root+"/lib64/ld-linux-x86-64.so.2", append([]string{"--library-path", lib, s.root + name}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (s *server) mysqld(args ...string) *exec.Cmd {
	return s.program("/usr/sbin/mysqld", append([]string{"--no-defaults", "--user=root", "--basedir=" + s.root + "/usr",
		"--lc-messages-dir=" + s.root + "/usr/share/mysql", "--character-sets-dir=" + s.root + "/usr/share/mysql/charsets",
		"--tmpdir=" + s.dir + "/tmp", "--datadir=" + s.data(), "--innodb-redo-log-capacity=64M", "--innodb-use-native-aio=OFF",
		"--secure-file-priv=NULL"}, args...)...)
}

func (s *server) initialize() {
	s.t.Helper()
	if out, err := s.mysqld("--initialize-insecure", "--innodb-flush-method=nosync").CombinedOutput(); err != nil {
		s.t.Fatalf("initialising: %v\n%s", err, out)
	}
}

// copyOf gives the server the data that another, which does not run, has.
func (s *server) copyOf(other *server) {
	s.t.Helper()
	must(s.t, exec.Command("cp", "-a", other.data(), s.data()).Run())
}

func (s *server) start(id int, args ...string) {
	s.t.Helper()
	port := freePort(s.t)
	s.cmd = s.mysqld(append([]string{"--socket=" + s.dir + "/s", fmt.Sprintf("--port=%d", port), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		fmt.Sprintf("--server-id=%d", id), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--skip-replica-start", "--log-bin=binlog",
		"--relay-log=relay-bin", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M"}, args...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	must(s.t, s.cmd.Start())
	s.done = make(chan struct{})
	go func() { defer close(s.done); _ = s.cmd.Wait() }()
	var err error
	s.db, err = sql.Open("mysql", "root@unix("+s.dir+"/s)/mysql?interpolateParams=true")
	must(s.t, err)
	for deadline := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		if err = s.db.Ping(); err == nil {
			return
		}
		select {
		case <-s.done:
			s.t.Fatal("mysqld ended")
		default:
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("mysqld does not start: %v", err)
		}
	}
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *server) kill() {
	if s.db != nil {
		_ = s.db.Close()
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

func (s *server) exec(query string, args ...any) {
	s.t.Helper()
	if _, err := s.db.Exec(query, args...); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
}

func (s *server) text(query string, args ...any) string {
	s.t.Helper()
	var out string
	if err := s.db.QueryRow(query, args...).Scan(&out); err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return out
}

func (s *server) executed() gtid.Set {
	s.t.Helper()
	return gtid.MustParse(s.text("SELECT @@GLOBAL.gtid_executed"))
}
