package clone

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

// patience is for what takes as long as the machine takes.
const patience = 60 * time.Second

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

// server is a real mysqld on loopback, with a keyring so that tables can be encrypted.
type server struct {
	t    *testing.T
	dir  string
	root string
	port int
	tls  *tls.Config // for its clients
	db   *sql.DB
	cmd  *exec.Cmd
	log  bytes.Buffer
	done chan struct{}
}

// newServer prepares a server in a directory of its own, without data.
func newServer(t *testing.T) *server {
	t.Helper()
	root := rootfs(t)
	dir, err := os.MkdirTemp("", "cnmsql") // t.TempDir is too long a path for a socket
	must(t, err)
	s := &server{t: t, dir: dir, root: root, port: freePort(t)}
	t.Cleanup(func() {
		s.kill()
		if t.Failed() {
			t.Logf("mysqld on %d said:\n%s", s.port, s.log.String())
		}
		must(t, os.RemoveAll(dir))
	})
	for _, d := range []string{"bin", "plugin", "tmp"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	// Beside the binary lies what tells which keyring there is, and beside the keyring's
	// library, its file.
	must(t, copyFile(root+"/usr/sbin/mysqld", dir+"/bin/mysqld"))
	must(t, os.WriteFile(dir+"/bin/mysqld.my", []byte(`{"components":"file://component_keyring_file"}`), 0o444))
	libraries, err := filepath.Glob(root + "/usr/lib/mysql/plugin/*.so")
	must(t, err)
	for _, l := range libraries {
		must(t, os.Symlink(l, filepath.Join(dir, "plugin", filepath.Base(l))))
	}
	must(t, os.WriteFile(dir+"/plugin/component_keyring_file.cnf", []byte(`{"path":"`+dir+`/keyring","read_only":false}`), 0o644))
	s.certify()
	return s
}

func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return exec.Command("cp", from, to).Run()
}

func freePort(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// certify gives the server a certificate, and its clients trust in it.
func (s *server) certify() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(s.t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "donor"}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(s.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	must(s.t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(s.t, os.WriteFile(s.dir+"/cert.pem", cert, 0o644))
	must(s.t, os.WriteFile(s.dir+"/key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	s.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func (s *server) data() string { return s.dir + "/data" }

func (s *server) mysqld(args ...string) *exec.Cmd {
	lib := s.root + "/usr/lib/x86_64-linux-gnu:" + s.root + "/usr/lib/mysql/private"
	args = append([]string{"--library-path", lib, s.dir + "/bin/mysqld", "--no-defaults", "--user=root", "--basedir=" + s.root + "/usr",
		"--lc-messages-dir=" + s.root + "/usr/share/mysql", "--character-sets-dir=" + s.root + "/usr/share/mysql/charsets",
		"--plugin-dir=" + s.dir + "/plugin", "--tmpdir=" + s.dir + "/tmp", "--datadir=" + s.data(), "--innodb-redo-log-capacity=64M",
		"--innodb-use-native-aio=OFF", "--secure-file-priv=NULL"}, args...)
	cmd := exec.Command(s.root+"/lib64/ld-linux-x86-64.so.2", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// initialize makes an empty data directory.
func (s *server) initialize() {
	s.t.Helper()
	out, err := s.mysqld("--initialize-insecure", "--innodb-flush-method=nosync").CombinedOutput()
	if err != nil {
		s.t.Fatalf("initialising: %v\n%s", err, out)
	}
}

// start starts the server on the data that it has, and waits until it can be asked.
func (s *server) start(id int) {
	s.t.Helper()
	s.cmd = s.mysqld("--socket="+s.dir+"/s", fmt.Sprintf("--port=%d", s.port), "--bind-address=127.0.0.1", "--mysqlx=OFF",
		fmt.Sprintf("--server-id=%d", id), "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--plugin-load-add=mysql_clone.so",
		"--ssl-cert="+s.dir+"/cert.pem", "--ssl-key="+s.dir+"/key.pem", "--ssl-ca="+s.dir+"/cert.pem", "--skip-replica-start",
		"--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	must(s.t, s.cmd.Start())
	s.done = make(chan struct{})
	go func() { defer close(s.done); _ = s.cmd.Wait() }()
	var err error
	s.db, err = sql.Open("mysql", "root@unix("+s.dir+"/s)/mysql?interpolateParams=true")
	must(s.t, err)
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
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

// end has mysqld write all to its files and end.
func (s *server) end() {
	s.t.Helper()
	s.exec("SET GLOBAL innodb_fast_shutdown = 1")
	_ = s.db.Close()
	must(s.t, s.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.t.Fatal("mysqld does not end")
	}
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

// tables are those of users, quoted, in order.
func (s *server) tables() (names []string) {
	s.t.Helper()
	rows, err := s.db.Query("SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables " +
		"WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1")
	must(s.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		must(s.t, rows.Scan(&name))
		names = append(names, name)
	}
	must(s.t, rows.Err())
	return names
}

// checksums of all tables of users; each has to be well by its own check, too.
func (s *server) checksums() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, table := range s.tables() {
		var name, op, kind, text string
		must(s.t, s.db.QueryRow("CHECK TABLE "+table).Scan(&name, &op, &kind, &text))
		if text != "OK" {
			s.t.Errorf("CHECK TABLE %s: %s %s", table, kind, text)
		}
		var sum sql.NullString
		must(s.t, s.db.QueryRow("CHECKSUM TABLE "+table).Scan(&name, &sum))
		out[table] = sum.String
	}
	return out
}

func (s *server) donor() Donor {
	return Donor{Address: fmt.Sprintf("127.0.0.1:%d", s.port), User: "backup", Password: "secret", TLS: s.tls}
}
