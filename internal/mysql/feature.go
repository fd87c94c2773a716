package mysql

import (
	"fmt"
	"strings"
)

// feature is a way in which servers differ. Every one of them stands in this
// table with the version that brought or took it, so that a new server version
// means new rows, not new conditions in the code.
type feature int

const (
	// changeReplicationSource is CHANGE REPLICATION SOURCE TO SOURCE_… instead of CHANGE MASTER TO
	// MASTER_….
	changeReplicationSource feature = iota
	// replicaVariables is log_replica_updates, replica_net_timeout and so on instead of their
	// "slave" names.
	replicaVariables
	// sourceReplicaSemiSync is the plugins semisync_source.so and semisync_replica.so.
	sourceReplicaSemiSync
	// redoLogCapacity is innodb_redo_log_capacity instead of innodb_log_file_size.
	redoLogCapacity
	// purgesOnRequest is the variable binlog_expire_logs_auto_purge.
	purgesOnRequest
	// appliesInParallelByDefault is that LOGICAL_CLOCK and commit order are defaults.
	appliesInParallelByDefault
	// tracksWriteSetsAlways is that binlog_transaction_dependency_tracking is gone.
	tracksWriteSetsAlways
	// allowlistOfRunningMember is that group_replication_ip_allowlist can be set while the member
	// runs.
	allowlistOfRunningMember
	// boundsGroupTransactions is that group_replication_set_as_primary takes a bound of how long
	// transactions in progress hold it up.
	boundsGroupTransactions
	// formatDeprecated is that the server warns when binlog_format is set.
	formatDeprecated
)

var since = map[feature]Version{
	changeReplicationSource:    {Major: 8, Minor: 0, Patch: 23},
	replicaVariables:           {Major: 8, Minor: 0, Patch: 26},
	sourceReplicaSemiSync:      {Major: 8, Minor: 0, Patch: 26},
	redoLogCapacity:            {Major: 8, Minor: 0, Patch: 30},
	purgesOnRequest:            {Major: 8, Minor: 0, Patch: 29},
	appliesInParallelByDefault: {Major: 8, Minor: 0, Patch: 27},
	tracksWriteSetsAlways:      {Major: 8, Minor: 4, Patch: 0},
	allowlistOfRunningMember:   {Major: 8, Minor: 0, Patch: 24},
	boundsGroupTransactions:    {Major: 8, Minor: 0, Patch: 29},
	formatDeprecated:           {Major: 8, Minor: 0, Patch: 34},
}

func (v Version) has(f feature) bool { return v.AtLeast(since[f]) }

// names of things that were renamed.
type names struct {
	semiSyncSource, semiSyncReplica             string // prefix of variables and status
	semiSyncSourcePlugin, semiSyncReplicaPlugin string
	semiSyncCount, semiSyncAlone                string
	logUpdates, skipStart, netTimeout           string
	workers, commitOrder                        string
}

func (v Version) names() names {
	n := names{
		semiSyncSource: "rpl_semi_sync_source", semiSyncReplica: "rpl_semi_sync_replica",
		semiSyncSourcePlugin: "semisync_source.so", semiSyncReplicaPlugin: "semisync_replica.so",
		semiSyncCount: "rpl_semi_sync_source_wait_for_replica_count",
		semiSyncAlone: "rpl_semi_sync_source_wait_no_replica",
		logUpdates:    "log_replica_updates", skipStart: "skip_replica_start", netTimeout: "replica_net_timeout",
		workers: "replica_parallel_workers", commitOrder: "replica_preserve_commit_order",
	}
	if !v.has(sourceReplicaSemiSync) {
		n.semiSyncSource, n.semiSyncReplica = "rpl_semi_sync_master", "rpl_semi_sync_slave"
		n.semiSyncSourcePlugin, n.semiSyncReplicaPlugin = "semisync_master.so", "semisync_slave.so"
		n.semiSyncCount = "rpl_semi_sync_master_wait_for_slave_count"
		n.semiSyncAlone = "rpl_semi_sync_master_wait_no_slave"
	}
	if !v.has(replicaVariables) {
		n.logUpdates, n.skipStart, n.netTimeout = "log_slave_updates", "skip_slave_start", "slave_net_timeout"
		n.workers, n.commitOrder = "slave_parallel_workers", "slave_preserve_commit_order"
	}
	return n
}

// changeSource is a statement that begins with CHANGE REPLICATION SOURCE TO, in the words of the version.
func (v Version) changeSource(statement string) string {
	if v.has(changeReplicationSource) {
		return statement
	}
	return strings.ReplaceAll(strings.Replace(statement, "REPLICATION SOURCE", "MASTER", 1), "SOURCE_", "MASTER_")
}

// TakeRelayLogs is the statement by which a server, that calls its version so, takes relay logs from the
// beginning of the one named by ? as those of a channel, which has no source.
func TakeRelayLogs(version, channel string) (string, error) {
	v, err := parseNumbers(version)
	if err != nil {
		return "", fmt.Errorf("the server's version: %w", err)
	}
	return v.changeSource("CHANGE REPLICATION SOURCE TO SOURCE_HOST='archive', SOURCE_AUTO_POSITION=0, "+
		"RELAY_LOG_FILE=?, RELAY_LOG_POS=4") + " FOR CHANNEL '" + channel + "'", nil
}
