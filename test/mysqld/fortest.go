package mysqld

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"os"
	"testing"

	"cnmsql.co/internal/gtid"
)

// Test is a Server of one test: what fails ends the test, and the server goes with it.
type Test struct {
	*Server
	T testing.TB
}

// ForTest prepares a small server without data. Without CNMSQL_MYSQL_ROOTFS the test is
// skipped.
func ForTest(t testing.TB) *Test {
	t.Helper()
	rootfs := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if rootfs == "" {
		t.Skip("set CNMSQL_MYSQL_ROOTFS to the directory that `go run ./tools/image mysql-rootfs` prints, to try " +
			"this with a real mysqld")
	}
	dir, err := os.MkdirTemp("", "cnmsql") // t.TempDir is too long a path for a socket
	must(t, err)
	files, err := Open(rootfs)
	must(t, err)
	s, err := New(dir, files)
	must(t, err)
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() && s.process != nil {
			t.Logf("mysqld on %d said:\n%s", s.Port, s.process.said.String())
		}
		must(t, os.RemoveAll(dir))
	})
	s.Flags = []string{"--innodb-redo-log-capacity=64M", "--innodb-use-native-aio=OFF"}
	return &Test{s, t}
}

// Initialize makes the data of an empty server.
func (s *Test) Initialize() {
	s.T.Helper()
	must(s.T, s.Server.Initialize(context.Background(), "--innodb-flush-method=nosync"))
}

// Start starts the server, which need not survive a loss of power, until the test ends.
func (s *Test) Start(id int, args ...string) {
	s.T.Helper()
	args = append([]string{"--skip-replica-start", "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2",
		"--innodb-buffer-pool-size=64M"}, args...)
	must(s.T, s.Server.Start(context.Background(), id, args...))
}

// Stop has mysqld write all to its files and end.
func (s *Test) Stop() {
	s.T.Helper()
	must(s.T, s.Server.Stop())
}

// Exec runs a statement.
func (s *Test) Exec(query string, args ...any) {
	s.T.Helper()
	if _, err := s.DB.Exec(query, args...); err != nil {
		s.T.Fatalf("%s: %v", query, err)
	}
}

// Text is what a question has for an answer; "" for NULL.
func (s *Test) Text(query string, args ...any) string {
	s.T.Helper()
	var out sql.NullString
	if err := s.DB.QueryRow(query, args...).Scan(&out); err != nil {
		s.T.Fatalf("%s: %v", query, err)
	}
	return out.String
}

// Executed are the transactions that the server has.
func (s *Test) Executed() gtid.Set {
	s.T.Helper()
	return gtid.MustParse(s.Text("SELECT @@GLOBAL.gtid_executed"))
}

// TLS is for clients of the server, which trust in its certificate.
func (s *Test) TLS() *tls.Config {
	s.T.Helper()
	authority, err := os.ReadFile(s.Authority())
	must(s.T, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
