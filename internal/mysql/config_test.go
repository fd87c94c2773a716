package mysql

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cnmsql.co/internal/core"
	"cnmsql.co/test/mysqld"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files again")

func config(version string) Config {
	v, err := ParseVersion("mysqld  Ver " + version + " for Linux on x86_64")
	if err != nil {
		panic(err)
	}
	return Config{Version: v, ServerID: 7, Host: "db-1.ns.svc", AdminAddress: "10.0.0.7", AdminPort: 33062,
		DataDir: "/data", TmpDir: "/tmp", Socket: "/run/s.sock",
		PIDFile: "/run/pid", CAFile: "/tls/ca.crt", CertFile: "/tls/tls.crt", KeyFile: "/tls/tls.key",
		Memory: 4 << 30, CPUs: 2}
}

func TestConfigFiles(t *testing.T) {
	quorum := config("9.7.4-2")
	quorum.SemiSyncReplica, quorum.Lossless, quorum.KeepsRelayLogs = true, true, true
	quorum.BinlogFormat = "MIXED"
	quorum.User = map[string]string{"max-connections": "500", "Innodb_Buffer_Pool_Size": "1G",
		"init_connect": `SET NAMES "utf8mb4" # yes`,
		"gtid-mode":    "OFF", "loose_super_read_only": "OFF", "lower_case_table_names": "1"}
	lost := quorum
	lost.RelayLogsLost = true
	required := config("9.7.4-2")
	required.SemiSyncReplica, required.KeepsRelayLogs = true, true
	unlimited := config("9.7.4-2")
	unlimited.Memory, unlimited.CPUs = 0, 16
	group, lts, old := config("9.7.4-2"), config("8.4.6"), config("8.0.22")
	for _, c := range []*Config{&group, &lts, &old} {
		c.Topology = core.TopologyGroup
		c.Group = &GroupConfig{Name: "7f1a6d0e-0000-5000-8000-000000000001", LocalAddress: "10.0.0.7:33061",
			Consistency: "BEFORE_ON_PRIMARY_FAILOVER", ExitStateAction: "READ_ONLY", AutoRejoinTries: 3}
	}
	torn := group
	torn.RelayLogsLost = true
	for name, c := range map[string]Config{"9.7-group": group, "9.7-group-lost": torn, "8.4-group": lts,
		"8.0.22-group": old,
		"9.7":          config("9.7.4-2"), "9.7-quorum": quorum, "9.7-required": required,
		"9.7-quorum-lost": lost, "9.7-unlimited": unlimited,
		"8.4": config("8.4.6"), "8.0.36-percona": config("8.0.36-28.1"), "8.0.22": config("8.0.22")} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".cnf", Render(c, ToServe))
			golden(t, name+".init.cnf", Render(c, ToInitialize))
		})
	}
}

