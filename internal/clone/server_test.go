package clone

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cnmsql.co/test/mysqld"
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
	must(t, os.WriteFile(s.Plugins+"/component_keyring_file.cnf", []byte(`{"path":"`+dir+`/keyring","read_only":false}`), 0o644))
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

// tables are those of users, quoted, in order.
func (s *server) tables() (names []string) {
	s.T.Helper()
	rows, err := s.DB.Query("SELECT CONCAT('`', table_schema, '`.`', table_name, '`') FROM information_schema.tables " +
		"WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1")
	must(s.T, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		must(s.T, rows.Scan(&name))
		names = append(names, name)
	}
	must(s.T, rows.Err())
	return names
}

// checksums of all tables of users; each has to be well by its own check, too.
func (s *server) checksums() map[string]string {
	s.T.Helper()
	out := map[string]string{}
	for _, table := range s.tables() {
		var name, op, kind, text string
		must(s.T, s.DB.QueryRow("CHECK TABLE "+table).Scan(&name, &op, &kind, &text))
		if text != "OK" {
			s.T.Errorf("CHECK TABLE %s: %s %s", table, kind, text)
		}
		var sum sql.NullString
		must(s.T, s.DB.QueryRow("CHECKSUM TABLE "+table).Scan(&name, &sum))
		out[table] = sum.String
	}
	return out
}

func (s *server) donor() Donor {
	return Donor{Address: s.Address(), User: "backup", Password: "secret", TLS: s.TLS()}
}
