package client

import (
	"bytes"
	"os"
	"testing"

	"cnmsql.co/test/mysqld"
)

// TestADumpReachesTheReplicasOfWhoeverLoadsIt copies a table as docs/restore.md does: root dumps
// it of a server with GTIDs, and root loads it into the primary of another cluster.
func TestADumpReachesTheReplicasOfWhoeverLoadsIt(t *testing.T) {
	restored, primary, replica := threeServers(t)
	restored.Exec("CREATE DATABASE shop")
	restored.Exec("CREATE TABLE shop.orders (id INT PRIMARY KEY, what VARCHAR(40), raw VARBINARY(8))")
	restored.Exec(`INSERT INTO shop.orders VALUES (1, 'a "b" \\ ü', x'0001fe0d0a'), (2, NULL, x'')`)
	restored.Exec("CREATE TRIGGER shop.counts BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.raw = x'01'")
	primary.Exec("CREATE DATABASE shop")
	primary.Exec("CREATE USER replication IDENTIFIED BY 'secret'")
	primary.Exec("GRANT REPLICATION SLAVE ON *.* TO replication")
	replica.Exec("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=?, SOURCE_USER='replication', "+
		"SOURCE_PASSWORD='secret', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", primary.Port)
	replica.Exec("START REPLICA")

	dump := dumped(t, restored, "shop", "orders")
	loaded(t, primary, dump, "shop")

	if out := replica.Text("SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 30)", primary.Executed().String()); out != "0" {
		t.Fatalf("the replica does not come to what its primary has: %s", out)
	}
	const rows = "SELECT GROUP_CONCAT(id, '=', IFNULL(what, 'none'), '=', HEX(raw) ORDER BY id) FROM shop.orders"
	if got, want := replica.Text(rows), restored.Text(rows); got != want {
		t.Errorf("the replica has %s, not %s", got, want)
	}
	if got := replica.Text("SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_NAME='counts'"); got != "1" {
		t.Errorf("the replica has %s triggers", got)
	}
	primary.Exec("DELETE FROM shop.orders")
	primary.Exec("INSERT INTO shop.orders VALUES (3, 'written since', x'')")
	if out, err := load(t, primary, dump, "shop"); err == nil {
		t.Errorf("a table that is there was loaded over: %s", out)
	}
	if got := primary.Text("SELECT COUNT(*) FROM shop.orders WHERE id = 3"); got != "1" {
		t.Error("what was written since is gone")
	}
}

// threeServers have nothing in common: each has a UUID of its own.
func threeServers(t *testing.T) (a, b, c *mysqld.Test) {
	t.Helper()
	a, b, c = mysqld.ForTest(t), mysqld.ForTest(t), mysqld.ForTest(t)
	a.Initialize()
	for _, s := range []*mysqld.Test{b, c} {
		must(t, os.CopyFS(s.Data(), os.DirFS(a.Data())))
		must(t, os.RemoveAll(s.Data()+"/auto.cnf"))
	}
	for id, s := range []*mysqld.Test{a, b, c} {
		s.Start(id+1, "--log-bin=binlog")
	}
	return a, b, c
}

func dumped(t *testing.T, s *mysqld.Test, args ...string) []byte {
	t.Helper()
	all := append([]string{"--user=root", "--socket=" + s.Socket()}, append(DumpFlags(), args...)...)
	cmd := s.Program(t.Context(), "bin/mysqldump", all...)
	var complained bytes.Buffer
	cmd.Stderr = &complained
	out, err := cmd.Output()
	if err != nil || complained.Len() > 0 {
		t.Fatalf("mysqldump: %v\n%s", err, complained.String())
	}
	return out
}

func loaded(t *testing.T, s *mysqld.Test, dump []byte, database string) {
	t.Helper()
	if out, err := load(t, s, dump, database); err != nil {
		t.Fatalf("mysql: %v\n%s", err, out)
	}
}

func load(t *testing.T, s *mysqld.Test, dump []byte, database string) ([]byte, error) {
	t.Helper()
	cmd := s.Program(t.Context(), "bin/mysql", "--user=root", "--socket="+s.Socket(), database)
	cmd.Stdin = bytes.NewReader(dump)
	return cmd.CombinedOutput()
}
