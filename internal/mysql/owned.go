package mysql

import "strings"

// OwnedParameter is a parameter that users may not set.
type OwnedParameter struct {
	// Name with underscores; a trailing * stands for every parameter that
	// begins so.
	Name string
	// Why completes "it is owned by the operator: …".
	Why string
}

// OwnedParameters are the parameters that the operator sets itself, or that
// would break what it promises. The validating policy is rendered from this
// table, and my.cnf never takes them from a user.
var OwnedParameters = []OwnedParameter{
	{"gtid_mode", "replication, elections and rejoining rest on GTIDs"},
	{"enforce_gtid_consistency", "replication, elections and rejoining rest on GTIDs"},
	{"gtid_next", "replication, elections and rejoining rest on GTIDs"},
	{"gtid_purged", "it rewrites the history that elections compare"},
	{"server_id", "it must differ between all instances"},
	{"server_uuid", "it is made with the data directory"},
	{"log_bin*", "without a binary log nobody can replicate"},
	{"skip_log_bin", "without a binary log nobody can replicate"},
	{"disable_log_bin", "without a binary log nobody can replicate"},
	{"sql_log_bin", "without a binary log nobody can replicate"},
	{"binlog_format", "it is set by spec.mysql.binlogFormat"},
	{"binlog_do_db", "a filtered binary log makes replicas differ from the primary"},
	{"binlog_ignore_db", "a filtered binary log makes replicas differ from the primary"},
	{"replicate_*", "filtered replication makes replicas differ from the primary"},
	{"log_replica_updates", "a replica must be able to become a source"},
	{"log_slave_updates", "a replica must be able to become a source"},
	{"skip_replica_start", "replication starts when the instance manager found it safe"},
	{"skip_slave_start", "replication starts when the instance manager found it safe"},
	{"super_read_only", "only the one instance that was promoted may be writable"},
	{"read_only", "only the one instance that was promoted may be writable"},
	{"offline_mode", "the instance manager closes sessions itself when roles change"},
	{"plugin_load*", "the operator loads the plugins it needs; use INSTALL PLUGIN or INSTALL COMPONENT"},
	{"early_plugin_load", "the operator loads the plugins it needs"},
	{"plugin_dir", "it belongs to the image"},
	{"basedir", "it belongs to the image"},
	{"group_replication_*", "the topology is chosen by spec.replication.mode"},
	{"loose_*", "a misspelt name would be ignored in silence"},
	{"rpl_semi_sync_*", "it is set by spec.mysql.semiSync"},
	{"relay_log*", "positions and relay logs are part of what an instance holds"},
	{"sync_relay_log*", "an acknowledged transaction may exist only in relay logs"},
	{"master_info_repository", "positions are kept crash-safe in tables"},
	{"replica_net_timeout", "a lost source must be noticed in seconds"},
	{"slave_net_timeout", "a lost source must be noticed in seconds"},
	{"replica_preserve_commit_order", "a replica that commits out of order has holes in its GTID set"},
	{"slave_preserve_commit_order", "a replica that commits out of order has holes in its GTID set"},
	{"replica_skip_errors", "a skipped error makes replicas differ from the primary"},
	{"slave_skip_errors", "a skipped error makes replicas differ from the primary"},
	{"report_*", "it names the instance"},
	{"datadir", "it is on the instance's volume"},
	{"innodb_data_home_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_log_group_home_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_undo_directory", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_read_only", "an instance could neither apply nor be promoted"},
	{"innodb_force_recovery", "it opens damaged data as if it were sound"},
	{"tmpdir", "the root file system is read-only; the operator mounts a directory"},
	{"replica_load_tmpdir", "the root file system is read-only; the operator mounts a directory"},
	{"slave_load_tmpdir", "the root file system is read-only; the operator mounts a directory"},
	{"socket", "the instance manager connects through it"},
	{"port", "Services and replicas use 3306"},
	{"bind_address", "replicas and Services reach an instance by its Pod's address"},
	{"admin_*", "replicas connect there"},
	{"create_admin_listener_thread", "replicas connect there"},
	{"mysqlx*", "the X protocol is off: sessions there could not be closed when roles change"},
	{"skip_networking", "replicas and Services reach an instance by the network"},
	{"skip_name_resolve", "reverse look-ups of Pod addresses hang connections"},
	{"skip_grant_tables", "anybody could log in"},
	{"ssl_*", "certificates are issued and rotated by the operator"},
	{"skip_ssl", "replication and clone use TLS"},
	{"tls_version", "replication and clone use TLS"},
	{"auto_generate_certs", "certificates are issued and rotated by the operator"},
	{"clone_*", "new instances are cloned by the operator"},
	{"clone", "new instances are cloned by the operator"},
	{"init_file", "it would run with every privilege at every start"},
	{"init_replica", "it would run before every replicated transaction"},
	{"init_slave", "it would run before every replicated transaction"},
	{"user", "the container chooses it"},
	{"pid_file", "the instance manager watches the process itself"},
	{"daemonize", "the instance manager watches the process itself"},
	{"secure_file_priv", "files of the container are not reachable from SQL"},
	{"log_error*", "the instance manager reads the error log and forwards it"},
	{"log_timestamps", "the instance manager reads the error log and forwards it"},
	{"innodb_flush_log_at_trx_commit", "an acknowledged write must survive a crash"},
	{"sync_binlog", "an acknowledged write must survive a crash"},
	{"innodb_doublewrite", "an acknowledged write must survive a crash"},
	{"initialize*", "data is initialised once, by the instance manager"},
	{"validate_config", "it makes mysqld end at once"},
	{"help", "it makes mysqld end at once"},
	{"version*", "it is a property of the image"},
}

// NormalParameter is the one spelling of a parameter's name: servers take - for
// _ and any case.
func NormalParameter(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
}

// Owned tells whether a parameter, in any spelling, is the operator's, and why.
func Owned(name string) (OwnedParameter, bool) {
	name = NormalParameter(name)
	for _, prefix := range []string{"loose_", "skip_", "disable_", "enable_", "maximum_"} {
		// mysqld takes these before any name, so loose_read_only is read_only.
		if rest, found := strings.CutPrefix(name, prefix); found {
			if o, owned := Owned(rest); owned {
				return o, true
			}
		}
	}
	for _, o := range OwnedParameters {
		if prefix, wild := strings.CutSuffix(o.Name, "*"); o.Name == name || wild && strings.HasPrefix(name, prefix) {
			return o, true
		}
	}
	return OwnedParameter{}, false
}
