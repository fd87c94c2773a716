package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReplicaSpec is whether the Cluster follows an external server.
//
// +kubebuilder:validation:XValidation:rule="has(self.enabled) && !self.enabled || has(self.source) && self.source.size() > 0",message="spec.replica.source is needed: name the running server of spec.externalClusters that this Cluster is to follow"
type ReplicaSpec struct {
	// Enabled: the primary follows the server, read-only. When it is false, the
	// primary takes writes as soon as it has all that the server has executed; then
	// it cannot be true again.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Source names the server. It is the one of bootstrap.recovery.source.
	// +optional
	Source string `json:"source,omitempty"`
}

// FollowsServer reports whether the primary follows an external server; it does not where there is no promotion.
func (p *PromotionStatus) FollowsServer() bool { return p != nil && p.Follows != "" }

// ExternalCluster is what lies outside of this Cluster: backups of another one, or a running server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.objectStore) || !has(self.connectionParameters)",message="an entry of spec.externalClusters has either objectStore (backups of another Cluster) or connectionParameters (a running server); make two entries of it"
// +kubebuilder:validation:XValidation:rule="!has(self.connectionParameters) || (has(self.password) && has(self.sslRootCert))",message="an entry of spec.externalClusters with connectionParameters needs password and sslRootCert: the connection is encrypted, and the server's certificate is verified; add them"
// +kubebuilder:validation:XValidation:rule="has(self.connectionParameters) || (!has(self.password) && !has(self.sslCert) && !has(self.sslKey) && !has(self.sslRootCert))",message="password, sslCert, sslKey and sslRootCert of spec.externalClusters go with connectionParameters; add these, or remove those"
// +kubebuilder:validation:XValidation:rule="has(self.sslCert) == has(self.sslKey)",message="sslCert and sslKey of spec.externalClusters go together; give both or none"
type ExternalCluster struct {
	// Name of the Cluster as it is in the store; any name for a running server.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
	// ObjectStore that has its backups.
	// +optional
	ObjectStore *ObjectStoreSpec `json:"objectStore,omitempty"`
	// ConnectionParameters of a running server: host and user; port, 3306 unless set; and sslmode,
	// verify-full unless it is verify-ca, which takes a certificate that names another host.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['host', 'port', 'user', 'sslmode'])",message="connectionParameters of spec.externalClusters takes host, port, user and sslmode; remove the others"
	// +kubebuilder:validation:XValidation:rule="'host' in self && self['host'].size() > 0 && 'user' in self && self['user'].size() > 0",message="connectionParameters of spec.externalClusters needs host and user; add them"
	// +kubebuilder:validation:XValidation:rule="!('port' in self) || self['port'].matches('^[1-9][0-9]{0,4}$') && int(self['port']) < 65536",message="connectionParameters.port of spec.externalClusters must be a number from 1 to 65535, as text: \"3306\""
	// +kubebuilder:validation:XValidation:rule="!('sslmode' in self) || self['sslmode'] in ['verify-full', 'verify-ca']",message="connectionParameters.sslmode of spec.externalClusters must be verify-full or verify-ca: what is copied are all the data that a server has"
	// +optional
	ConnectionParameters map[string]ConnectionParameter `json:"connectionParameters,omitempty"`
	// Password of the user.
	// +optional
	Password *SecretKeySelector `json:"password,omitempty"`
	// SSLCert is the certificate that is shown to the server, and SSLKey its key; for an account that
	// requires one.
	// +optional
	SSLCert *SecretKeySelector `json:"sslCert,omitempty"`
	// +optional
	SSLKey *SecretKeySelector `json:"sslKey,omitempty"`
	// SSLRootCert are the authorities of which one has signed the server's certificate, in PEM.
	// +optional
	SSLRootCert *SecretKeySelector `json:"sslRootCert,omitempty"`
}

// ConnectionParameter is the value of one of connectionParameters.
//
// +kubebuilder:validation:MaxLength=253
type ConnectionParameter string

// RecoverySpec tells which backup a Cluster begins with, or which running server's data.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) != (has(self.source) && self.source.size() > 0)",message="spec.bootstrap.recovery needs either backup (a Backup of this namespace) or source (one of spec.externalClusters); give one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.backupID) || !has(self.backup)",message="spec.bootstrap.recovery.backupID goes with source: a Backup is one backup already; remove one of them"
type RecoverySpec struct {
	// Backup of this namespace.
	// +optional
	Backup *BackupReference `json:"backup,omitempty"`
	// Source is the name of one of spec.externalClusters. Its entry there may be removed once the
	// Cluster has its data and, if it follows a running server, has taken over.
	// +kubebuilder:validation:MaxLength=50
	// +optional
	Source string `json:"source,omitempty"`
	// BackupID of a backup of the source; the newest one when empty.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]*$`
	// +optional
	BackupID string `json:"backupID,omitempty"`
	// RecoveryTarget is where in time to stop.
	// +optional
	RecoveryTarget *RecoveryTarget `json:"recoveryTarget,omitempty"`
}