func TestAServerThatArchivesPurgesNothingWhileItStarts(t *testing.T) {
	const off = "binlog_expire_logs_auto_purge = OFF\n"
	for version, knows := range map[string]bool{"8.0.28": false, "8.0.29": true, "8.4.6": true, "9.7.4-2": true} {
		c := config(version)
		if strings.Contains(Render(c, ToServe), "auto_purge") {
			t.Errorf("%s: where nothing is archived, nobody else purges", version)
		}
		c.HoldsBinlogs = true
		c.User = map[string]string{"loose-binlog-expire-logs-auto-purge": "ON"}
		text := Render(c, ToServe)
		if held := strings.Contains(text, off) && !strings.Contains(text, "auto_purge = ON"); held != knows {
			t.Errorf("%s: %s", version, text)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not as it was; look at the difference and run with -rewrite:\n%s", file, got)
	}
}

func TestAUserCannotSetWhatTheOperatorOwns(t *testing.T) {
	for _, name := range []string{"gtid_mode", "GTID-MODE", "loose-gtid_mode", "skip-log-bin",
		"rpl_semi_sync_source_timeout",
		"group_replication_group_name", "skip_networking", "disable-log-bin", "loose_skip_name_resolve", "ssl-ca",
		"plugin-load-add", "mysqlx-port", "relay-log-recovery", "loose-skip-super-read-only",
		"disable-ssl", "skip_ssl", "ssl",
		"persisted-globals-load", "performance_schema"} {
		if _, owned := Owned(name); !owned {
			t.Errorf("%s may be set by users", name)
		}
	}
	for _, name := range []string{"max_connections", "innodb_buffer_pool_size",
		"require_secure_transport", "sort_buffer_size",
		"binlog_expire_logs_seconds", "skip_show_database", "event_scheduler", "log_bin_trust_function_creators",
		"performance_schema_digests_size"} {
		if o, owned := Owned(name); owned {
			t.Errorf("%s may not be set by users: %s", name, o.Why)
		}
	}
}

// Whatever my.cnf gets from us beyond what users may change is in the table, or a
// user's spelling of it would contradict ours.
func TestWhatIsRenderedLastIsOwned(t *testing.T) {
	for _, version := range []string{"9.7.4", "8.0.22"} {
		c := config(version)
		for _, settings := range [][]setting{c.owned(), c.replication(), c.semiSync()} {
			for _, s := range settings {
				_, owned := Owned(s.name)
				if !owned && s.name != "slave_parallel_type" && s.name != "binlog_transaction_dependency_tracking" {
					t.Errorf("%s is set by the operator and may be set by users", s.name)
				}
			}
		}
	}
}

func TestOwnedParametersGiveReasons(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range OwnedParameters {
		if o.Why == "" || o.Name != NormalParameter(o.Name) || seen[o.Name] {
			t.Errorf("%q: %q", o.Name, o.Why)
		}
		seen[o.Name] = true
	}
}

func TestValuesCannotAddLines(t *testing.T) {
	c := config("9.7.4")
	c.User = map[string]string{"init_connect": "x\nsuper_read_only = OFF"}
	for _, line := range strings.Split(Render(c, ToServe), "\n") {
		if line == "super_read_only = OFF" {
			t.Error("a value has added a line")
		}
	}
}

// The policy refuses them; it may have been taken away.
func TestNamesCannotAddLines(t *testing.T) {
	c := config("9.7.4")
	bad := "sort_buffer_size = 1M\nsuper_read_only"
	c.User = map[string]string{bad: "OFF", "a b": "1", "sort_buffer_size": "2M", "innodb_flush_method": "nosync"}
	for _, line := range strings.Split(Render(c, ToServe), "\n") {
		if line == "super_read_only = OFF" || strings.HasPrefix(line, "a b") ||
			strings.HasPrefix(line, "innodb_flush_method") {
			t.Errorf("my.cnf has the line %q", line)
		}
	}
	if got := Misnamed(c.User); len(got) != 2 {
		t.Errorf("misnamed are %q", got)
	}
	if got := Refused(c.User); len(got) != 3 {
		t.Errorf("refused are %q", got)
	}
}

// TestAnEmptyValueIsWrittenAsOne holds a sql_mode that is empty, as old applications want it, against a flag without
// a value: mysqld refuses a bare sql_mode, and an empty event_scheduler.
func TestAnEmptyValueIsWrittenAsOne(t *testing.T) {
	c := config("9.7.4")
	c.User = map[string]string{"SQL-mode": "", "event_scheduler": "", "skip-external-locking": ""}
	text := Render(c, ToServe)
	for _, line := range []string{"sql_mode =", "event_scheduler", "skip_external_locking"} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("my.cnf lacks the line %q:\n%s", line, text)
		}
	}
}

