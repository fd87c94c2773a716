package mysql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cnmsql.co/internal/core"
)

// Purpose is what a configuration file is for.
type Purpose int

const (
	// ToServe is for a server with all that replication needs.
	ToServe Purpose = iota
	// ToInitialize is for `mysqld --initialize-insecure`, which loads no
	// plugins and therefore does not know their parameters.
	ToInitialize
)

// Config is all that my.cnf is made from.
type Config struct {
	Version  Version
	ServerID uint32
	// Host under which replicas reach this instance.
	Host                      string
	Port                      int
	AdminAddress              string // an IP address
	AdminPort                 int
	DataDir, TmpDir           string
	Socket, PIDFile           string
	CAFile, CertFile, KeyFile string
	BinlogFormat              string
	SemiSyncReplica           bool
	// Lossless: elections count on what replicas have acknowledged. KeepsRelayLogs: what they have
	// acknowledged may be in their relay logs alone. RelayLogsLost: of what this
	// one has, some may be torn or gone.
	Lossless, KeepsRelayLogs, RelayLogsLost bool
	Topology                                core.Topology
	Group                                   *GroupConfig // of a member of a group
	MaxBinlogSize                           int64        // bytes; 0 is the server's default
	BinlogExpire                            *int64       // seconds; nil is a week
	HoldsBinlogs                            bool         // the server purges none before it is told to
	Memory                                  int64        // bytes mysqld may use; 0 when nobody set a limit
	CPUs                                    int
	User                                    map[string]string // spec.mysql.parameters
	Extra                                   map[string]string // of the machine, such as plugin_dir in tests
}

// setting is one line of my.cnf.
type setting struct{ name, value string }

// Render makes the text of my.cnf. The order of precedence, lowest first: the
// operator's defaults, which follow from memory and CPUs; the user's parameters;
// what the operator owns. Parameters that are Refused are left out.
func Render(c Config, p Purpose) string {
	lines := map[string]string{}
	put := func(settings []setting) {
		for _, s := range settings {
			lines[s.name] = s.value
		}
	}
	put(c.defaults())
	refused := Refused(c.User)
	for _, name := range slices.Sorted(maps.Keys(c.User)) { // the same text at every start
		if !slices.Contains(refused, name) && (p == ToServe || forInitialize(name)) {
			lines[NormalParameter(name)] = c.User[name]
		}
	}
	put(c.owned())
	if p == ToServe {
		put(c.replication())
		put(c.semiSync())
		if c.HoldsBinlogs && c.Version.has(purgesOnRequest) {
			put([]setting{{"binlog_expire_logs_auto_purge", "OFF"}})
		}
		if c.Topology.RunsGroup() {
			put(c.group())
		}
	}
	for name, value := range c.Extra {
		lines[name] = value
	}
	return c.text(lines, p)
}

func (c Config) text(lines map[string]string, p Purpose) string {
	var b strings.Builder
	b.WriteString("# Made by cnmsql; changes here are overwritten. Use spec.mysql.parameters.\n[mysqld]\n")
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		switch value := lines[name]; {
		case value != "":
			fmt.Fprintf(&b, "%s = %s\n", name, quote(value))
		case slices.Contains(emptyValues, name):
			fmt.Fprintf(&b, "%s =\n", name)
		default: // a flag
			fmt.Fprintln(&b, name)
		}
	}
	if p == ToServe {
		n := c.Version.names()
		plugins := []string{"mysql_clone.so", n.semiSyncSourcePlugin, n.semiSyncReplicaPlugin}
		if c.Topology.RunsGroup() {
			plugins = append(plugins, "group_replication.so")
		}
		for _, plugin := range plugins {
			fmt.Fprintf(&b, "plugin_load_add = %s\n", plugin)
		}
	}
	return b.String()
}

