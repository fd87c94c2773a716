package backup

import (
	"os"
	"testing"

	"cnmsql.co/internal/clone"
	"cnmsql.co/test/mysqld"
)

// server is a real mysqld that backups can be taken of.
type server struct{ *mysqld.Test }

// newServer prepares a server with an empty data directory.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{mysqld.ForTest(t)}
	must(t, os.Mkdir(s.Data(), 0o755))
	return s
}

func (s *server) start(id int, args ...string) {
	s.T.Helper()
	s.Start(id, append(args, "--plugin-load-add=mysql_clone.so")...)
}

// mayBeCopied makes the account of those who take a copy.
func (s *server) mayBeCopied() {
	s.T.Helper()
	s.Exec("CREATE USER backup IDENTIFIED WITH caching_sha2_password BY 'secret'")
	s.Exec("GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO backup")
}

func (s *server) donor() clone.Donor {
	return clone.Donor{Address: s.Address(), User: "backup", Password: "secret", TLS: s.TLS()}
}
