package archive

import (
	"os/exec"
	"testing"

	"cnmsql.co/test/mysqld"
)

// server is a real mysqld that writes binary logs.
type server struct{ *mysqld.Test }

func newServer(t *testing.T) *server {
	t.Helper()
	return &server{mysqld.ForTest(t)}
}

// copyOf gives the server the data that another, which does not run, has.
func (s *server) copyOf(other *server) {
	s.T.Helper()
	must(s.T, exec.Command("cp", "-a", other.Data(), s.Data()).Run())
}

func (s *server) start(id int, args ...string) {
	s.T.Helper()
	s.Start(id, append([]string{"--log-bin=binlog", "--relay-log=relay-bin"}, args...)...)
}
