package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