// TestARealServerTakesEmptyValues holds my.cnf against a mysqld that reads it.
func TestARealServerTakesEmptyValues(t *testing.T) {
	files := mysqld.ForTest(t).Files
	for _, name := range emptyValues {
		lines := files.Settings()
		lines[name], lines["secure_file_priv"], lines["datadir"] = "", "NULL", t.TempDir()
		file := filepath.Join(t.TempDir(), "my.cnf")
		if err := os.WriteFile(file, []byte(Config{}.text(lines, ToInitialize)), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := files.Program(t.Context(), "sbin/mysqld", "--defaults-file="+file,
			"--validate-config").CombinedOutput()
		if err != nil || strings.Contains(string(out), "[ERROR]") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

func TestValuesThatAUserMayGive(t *testing.T) {
	for value, ok := range map[string]bool{"O_DIRECT": true, "fsync": true, "O_DIRECT_NO_FSYNC": true, "nosync": false,
		"littlesync": false, "3": false, "": false} {
		for _, name := range []string{"innodb_flush_method", "Innodb-Flush_method"} {
			if refused := Refused(map[string]string{name: value}); ok != (len(refused) == 0) {
				t.Errorf("%s = %q is refused: %t", name, value, ok)
			}
		}
	}
}

// Beside the data directory lies what the instance remembers.
func TestNoParameterNamesAFileOutsideOfTheData(t *testing.T) {
	for value, ok := range map[string]bool{"ibtmp1:12M:autoextend:max:5G": true, "a:12M;b:12M:autoextend": true,
		"../cnmsql/state.json:12M:autoextend": false, "a:12M;/tmp/b:12M:autoextend": false} {
		for _, name := range []string{"innodb_temp_data_file_path", "Innodb-Data_file_path"} {
			if refused := Refused(map[string]string{name: value}); ok != (len(refused) == 0) {
				t.Errorf("%s = %q is refused: %t", name, value, ok)
			}
		}
	}
}

func TestBufferPool(t *testing.T) {
	for memory, want := range map[int64]int64{
		0: 128 << 20, 256 << 20: 32 << 20, 512 << 20: 128 << 20, 1 << 30: 384 << 20, 4 << 30: 2176 << 20,
		64 << 30: 39040 << 20,
	} {
		if got := bufferPool(memory); got != want {
			t.Errorf("of %d MiB the buffer pool gets %d MiB, not %d", memory>>20, got>>20, want>>20)
		}
	}
}

func TestVersions(t *testing.T) {
	for banner, want := range map[string]string{
		"/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))":                                    "9.7.4-2",
		"/usr/sbin/mysqld  Ver 8.4.6 for Linux on x86_64 (MySQL Community Server - GPL)":                  "8.4.6",
		"/usr/sbin/mysqld  Ver 8.0.36-28 for Linux on x86_64 (Percona Server (GPL), Release 28, Revision": "8.0.36-28",
	} {
		if v, err := ParseVersion(banner); err != nil || v.Text != want {
			t.Errorf("%s: %s, %v", banner, v, err)
		}
	}
	for _, banner := range []string{"mysqld  Ver 5.7.44 for Linux", "mysqld  Ver 8.0.21 for Linux",
		"mariadbd from 11.4.2-MariaDB", ""} {
		if v, err := ParseVersion(banner); err == nil {
			t.Errorf("%q was taken for %s", banner, v)
		}
	}
	ten, nine := Version{Major: 10}, Version{Major: 9, Minor: 7, Patch: 4}
	if !ten.AtLeast(nine) || nine.AtLeast(ten) || !nine.AtLeast(nine) {
		t.Error("versions are not compared as numbers")
	}
}

func TestSessionsOfClients(t *testing.T) {
	for _, test := range []struct {
		s    Session
		want bool
	}{
		{Session{User: "app", Command: "Sleep"}, true},
		{Session{User: "root", Command: "Query"}, true},
		{Session{User: "app", Command: "Query", Wait: "Waiting for semi-sync ACK from replica"}, true},
		{Session{User: "unauthenticated user", Command: "Connect"}, true},
		{Session{User: "system user", Command: "Query"}, false},
		{Session{User: "system user", Command: "Connect"}, false},
		{Session{User: "event_scheduler", Command: "Daemon"}, false},
		{Session{User: "repl", Command: "Binlog Dump GTID"}, false},
		{Session{User: "somebody", Command: "Binlog Dump GTID"}, false},
		{Session{User: "control", Command: "Query"}, false},
	} {
		if got := test.s.isClient([]string{"control", "repl"}); got != test.want {
			t.Errorf("%+v is a client's: %t", test.s, got)
		}
	}
}

// TestWhoReadsTheBinaryLog reports as a replica whom the account of replication lets in, and no other reader.
func TestWhoReadsTheBinaryLog(t *testing.T) {
	for s, want := range map[Session]bool{
		{User: "repl", Command: "Binlog Dump GTID"}:     true,
		{User: "repl", Command: "Binlog Dump"}:          true,
		{User: "debezium", Command: "Binlog Dump GTID"}: false,
		{User: "repl", Command: "Query"}:                false,
		{User: "repl", Command: "Killed"}:               false,
		{User: "root", Command: "Binlog Dump"}:          false,
	} {
		if got := s.isReplica("repl"); got != want {
			t.Errorf("%+v is a replica's: %t", s, got)
		}
	}
}
