package byhand

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/clone"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
	"cnmsql.co/test/mysqld"
)

// lost is a cluster of which nothing is left but a copy of its directory in the store.
type lost struct {
	t *testing.T
	Where
	mysqld string
	// drop is the transaction that dropped the table, and index that of the binary logs.
	drop, index string
}

// TestTheNightOnWhichAllIsLost: a backup and an archive, both encrypted, a table that was dropped,
// and no operator.
func TestTheNightOnWhichAllIsLost(t *testing.T) {
	l := loseAll(t)
	l.lists()
	l.searches()
	l.refuses()
	l.sparesOthers()
	s := mysqld.ForTest(t)
	target := recovery.Target{GTID: l.drop, Exclusive: true}
	said := l.restores(s.Data(), target)
	for _, want := range []string{"--datadir=" + s.Data(), "--init-file=", "--gtid " + l.drop + " --exclusive",
		"cnmsql store replay --copy " + l.Copy + " --cluster shop --identity"} {
		if !strings.Contains(said, want) {
			t.Errorf("what to do next does not have %q:\n%s", want, said)
		}
	}
	s.Start(1, "--event-scheduler=OFF")
	var out bytes.Buffer
	a := Archive{Where: l.Where, BackupID: "first", Target: target, Socket: s.Socket(), Out: &out}
	must(t, Replay(t.Context(), a))
	t.Log(out.String())
	for _, want := range []string{"shop.seen, shop.sessions: not InnoDB", "shop.seen, shop.sessions: changes"} {
		if !strings.Contains(out.String(), "WARNING: "+want) {
			t.Errorf("it does not warn of %q", want)
		}
	}
	must(t, Replay(t.Context(), a)) // again: there is nothing left to do
	if got := s.Text("SELECT CONCAT(COUNT(*), ' up to ', MAX(id)) FROM shop.orders"); got != "300 up to 300" {
		t.Errorf("it has %s", got)
	}
}

// refuses: nothing is written, and it is said what to do.
func (l *lost) refuses() {
	l.t.Helper()
	for want, f := range map[string]Files{
		"KeyMissing":         {Where: Where{Copy: l.Copy, Cluster: "shop"}},
		"must contain":       {Where: Where{Copy: l.Copy, Cluster: "other"}},
		"--copy":             {Where: Where{Cluster: "shop"}},
		"TargetAfterArchive": {Where: l.Where, Target: recovery.Target{Time: time.Now().Add(time.Hour)}},
		"BackupUnknown":      {Where: l.Where, BackupID: "nowhere"},
		"--mysqld":           {Where: l.Where, Mysqld: "/nowhere"},
	} {
		into := filepath.Join(l.t.TempDir(), "data")
		f.Into, f.Out = into, &bytes.Buffer{}
		if f.Mysqld == "" {
			f.Mysqld = l.mysqld
		}
		if err := Restore(l.t.Context(), f); err == nil || !strings.Contains(err.Error(), want) {
			l.t.Errorf("wanted %s: %v", want, err)
		}
		if _, err := os.Stat(into); !errors.Is(err, os.ErrNotExist) {
			l.t.Errorf("%s: something was written", want)
		}
	}
}

// sparesOthers holds a replay against a replica of somebody else's, whose channels it must not forget.
func (l *lost) sparesOthers() {
	l.t.Helper()
	other := mysqld.ForTest(l.t)
	other.Initialize()
	other.Start(7)
	defer other.Stop()
	const channels = "SELECT CONCAT_WS(' ', CHANNEL_NAME, HOST, PORT) FROM " +
		"performance_schema.replication_connection_configuration"
	other.Exec("CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT=1, SOURCE_AUTO_POSITION=1, " +
		"SOURCE_USER='r', SOURCE_PASSWORD='secret' FOR CHANNEL 'production'")
	refused := func(why error) {
		l.t.Helper()
		a := Archive{Where: l.Where, BackupID: "first", Socket: other.Socket(), Out: l.t.Output()}
		err := Replay(l.t.Context(), a)
		if !errors.Is(err, why) {
			l.t.Errorf("wanted %v, got: %v", why, err)
		}
		l.t.Log(err)
		if has := other.Text(channels); has != "production 127.0.0.1 1" {
			l.t.Errorf("its channels are %q", has)
		}
	}
	refused(ServerNotRestored)
	other.Exec("START REPLICA FOR CHANNEL 'production'")
	refused(ServerReplicates)
}

// searches finds the transaction that dropped the table, in the binary logs as in the archive.
func (l *lost) searches() {
	l.t.Helper()
	var logs, archived bytes.Buffer
	dropped := Search{Matching: regexp.MustCompile(`(?i)\bdrop\b`), Since: time.Now().Add(-time.Hour)}
	dropped.Out = &logs
	must(l.t, dropped.Logs(l.t.Context(), l.index))
	dropped.Out = &archived
	must(l.t, dropped.Archive(l.t.Context(), l.Where))
	for where, found := range map[string]string{"binary logs": logs.String(), "archive": archived.String()} {
		lines := strings.Split(strings.TrimSpace(found), "\n")
		if where == "archive" && len(lines) == 3 && strings.HasPrefix(lines[2], "(what is archived ends at ") {
			lines = lines[:2]
		}
		if len(lines) != 2 || !strings.Contains(lines[1], l.drop) || !strings.Contains(lines[1], "orders") {
			l.t.Errorf("in the %s is found:\n%s", where, found)
		}
	}
	dropped.Until, dropped.Out = time.Now().Add(-time.Minute*50), &archived
	archived.Reset()
	must(l.t, dropped.Archive(l.t.Context(), l.Where))
	if got := strings.TrimSpace(archived.String()); !strings.HasPrefix(got,
		"no statement matches\n(what is archived ends at ") {
		l.t.Errorf("of an hour ago is found:\n%s", got)
	}
}

