package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VerifySpec is when backups are tried: the newest one is restored, with the archive, into a
// throw-away Cluster, whose tables are checked. `kubectl cnmsql backup verify` does it at
// any time, with or without this.
//
// +kubebuilder:validation:XValidation:rule="!has(self.timeZone) || has(self.schedule)",message="spec.backup.verify.timeZone goes with schedule; add it, or remove timeZone"
type VerifySpec struct {
	// Schedule, in six fields, the first of which is the second, as in a ScheduledBackup:
	// "0 0 4 * * sun". No verification begins by itself when it is absent.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Schedule string `json:"schedule,omitempty"`
	// TimeZone of the schedule, as Europe/Berlin; UTC when absent.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// MaxDuration is how long one verification may take before it is given up, and has
	// failed; six hours when absent.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="spec.backup.verify.maxDuration must be at least 1m"
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
}

// Phases of a verification.
const (
	VerificationPending   = "Pending"
	VerificationSampling  = "Sampling"
	VerificationRestoring = "Restoring"
	VerificationChecking  = "Checking"
	VerificationSucceeded = "Succeeded"
	VerificationFailed    = "Failed"
)

// ConditionBackupsVerified of a Cluster is True when the last verification of its backups
// that ended succeeded, and False, with a reason, when it failed; absent before.
const ConditionBackupsVerified = "BackupsVerified"

// VerificationStatus is what the last verification of the backups found, or how far the
// present one is.
type VerificationStatus struct {
	// Phase is Pending, Sampling, Restoring, Checking, Succeeded or Failed.
	Phase string `json:"phase"`
	// Reason names why it waits, or has failed; Message says it, or what was found.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Request is the value of the annotation that asked for it, ScheduledFor the time of
	// the schedule that it was begun for.
	// +optional
	Request string `json:"request,omitempty"`
	// +optional
	ScheduledFor *metav1.Time `json:"scheduledFor,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// ClusterUID is the UID of the throw-away Cluster; empty once that is gone.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// BackupID is the backup in the store that was restored.
	// +optional
	BackupID string `json:"backupId,omitempty"`
	// RestoredTo is what the restored server had executed, abbreviated when it is long.
	// +optional
	RestoredTo string `json:"restoredTo,omitempty"`
	// RestoredToTime is when the last transaction was committed that was restored.
	// +optional
	RestoredToTime *metav1.Time `json:"restoredToTime,omitempty"`
	// RestoreSeconds is how long it took from the creation of the throw-away Cluster until
	// it took writes: what a restore takes now.
	// +optional
	RestoreSeconds int64 `json:"restoreSeconds,omitempty"`
	// Tables is the number of tables, and TablesChecked of how many the server said that
	// they are sound.
	// +optional
	Tables int32 `json:"tables,omitempty"`
	// +optional
	TablesChecked int32 `json:"tablesChecked,omitempty"`
	// TablesCompared is the number of tables whose rows were compared with those of an
	// instance of the Cluster.
	// +optional
	TablesCompared int32 `json:"tablesCompared,omitempty"`
	// NotCompared is why no rows were compared.
	// +optional
	NotCompared string `json:"notCompared,omitempty"`
	// Sample is what the rows of some tables of the Cluster added up to, while the
	// verification runs: the restored ones are compared with it.
	// +optional
	Sample *VerificationSample `json:"sample,omitempty"`
	// LastSucceededAt is when a verification last succeeded, this one or an earlier one.
	// +optional
	LastSucceededAt *metav1.Time `json:"lastSucceededAt,omitempty"`
}

// VerificationSample is what the rows of some tables added up to at one moment.
type VerificationSample struct {
	// Executed is the gtid_executed of that moment.
	Executed string      `json:"executed"`
	TakenAt  metav1.Time `json:"takenAt"`
	// +listType=atomic
	Tables []TableSum `json:"tables"`
}

// TableSum is what the rows of a table add up to.
type TableSum struct {
	// Table is its name, as schema.table.
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Sum   string `json:"sum"`
}

// VerificationScheduleStatus is when verifications are begun by the schedule.
type VerificationScheduleStatus struct {
	// +optional
	LastCheckTime *metav1.Time `json:"lastCheckTime,omitempty"`
	// LastScheduleTime is the newest time of the schedule that a verification was begun for.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// NextScheduleTime is when the next one begins; in the past, it is held back.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// Problem says why none begins, and what to do; empty when all is well.
	// +optional
	Problem string `json:"problem,omitempty"`
}