// quote protects what an option file would misread, and keeps a value from
// adding lines of its own.
func quote(value string) string {
	value = strings.NewReplacer("\n", " ", "\r", " ").Replace(value)
	if !strings.ContainsAny(value, "#\"'\\ ") {
		return value
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// forInitialize reports whether a user's parameter shapes the data directory, so
// that it must be known when the directory is made. Others wait for the first
// start: they may belong to plugins, which are not loaded yet.
func forInitialize(name string) bool {
	switch NormalParameter(name) {
	case "lower_case_table_names", "innodb_page_size", "innodb_data_file_path", "innodb_undo_tablespaces",
		"innodb_checksum_algorithm", "innodb_redo_log_capacity", "innodb_log_file_size",
		"character_set_server", "collation_server", "default_collation_for_utf8mb4":
		return true
	}
	return false
}

// defaults are what users may change.
func (c Config) defaults() []setting {
	n := c.Version.names()
	out := []setting{
		{"innodb_buffer_pool_size", strconv.FormatInt(bufferPool(c.Memory), 10)},
		{"binlog_expire_logs_seconds", strconv.FormatInt(c.binlogExpire(), 10)},
		{n.workers, strconv.Itoa(min(max(2*c.CPUs, 4), 32))},
		{"performance_schema_max_sql_text_length", "1024"},
	}
	if c.Memory > 0 && c.Memory < 1<<30 || c.Memory == 0 {
		// Of an idle server's 540 MB, 200 are the performance schema's.
		out = append(out, setting{"performance_schema_digests_size", "1000"},
			setting{"performance_schema_max_table_instances", "500"},
			setting{"table_open_cache", "1000"}, setting{"table_definition_cache", "800"})
	}
	if c.MaxBinlogSize > 0 {
		out = append(out, setting{"max_binlog_size", strconv.FormatInt(c.MaxBinlogSize, 10)})
	}
	if c.Version.has(redoLogCapacity) {
		return append(out, setting{"innodb_redo_log_capacity", "104857600"})
	}
	return append(out, setting{"innodb_log_file_size", "50331648"})
}

func (c Config) binlogExpire() int64 {
	if c.BinlogExpire != nil {
		return *c.BinlogExpire
	}
	return 604800
}

// bufferPool is half of the memory beyond what a server needs besides it. When
// nobody set a limit it is small: a share of a whole node would be taken from
// everybody else there.
func bufferPool(memory int64) int64 {
	const besides, unit = 384 << 20, 1 << 27
	switch {
	case memory == 0:
		return unit
	case memory < 512<<20:
		return 32 << 20
	case memory < 1<<30:
		return 128 << 20
	}
	return max((memory-besides)*6/10/unit*unit, unit)
}

// owned is what users may not change, wherever the server is used for.
func (c Config) owned() []setting {
	return []setting{
		{"datadir", c.DataDir},
		{"tmpdir", c.TmpDir},
		{"socket", c.Socket},
		{"pid_file", c.PIDFile},
		{"port", strconv.Itoa(cmp.Or(c.Port, 3306))},
		{"server_id", strconv.FormatUint(uint64(c.ServerID), 10)},
		{"mysqlx", "OFF"},
		{"secure_file_priv", "NULL"},
		{"log_timestamps", "UTC"},
		{"skip_name_resolve", "ON"},
		{"auto_generate_certs", "OFF"},
		{"innodb_flush_log_at_trx_commit", "1"},
	}
}

func (c Config) replication() []setting {
	n := c.Version.names()
	out := []setting{
		{"super_read_only", "ON"},
		{"read_only", "ON"},
		{"gtid_mode", "ON"},
		{"enforce_gtid_consistency", "ON"},
		{"log_bin", "binlog"},
		{"sync_binlog", "1"},
		{n.logUpdates, "ON"},
		{n.skipStart, "ON"},
		{n.netTimeout, fmt.Sprint(core.NetTimeout.Seconds())},
		{n.commitOrder, "ON"},
		{"relay_log", "relay"},
		// A former primary whose volume was set back lacks what it wrote itself, and would leave that out when it
		// receives it. Nothing goes in circles: what is executed is not executed again.
		{"replicate_same_server_id", "ON"},
		// What SET PERSIST left is read last and would outrank this file: a server would
		// start writable.
		{"persisted_globals_load", "OFF"},
		{"binlog_error_action", "ABORT_SERVER"},
		{"report_host", c.Host},
		{"report_port", strconv.Itoa(cmp.Or(c.Port, 3306))},
		// Replicas come in here: clients whose commits wait for a replica may have
		// taken every connection that max_connections allows.
		{"admin_address", c.AdminAddress},
		{"admin_port", strconv.Itoa(c.AdminPort)},
		{"admin_ssl_ca", c.CAFile},
		{"admin_ssl_cert", c.CertFile},
		{"admin_ssl_key", c.KeyFile},
		{"ssl_ca", c.CAFile},
		{"ssl_cert", c.CertFile},
		{"ssl_key", c.KeyFile},
		{"clone_ssl_ca", c.CAFile},
		{"clone_ssl_cert", c.CertFile},
		{"clone_ssl_key", c.KeyFile},
		// Otherwise a clone would wait five minutes for sessions on the donor
		// that hold a backup lock, in silence.
		{"clone_ddl_timeout", "60"},
	}
	if f := cmp.Or(c.BinlogFormat, "ROW"); f != "ROW" || !c.Version.has(formatDeprecated) {
		out = append(out, setting{"binlog_format", f})
	}
	if !c.Version.has(appliesInParallelByDefault) {
		out = append(out, setting{"slave_parallel_type", "LOGICAL_CLOCK"})
	}
	if !c.Version.has(tracksWriteSetsAlways) {
		out = append(out, setting{"binlog_transaction_dependency_tracking", "WRITESET"})
	}
	if c.Topology.StartsOffline() {
		// Until it follows a primary, or is one: XA COMMIT is not refused by a server that is
		// read-only, and a former primary would diverge by it.
		out = append(out, setting{"offline_mode", "ON"})
	}
	return append(out, c.durable()...)
}

// durable returns the settings for what a crash may take.
//
// With GTIDs a replica may drop its relay logs after a crash and fetch them again
// (relay_log_recovery), unless they hold the only copy of an acknowledged transaction. Those of a
// group always may hold it, because a group acknowledges what a majority has received. Those of a
// replica may when a commit awaits its acknowledgement and the primary is gone. When some of them
// may be torn or gone, they are dropped all the same.
//
// Relay logs are flushed as rarely as the server does by itself. sync_relay_log=1 can only flush
// event by event, which is five times for an insert of one row, and each commit would wait for it.
// What is not flushed is lost with the page cache only, and the manager tells when that was.
func (c Config) durable() []setting {
	keeps := c.Topology.KeepsRelayLogs() || c.KeepsRelayLogs
	out := []setting{{"relay_log_recovery", onOff(!keeps || c.RelayLogsLost)}}
	if c.Lossless {
		// What a crashed primary had not got acknowledged is cut from its binary log, and
		// rolled back by an engine with transactions. Others would keep it.
		out = append(out, setting{"disabled_storage_engines", "MyISAM,MRG_MyISAM,ARCHIVE"})
	}
	return out
}

func (c Config) semiSync() []setting {
	n := c.Version.names()
	return []setting{
		{n.semiSyncSource + "_wait_point", "AFTER_SYNC"},
		{n.semiSyncSource + "_enabled", "OFF"},
		{n.semiSyncReplica + "_enabled", onOff(c.SemiSyncReplica)},
	}
}

func onOff(b bool) string {
	if b {
		return "ON"
	}
	return "OFF"
}