// BackupReference names a Backup of the same namespace.
type BackupReference struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RecoveryTarget is where a restore stops; without one it replays all that was archived.
//
// +kubebuilder:validation:XValidation:rule="(has(self.targetTime) ? 1 : 0) + (has(self.targetGTID) ? 1 : 0) + (has(self.targetImmediate) && self.targetImmediate ? 1 : 0) <= 1",message="spec.bootstrap.recovery.recoveryTarget takes one of targetTime, targetGTID and targetImmediate; remove the others"
// +kubebuilder:validation:XValidation:rule="!has(self.exclusive) || !self.exclusive || has(self.targetGTID)",message="spec.bootstrap.recovery.recoveryTarget.exclusive goes with targetGTID; add it, or remove exclusive"
type RecoveryTarget struct {
	// TargetImmediate stops where the backup ends.
	// +optional
	TargetImmediate *bool `json:"targetImmediate,omitempty"`
	// TargetTime, in RFC 3339, as 2026-11-23T21:04:05.123456Z: what was committed then, or
	// before, is restored.
	// +kubebuilder:validation:Format=date-time
	// +optional
	TargetTime string `json:"targetTime,omitempty"`
	// TargetGTID, as UUID:NUMBER or a set of these: the restore ends when all of them are
	// there; with exclusive, before the first of them.
	// +kubebuilder:validation:MinLength=38
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	TargetGTID string `json:"targetGTID,omitempty"`
	// Exclusive stops before the first transaction of targetGTID.
	// +optional
	Exclusive bool `json:"exclusive,omitempty"`
}

// Stages of a restore, in this order; RestoreWaiting is told in the instance's message.
const (
	RestoreWaiting   = "Waiting"
	RestoreCompleted = "Completed"
)

// RestoreStatus is how far the restore is with which the Cluster begins, and what it was.
type RestoreStatus struct {
	// Stage is Backup (Copy of a running server), Archive, Finishing or Completed; Waiting while it could
	// not go on and is tried again from the start.
	Stage string `json:"stage"`
	// BackupID is the name in the store of the backup that is restored.
	// +optional
	BackupID string `json:"backupId,omitempty"`
	// Source is the running server, of spec.externalClusters, whose data are copied instead.
	// +optional
	Source string `json:"source,omitempty"`
	// PassedOver are the newer backups that could not be used.
	// +optional
	// +listType=atomic
	PassedOver []PassedOverBackup `json:"passedOver,omitempty"`
	// LackingTables were of another engine than InnoDB when the backup was taken, or since: they
	// lack rows. At most 20 are named.
	// +optional
	// +listType=atomic
	LackingTables []string `json:"lackingTables,omitempty"`
	// Backup is how far the files are of the backup, or of the running server.
	// +optional
	Backup *BackupProgress `json:"backup,omitempty"`
	// Archive is how far the archive is replayed on them; absent before.
	// +optional
	Archive *ReplayProgress `json:"archive,omitempty"`
	// ReachedTime is the latest commit that the data hold, as far as that is known.
	// +optional
	ReachedTime *metav1.MicroTime `json:"reachedTime,omitempty"`
}

// PassedOverBackup is a backup that could not be used.
type PassedOverBackup struct {
	BackupID string `json:"backupId"`
	// Reason names why.
	Reason string `json:"reason"`
}

// ReplayProgress is how far the archive of binary logs is replayed.
type ReplayProgress struct {
	// Transactions that were replayed, of TotalTransactions.
	Transactions      int64 `json:"transactions"`
	TotalTransactions int64 `json:"totalTransactions"`
	// Bytes of the parts that were replayed as a whole, of TotalBytes.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// Percent of the transactions.
	Percent string `json:"percent"`
	// TransactionsPerSecond since the replay began.
	TransactionsPerSecond int64 `json:"transactionsPerSecond"`
	// LastPart is the last part that was replayed, as epoch/number.
	// +optional
	LastPart string `json:"lastPart,omitempty"`
	// TargetTime is the latest commit that will be replayed.
	// +optional
	TargetTime *metav1.MicroTime `json:"targetTime,omitempty"`
	// ExpectedEnd at that rate.
	// +optional
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`
}
