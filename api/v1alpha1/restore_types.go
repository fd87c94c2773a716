package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ExternalCluster is what lies outside of this Cluster: backups of another one.
//
// +kubebuilder:validation:XValidation:rule="!has(self.connectionParameters) && !has(self.password) && !has(self.sslCert) && !has(self.sslKey) && !has(self.sslRootCert)",message="spec.externalClusters takes only name and objectStore: data is not taken from a running server yet; remove connectionParameters, password, sslCert, sslKey and sslRootCert"
type ExternalCluster struct {
	// Name of the Cluster as it is in the store.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
	// ObjectStore that has its backups.
	// +optional
	ObjectStore *ObjectStoreSpec `json:"objectStore,omitempty"`
	// ConnectionParameters are not supported yet.
	// +optional
	ConnectionParameters *Unsupported `json:"connectionParameters,omitempty"`
	// Password is not supported yet.
	// +optional
	Password *Unsupported `json:"password,omitempty"`
	// SSLCert is not supported yet.
	// +optional
	SSLCert *Unsupported `json:"sslCert,omitempty"`
	// SSLKey is not supported yet.
	// +optional
	SSLKey *Unsupported `json:"sslKey,omitempty"`
	// SSLRootCert is not supported yet.
	// +optional
	SSLRootCert *Unsupported `json:"sslRootCert,omitempty"`
}

// RecoverySpec tells which backup a Cluster begins with.
//
// +kubebuilder:validation:XValidation:rule="has(self.backup) != (has(self.source) && self.source.size() > 0)",message="spec.bootstrap.recovery needs either backup (a Backup of this namespace) or source (one of spec.externalClusters); give one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.backupID) || !has(self.backup)",message="spec.bootstrap.recovery.backupID goes with source: a Backup is one backup already; remove one of them"
type RecoverySpec struct {
	// Backup of this namespace.
	// +optional
	Backup *BackupReference `json:"backup,omitempty"`
	// Source is the name of one of spec.externalClusters.
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
	// Stage is Backup, Archive, Finishing or Completed; Waiting while it could not go on and
	// is tried again from the start.
	Stage string `json:"stage"`
	// BackupID is the name in the store of the backup that is restored.
	BackupID string `json:"backupId"`
	// PassedOver are the newer backups that could not be used.
	// +optional
	// +listType=atomic
	PassedOver []PassedOverBackup `json:"passedOver,omitempty"`
	// LackingTables were of another engine than InnoDB when the backup was taken, or since: they
	// lack rows. At most 20 are named.
	// +optional
	// +listType=atomic
	LackingTables []string `json:"lackingTables,omitempty"`
	// Backup is how far the backup's files are.
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
