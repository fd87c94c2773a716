package clone

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/test/mysqld"
	"cnmsql.co/test/zoo"
)

// patience is for what takes as long as the machine takes.
const patience = 60 * time.Second

// server is a real mysqld with a keyring, so that tables can be encrypted.
type server struct{ *mysqld.Test }

// newServer prepares a server in a directory of its own, without data.
func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{mysqld.ForTest(t)}
	dir := s.Dir
	for _, d := range []string{"bin", "plugin"} {
		must(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	// Beside the binary lies what tells which keyring there is, and beside the keyring's
	// library, its file.
	libraries, err := filepath.Glob(s.Plugins + "/*.so")
	must(t, err)
	must(t, copyFile(s.Binary, dir+"/bin/mysqld"))
	must(t, os.WriteFile(dir+"/bin/mysqld.my", []byte(`{"components":"file://component_keyring_file"}`), 0o444))
	s.Binary, s.Plugins = dir+"/bin/mysqld", dir+"/plugin"
	for _, l := range libraries {
		must(t, os.Symlink(l, filepath.Join(s.Plugins, filepath.Base(l))))
	}
	must(t, os.WriteFile(s.Plugins+"/component_keyring_file.cnf",
		[]byte(`{"path":"`+dir+`/keyring","read_only":false}`), 0o644))
	return s
}

func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	return exec.Command("cp", from, to).Run()
}

func (s *server) start(id int) {
	s.T.Helper()
	s.Start(id, "--plugin-load-add=mysql_clone.so")
}

// fill makes the zoo, and the account of those who take a copy of it.
func (s *server) fill(rounds int) {
	s.T.Helper()
	s.account()
	zoo.Fill(s.Test, rounds)
}

// account makes the account of those who take a copy.
func (s *server) account() {
	s.T.Helper()
	s.Exec("CREATE USER backup IDENTIFIED WITH caching_sha2_password BY 'secret'")
	s.Exec("GRANT BACKUP_ADMIN, REPLICATION SLAVE ON *.* TO backup")
}

func (s *server) donor() Donor {
	return Donor{Address: s.Address(), User: "backup", Password: "secret", TLS: s.TLS()}
}
