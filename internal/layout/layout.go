// Package layout is the contract between those who build an instance's Pod and
// the manager that runs in it: paths, ports, environment and file names, and
// how a value of a Secret is read. It holds constants and next to no logic.
package layout

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Paths in the mysqld container.
const (
	// BinDir is an emptyDir into which an init container copied the manager.
	BinDir = "/opt/cnmsql/bin"
	// Binary is the manager.
	Binary = BinDir + "/cnmsql"
	// VolumeDir is the instance's persistent volume.
	VolumeDir = "/var/lib/mysql"
	// DataDir is mysqld's data directory.
	DataDir = VolumeDir + "/data"
	// MetaDir holds what the manager itself must remember.
	MetaDir = VolumeDir + "/cnmsql"
	// RunDir is an emptyDir for my.cnf, sockets and temporary files; the root
	// file system is read-only.
	RunDir = "/opt/cnmsql/run"
	// ConfigFile is the rendered my.cnf.
	ConfigFile = RunDir + "/my.cnf"
	// Socket of mysqld.
	Socket = RunDir + "/mysqld.sock"
	// TmpDir is mysqld's tmpdir, an emptyDir mounted over /tmp.
	TmpDir = "/tmp"
	// TLSDir holds ca.crt, tls.crt and tls.key of the instance.
	TLSDir = "/opt/cnmsql/tls"
	// RootDir, ReplicationDir, ControlDir and AppDir hold the Secrets of the
	// accounts, one file a key (username, password).
	RootDir        = "/opt/cnmsql/secrets/root"
	ReplicationDir = "/opt/cnmsql/secrets/replication"
	ControlDir     = "/opt/cnmsql/secrets/control"
	AppDir         = "/opt/cnmsql/secrets/app"
)

// Keys of a Secret with an account, which are files where it is mounted.
const (
	KeyUsername = "username"
	KeyPassword = "password"
	// The Secret of the managers' account has that of the Jobs of Backups, too: every instance has it mounted, also
	// one in a Pod that an earlier release has built. A Job is given these two keys alone, by the names of above.
	KeyBackupUsername = "backup-username"
	KeyBackupPassword = "backup-password"
)

// BackupAccountDir, in the container of a Backup's Job, holds the account with which it logs in to mysqld.
const BackupAccountDir = "/opt/cnmsql/secrets/backup"

// Ports of an instance.
const (
	MySQLPort   = 3306
	AdminPort   = 33062 // where replicas connect: max_connections does not hold there
	GroupPort   = 33061 // where the members of a group speak with each other
	ControlPort = 8080
	ProbePort   = 8081
	MetricsPort = 9187
)

// Ports are all of them, in ascending order.
var Ports = []int32{MySQLPort, ControlPort, ProbePort, MetricsPort, GroupPort, AdminPort}

// Environment of the manager.
const (
	EnvNamespace   = "CNMSQL_NAMESPACE"
	EnvCluster     = "CNMSQL_CLUSTER"
	EnvInstance    = "CNMSQL_INSTANCE"
	EnvPodUID      = "CNMSQL_POD_UID"
	EnvNode        = "CNMSQL_NODE"
	EnvPodIP       = "CNMSQL_POD_IP"
	EnvServerID    = "CNMSQL_SERVER_ID"
	EnvMemoryLimit = "CNMSQL_MEMORY_LIMIT" // bytes; the node's memory when there is no limit
	EnvCPULimit    = "CNMSQL_CPU_LIMIT"    // whole CPUs, rounded up
	EnvLogLevel    = "CNMSQL_LOG_LEVEL"
	// EnvHandover is the file descriptor of what the manager before has left, in the same process.
	EnvHandover = "CNMSQL_LEGACY"
)

// Container is the name of the container that runs the manager and mysqld.
const Container = "mysql"

// User and group id that mysqld and its files belong to.
const (
	UserID  = 999
	GroupID = 999
)

// SecretValue is a name or a password as everybody reads it from a Secret or its file: without
// the end of a line, which editors and echo leave there. Who judges it must judge this, and not
// what stands in the Secret: the server has this.
func SecretValue(raw []byte) string { return strings.TrimRight(string(raw), "\r\n") }

// PasswordMost is of how many bytes a password may be: caching_sha2_password keeps a longer one,
// and lets nobody in with it.
const PasswordMost = 256

// ReplicationPasswordMost is of how many bytes that of the replication account may be: a server gives no
// longer one to a source, or to the member of its group that it recovers from.
const ReplicationPasswordMost = 32

// IsLine reports whether a name or a password is one line of text: UTF-8 without control characters. No
// channel of replication takes another.
func IsLine(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}

// PrimaryLease is the name of the Lease that the primary of a cluster holds.
func PrimaryLease(cluster string) string { return cluster + "-primary" }

// InstanceHost is the DNS name under which the cluster's members reach an
// instance, through its headless Service.
func InstanceHost(instance, namespace string) string {
	return instance + "." + namespace + ".svc"
}

// StoreDir, in the container of a backup's Job and of an instance that restores one, holds
// the files of package store, and what is to be done with it.
const StoreDir = "/opt/cnmsql/store"

// ArchiveDir, in the container of an instance that archives, holds the files of package store.
const ArchiveDir = "/opt/cnmsql/archive"