func (l *lost) lists() {
	l.t.Helper()
	var out bytes.Buffer
	must(l.t, List(l.t.Context(), l.Where, &out))
	l.t.Log(out.String())
	for _, want := range []string{"shop of namespace prod, UID uid", "first", "age1",
		"The latest that can be restored is of", "backup first, and"} {
		if !strings.Contains(out.String(), want) {
			l.t.Errorf("the list does not have %q", want)
		}
	}
}

func (l *lost) restores(into string, target recovery.Target) string {
	l.t.Helper()
	var out bytes.Buffer
	must(l.t, Restore(l.t.Context(), Files{Where: l.Where, Target: target, Into: into, Mysqld: l.mysqld, Out: &out}))
	l.t.Log(out.String())
	return out.String()
}

// otherEngines are tables of which a backup has no rows.
func otherEngines(donor *mysqld.Test) {
	for table, engine := range map[string]string{"sessions": "MEMORY", "seen": "MyISAM"} {
		donor.Exec("CREATE TABLE shop." + table + " (id INT PRIMARY KEY, n INT) ENGINE=" + engine)
		donor.Exec("INSERT INTO shop." + table + " VALUES (1, 0)")
	}
}

// loseAll makes the cluster, and keeps what it had in the store.
func loseAll(t *testing.T) *lost {
	t.Helper()
	donor := mysqld.ForTest(t)
	donor.Initialize()
	donor.Start(1, "--log-bin=binlog", "--plugin-load-add=mysql_clone.so")
	donor.Exec("CREATE USER backup IDENTIFIED WITH caching_sha2_password BY 'secret'")
	donor.Exec("GRANT BACKUP_ADMIN ON *.* TO backup")
	donor.Exec("CREATE DATABASE shop")
	donor.Exec("CREATE TABLE shop.orders (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(100))")
	otherEngines(donor)
	write := func(rows int) {
		for range rows {
			donor.Exec("INSERT INTO shop.orders (what) VALUES (REPEAT('x', 90))")
		}
	}
	executed := func(context.Context) (gtid.Set, error) { return donor.Executed(), nil }

	identity, err := age.GenerateX25519Identity()
	must(t, err)
	key, err := seal.Parse([]byte(identity.String()))
	must(t, err)
	l := &lost{t: t, mysqld: donor.Dir + "/mysqld.sh"}
	l.Cluster, l.Copy, l.Identity = "shop", t.TempDir(), filepath.Join(t.TempDir(), "backup.key")
	must(t, os.WriteFile(l.Identity, []byte(identity.String()+"\n"), 0o600))
	s := store.Directory(l.Copy)
	stop := ship(t, donor, s, key, executed)
	write(100)
	from := clone.Donor{Address: donor.Address(), User: "backup", Password: "secret", TLS: donor.TLS()}
	_, err = backup.Take(t.Context(), from, s, backup.Options{
		Identity: backup.Identity{Cluster: "shop", Namespace: "prod", UID: "uid", CreatedAt: time.Now()},
		ID:       "first", Instance: "shop-1", Epoch: 1, Key: key, Executed: executed, PartSize: 4 << 20})
	must(t, err)
	donor.Exec("UPDATE shop.sessions SET n = 1")
	donor.Exec("DELETE FROM shop.seen")
	write(200)
	before := donor.Executed()
	donor.Exec("DROP TABLE shop.orders")
	l.drop = donor.Executed().Subtract(before).String()
	donor.Exec("CREATE TABLE shop.later (id INT)")
	stop(donor.Executed())
	program := donor.Program(t.Context(), "sbin/mysqld")
	script := "#!/bin/sh\nexec '" + strings.Join(program.Args[:len(program.Args)-1], "' '") + "' \"$@\"\n"
	must(t, os.WriteFile(l.mysqld, []byte(script), 0o755))
	l.index = donor.Data() + "/binlog.index"
	donor.Server.Kill()
	return l
}

// ship archives until the function that it returns is called, and what that is given is archived.
func ship(t *testing.T, donor *mysqld.Test, s store.Store, key seal.Key,
	executed func(context.Context) (gtid.Set, error)) (stop func(gtid.Set)) {
	t.Helper()
	shipper, err := archive.NewShipper(archive.Config{Store: s, Prefix: backup.LogPrefix("shop"), Cluster: "uid",
		Epoch: 1, Instance: "shop-1", ServerUUID: donor.Text("SELECT @@server_uuid"), Start: donor.Executed(),
		Index: donor.Data() + "/binlog.index", Executed: executed, TargetRPO: time.Second,
		May: func(context.Context) error { return nil }, Key: func() (seal.Key, error) { return key, nil }})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := shipper.Run(ctx); err != nil {
			t.Errorf("shipping: %v", err)
		}
	})
	return func(all gtid.Set) {
		for began := time.Now(); !shipper.Status().Archived.Contains(all); <-time.After(20 * time.Millisecond) {
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s is not archived: %+v", all, shipper.Status())
			}
		}
		cancel()
		wg.Wait()
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
