package mysql

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

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
	{"server_id_bits", "it must differ between all instances"},
	{"log_bin", "without a binary log nobody can replicate"},
	{"log_bin_basename", "without a binary log nobody can replicate"},
	{"log_bin_index", "without a binary log nobody can replicate"},
	{"skip_log_bin", "without a binary log nobody can replicate"},
	{"disable_log_bin", "without a binary log nobody can replicate"},
	{"sql_log_bin", "without a binary log nobody can replicate"},
	{"binlog_error_action", "a server that goes on without its binary log acknowledges what no replica gets"},
	{"sporadic_binlog_dump_fail", "it breaks replication, to test servers"},
	{"max_binlog_dump_events", "it breaks replication, to test servers"},
	{"tc_heuristic_recover", "what a crash left undecided is decided by the binary log"},
	{"disabled_storage_engines", "it is set where commits wait for replicas (dataDurability: quorum)"},
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
	{"persisted_globals_load", "what SET PERSIST left would outrank all that the operator sets"},
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
	{"replica_exec_mode", "a skipped error makes replicas differ from the primary"},
	{"slave_exec_mode", "a skipped error makes replicas differ from the primary"},
	{"report_*", "it names the instance"},
	{"datadir", "it is on the instance's volume"},
	{"innodb_data_home_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_log_group_home_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_undo_directory", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_directories", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_doublewrite_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_temp_tablespaces_dir", "data lives in the data directory, which is initialised and cloned as a whole"},
	{"innodb_buffer_pool_filename", "it would write wherever it is told, over the instance's own files too"},
	{"general_log_file", "it would write wherever it is told, over the instance's own files too; the default is in " +
		"the data directory"},
	{"slow_query_log_file", "it would write wherever it is told, over the instance's own files too; the default is " +
		"in the data directory"},
	{"log_tc", "it would write wherever it is told, over the instance's own files too"},
	{"log_isam", "it would write wherever it is told, over the instance's own files too"},
	{"innodb_read_only", "an instance could neither apply nor be promoted"},
	{"innodb_force_recovery", "it opens damaged data as if it were sound"},
	{"innodb_force_load_corrupted", "it opens damaged data as if it were sound"},
	{"innodb_tmpdir", "the root file system is read-only; the operator mounts a directory"},
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
	{"protocol_compression_algorithms", "the instance manager and replicas must get in"},
	{"thread_handling", "the instance manager and replicas must get in"},
	{"skip_grant_tables", "anybody could log in"},
	{"ssl_*", "certificates are issued and rotated by the operator"},
	{"ssl", "replication and clone use TLS"},
	{"tls_version", "replication and clone use TLS"},
	{"auto_generate_certs", "certificates are issued and rotated by the operator"},
	{"clone_*", "new instances are cloned by the operator"},
	{"clone", "new instances are cloned by the operator"},
	{"init_file", "it would run with every privilege at every start"},
	{"init_replica", "it would run before every replicated transaction"},
	{"init_slave", "it would run before every replicated transaction"},
	{"user", "the container chooses it"},
	{"pid_file", "the instance manager watches the process itself"},
	{"gdb", "the instance manager watches the process itself"},
	{"daemonize", "the instance manager watches the process itself"},
	{"secure_file_priv", "files of the container are not reachable from SQL"},
	{"innodb_redo_log_archive_dirs", "files of the container are not reachable from SQL"},
	{"chroot", "the container is what confines the server"},
	{"log_error*", "the instance manager reads the error log and forwards it"},
	{"console", "the instance manager reads the error log and forwards it"},
	{"log_timestamps", "the instance manager reads the error log and forwards it"},
	{"innodb_flush_log_at_trx_commit", "an acknowledged write must survive a crash"},
	{"sync_binlog", "an acknowledged write must survive a crash"},
	{"innodb_doublewrite", "an acknowledged write must survive a crash"},
	{"initialize*", "data is initialised once, by the instance manager"},
	{"validate_config", "it makes mysqld end at once"},
	{"keyring_migration_*", "it makes mysqld end at once"},
	{"help", "it makes mysqld end at once"},
	{"performance_schema", "it tells that a source is silent and how far a clone is; its sizes are yours"},
	{"version*", "it is a property of the image"},
}

// BoundParameter is a parameter that users may set, to some values only.
type BoundParameter struct {
	Name string
	// Values that are allowed, in lower case.
	Values []string
	// Form is a regular expression of all values that are allowed, where they cannot be listed, and Must
	// completes "it must …".
	Form, Must string
	// Why completes "anything else is refused: …".
	Why string
}

