package writer

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mysqld is a real server in a chroot of the MySQL image's files.
type mysqld struct {
	t       *testing.T
	root    string
	dir     string // as seen from inside
	port    int
	process *exec.Cmd
}

const mysqlID = 999

func startMysqld(t *testing.T) *mysqld {
	t.Helper()
	root := os.Getenv("CNMSQL_MYSQL_ROOTFS")
	if root == "" || os.Geteuid() != 0 {
		t.Skip("needs root and a real mysqld: CNMSQL_MYSQL_ROOTFS=$(go run ./tools/image mysql-rootfs) go test " +
			"./test/writer")
	}
	dir, err := os.MkdirTemp(filepath.Join(root, "tmp"), "writer-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, mysqlID, mysqlID); err != nil {
		t.Fatal(err)
	}
	m := &mysqld{t: t, root: root, dir: strings.TrimPrefix(dir, root), port: freePort(t)}
	// root@localhost is nobody to a server that does not look up 127.0.0.1.
	user := "CREATE USER writer IDENTIFIED BY 'secret';\nGRANT ALL ON *.* TO writer;\n"
	if err := os.WriteFile(filepath.Join(dir, "init.sql"), []byte(user), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := m.command("--initialize-insecure", "--init-file="+m.dir+"/init.sql").CombinedOutput(); err != nil {
		t.Fatalf("initialize: %v\n%s", err, out)
	}
	t.Cleanup(m.kill)
	m.start()
	return m
}

func freePort(t *testing.T) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// command leaves durability as it is: commits shall cost, and survive, what they do in earnest.
func (m *mysqld) command(args ...string) *exec.Cmd {
	cmd := exec.Command("/usr/sbin/mysqld", append([]string{
		"--no-defaults", "--datadir=" + m.dir + "/data", "--socket=" + m.dir + "/sock", "--pid-file=" + m.dir +
			"/pid", "--mysqlx=OFF",
		"--server-id=1", "--skip-name-resolve", "--performance-schema=OFF", "--innodb-buffer-pool-size=64M",
		"--secure-file-priv=NULL", fmt.Sprintf("--port=%d", m.port), "--bind-address=127.0.0.1",
	}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot: m.root, Credential: &syscall.Credential{Uid: mysqlID, Gid: mysqlID}, Pdeathsig: syscall.SIGKILL,
	}
	return cmd
}

func (m *mysqld) start() {
	m.t.Helper()
	m.process = m.command()
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// kill is kill -9, and waits until the process is gone.
func (m *mysqld) kill() {
	m.process.Process.Kill()
	m.process.Wait()
}

func (m *mysqld) config() Config {
	return Config{Addr: fmt.Sprintf("127.0.0.1:%d", m.port), User: "writer", Password: "secret"}
}

// patient is for who tries nothing that a disk that is busy for a second may take part in.
func (m *mysqld) patient() Config {
	c := m.config()
	c.IOTimeout = 30 * time.Second
	return c
}

func (m *mysqld) exec(statements ...string) {
	m.t.Helper()
	db, err := Open(m.config())
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.ExecContext(m.t.Context(), s); err != nil {
			m.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (m *mysqld) verify(w *Writer) Verification {
	m.t.Helper()
	db, err := Open(m.config())
	if err != nil {
		m.t.Fatal(err)
	}
	defer db.Close()
	v, err := w.Verify(m.t.Context(), db)
	if err != nil {
		m.t.Fatal(err)
	}
	return v
}

func mustAck(t *testing.T, w *Writer, after time.Time) time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	at, err := w.WaitAck(ctx, after)
	if err != nil {
		t.Fatalf("nothing acknowledged after %s: %v; errors so far %+v", after, err, w.record.report("").Errors)
	}
	return at
}

// until waits for what comes in the time that the machine takes.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.After(30 * time.Second); !is(); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatal("in vain: " + what)
		}
	}
}

func TestKillOfRealServerLosesNothingAndIsMeasured(t *testing.T) {
	m := startMysqld(t)
	w := New(m.config())
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAck(t, w, time.Now().Add(time.Second))
	m.kill()
	killed := time.Now()
	time.Sleep(500 * time.Millisecond)
	m.start()
	first := mustAck(t, w, killed)
	mustAck(t, w, time.Now().Add(time.Second))
	r := w.Stop()
	v := m.verify(w)
	t.Logf("writable %s after the kill; gap %s; %d acknowledged, %d unknown (%d there), %d refused, %d unconnected; "+
		"latency %+v; errors %+v",
		first.Sub(killed), r.LongestGap.Duration(), r.Acknowledged, r.Unknown, v.UnknownPresent, r.Refused,
		r.Unconnected, r.Latency, r.Errors)
	if !v.OK() || len(v.OutOfOrder) > 0 || v.Rows != r.Acknowledged+v.UnknownPresent {
		t.Errorf("got %+v", v)
	}
	if r.LongestGap.End != first || r.LongestGap.Duration() < 500*time.Millisecond || r.Unconnected == 0 {
		t.Errorf("the outage was not measured: %+v", r.Snapshot)
	}
}

func TestAStatementThatWasGivenUpIsWaitedFor(t *testing.T) {
	m := startMysqld(t)
	w := New(m.config())
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Stop()
	m.exec("CREATE DATABASE late", "CREATE TABLE late.rows_ (id INT PRIMARY KEY)")
	db, err := Open(m.config())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	holds, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer holds.Rollback()
	if _, err := holds.ExecContext(t.Context(), "INSERT INTO late.rows_ VALUES (0)"); err != nil {
		t.Fatal(err)
	}
	// What waits for a lock of a row is not ended because its client has gone: neither is a commit that waits for
	// other servers.
	server, err := newServer(m.config().withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	session, err := server.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.exec("INSERT INTO late.rows_ VALUES (0)"); outcomeOf(err) != Unknown {
		t.Fatalf("%v", err)
	}
	session.close()
	time.AfterFunc(300*time.Millisecond, func() { holds.Rollback() })
	if _, err := Settled(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := db.QueryRow("SELECT COUNT(*) FROM late.rows_").Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

func TestRealServersReadOnlyTimeIsRefusedAndLeavesNoRow(t *testing.T) {
	m := startMysqld(t)
	w := New(m.patient())
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustAck(t, w, time.Now())
	m.exec("SET GLOBAL super_read_only = ON")
	until(t, "a write is refused", func() bool { return w.Snapshot().Refused > 0 })
	writable := time.Now()
	m.exec("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
	mustAck(t, w, writable)
	r := w.Stop()
	if v := m.verify(w); r.Refused == 0 || r.Unknown != 0 || !v.OK() {
		t.Errorf("report %+v, verification %+v", r, v)
	}
}

func TestLostAndInventedRowsAreFoundInRealTable(t *testing.T) {
	m := startMysqld(t)
	w, other := New(m.patient()), New(m.patient())
	for _, each := range []*Writer{w, other} {
		if err := each.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the row that is to be lost is there", func() bool {
		w.record.mu.Lock()
		defer w.record.mu.Unlock()
		of := w.record.attempts[1]
		return len(of) >= 3 && of[2].outcome == Acknowledged
	})
	w.Stop()
	other.Stop()
	if v := m.verify(w); !v.OK() {
		t.Fatalf("before anything was done: %+v", v)
	}
	m.exec("DELETE FROM cnmsql_writer.rows WHERE run = '"+w.Run()+"' AND conn = 1 AND seq = 3",
		"INSERT INTO cnmsql_writer.rows VALUES ('"+w.Run()+"', 2, 100000, '', NOW(6))")
	v := m.verify(w)
	if len(v.Missing) != 1 || v.Missing[0].Connection != 1 || v.Missing[0].Seq != 3 || len(v.Extra) != 1 ||
		v.Extra[0].Seq != 100000 {
		t.Errorf("missing %+v, extra %+v", v.Missing, v.Extra)
	}
	if v := m.verify(other); !v.OK() {
		t.Errorf("the other run is accused: %+v", v)
	}
}

func TestWrongPasswordIsToldAtOnce(t *testing.T) {
	m := startMysqld(t)
	mustConnect(t, m)
	c := m.config()
	c.Password = "wrong"
	before := time.Now()
	if err := New(c).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "privileges") ||
		time.Since(before) > 5*time.Second {
		t.Errorf("after %s: %v", time.Since(before), err)
	}
}

func mustConnect(t *testing.T, m *mysqld) {
	t.Helper()
	w := New(m.config())
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Stop()
}