// BoundParameters are in the validating policy, too.
var BoundParameters = []BoundParameter{
	{Name: "innodb_flush_method", Values: []string{"fsync", "o_dsync", "o_direct", "o_direct_no_fsync"},
		Why: "an acknowledged write must survive a crash"},
	{Name: "innodb_data_file_path", Form: inDataDirectory, Must: onlyNames, Why: overOurs},
	{Name: "innodb_temp_data_file_path", Form: inDataDirectory, Must: onlyNames, Why: overOurs},
}

// Values that name files may not name directories: mysqld makes what it finds missing, and would make
// it beside its data, where the instance keeps its own files.
const (
	inDataDirectory = `[^/]*`
	onlyNames       = "name files of the data directory, without a /"
	overOurs        = "it would write wherever it is told, over the instance's own files too"
)

// Allowed is a regular expression of the values that are allowed, in lower case.
func (b BoundParameter) Allowed() string {
	if b.Form != "" {
		return "^(" + b.Form + ")$"
	}
	return "^(" + strings.Join(b.Values, "|") + ")$"
}

// Refusal completes the name of a parameter whose value is none of them.
func (b BoundParameter) Refusal() string {
	must := b.Must
	if must == "" {
		must = "be one of " + strings.Join(b.Values, ", ")
	}
	return "must " + must + " (" + b.Why + ")"
}

// emptyValues are the users' parameters that may be empty. mysqld takes none of them without a value, and
// the name of a flag alone for ON; of a flag it does not take an empty value.
var emptyValues = []string{
	"binlog_row_value_options", "ft_stopword_file", "init_connect", "mandatory_roles", "replica_type_conversions",
	"session_track_system_variables", "slave_type_conversions", "sql_mode", "tls_ciphersuites",
}

// FixedParameter is a parameter that mysqld wrote into the data when it made them. It starts on
// them with this value only.
type FixedParameter struct {
	Name string
	// Default is the server's value where nobody set one, in lower case.
	Default string
	// Spellings are values that mysqld takes for another one, in lower case, with that one.
	Spellings map[string]string
}

// FixedParameters keep the value that they had when the cluster was made; the validating policy sees
// to it. innodb_data_file_path is none of them: mysqld starts with a file more behind those that it
// made.
var FixedParameters = []FixedParameter{
	{Name: "lower_case_table_names", Default: "0"},
	{Name: "innodb_page_size", Default: "16384", Spellings: map[string]string{
		"4k": "4096", "8k": "8192", "16k": "16384", "32k": "32768", "64k": "65536"}},
}

// ParameterName is the form of a parameter's name, as a regular expression. What has
// another would be more than a name in an option file.
const ParameterName = "^[A-Za-z][A-Za-z0-9_.-]*$"

var parameterName = regexp.MustCompile(ParameterName)

// Misnamed are what users gave as names of parameters and is none, in order.
func Misnamed(parameters map[string]string) []string {
	return named(parameters, func(name string) bool { return !parameterName.MatchString(name) })
}

// Refused are the users' parameters that are not written into my.cnf, in order. The
// validating policy refuses them, unless it was not there or its table was shorter then.
func Refused(parameters map[string]string) []string {
	return named(parameters, func(name string) bool {
		_, owned := Owned(name)
		return owned || exceeds(name, parameters[name]) || !parameterName.MatchString(name)
	})
}

func named(parameters map[string]string, is func(name string) bool) []string {
	out := slices.Sorted(maps.Keys(parameters))
	return slices.DeleteFunc(out, func(name string) bool { return !is(name) })
}

// exceeds reports whether a value is none that users may give the parameter, in any
// spelling of its name.
func exceeds(name, value string) bool {
	name = bare(NormalParameter(name))
	for _, b := range BoundParameters {
		if b.Name == name {
			return !regexp.MustCompile(b.Allowed()).MatchString(strings.ToLower(strings.TrimSpace(value)))
		}
	}
	return false
}

// bare is a name without the words that mysqld takes before any.
func bare(name string) string {
	for _, prefix := range prefixes {
		if rest, found := strings.CutPrefix(name, prefix); found {
			return bare(rest)
		}
	}
	return name
}

// prefixes are what mysqld takes before any name, so that loose_read_only is read_only.
var prefixes = []string{"loose_", "skip_", "disable_", "enable_", "maximum_"}

// NormalParameter is the one spelling of a parameter's name: servers take - for
// _ and any case.
func NormalParameter(name string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "-", "_")
}

// Owned tells whether a parameter, in any spelling, is the operator's, and why.
func Owned(name string) (OwnedParameter, bool) {
	name = NormalParameter(name)
	for _, prefix := range prefixes {
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
