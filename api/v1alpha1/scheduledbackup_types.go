package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ScheduledBackup makes Backups of a Cluster at set times.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=scheduledbackups,singular=scheduledbackup,shortName=myscheduledbackup,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Problem",type=string,JSONPath=`.status.problem`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name of a ScheduledBackup must have at most 40 characters, and only lower-case letters, digits and '-': the names of its Backups are made from it; choose another name"
type ScheduledBackup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required
	Spec ScheduledBackupSpec `json:"spec"`
	// +optional
	Status ScheduledBackupStatus `json:"status,omitempty"`

	// UnreadWhy tells what of it could not be read; "" if all was. It is nothing of the API.
	UnreadWhy string `json:"-"`
}

// ScheduledBackupList is a list of ScheduledBackups.
//
// +kubebuilder:object:root=true
type ScheduledBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ScheduledBackup `json:"items"`
}

// ScheduledBackupSpec is when to make Backups, and how.
//
// +kubebuilder:validation:XValidation:rule="!has(self.retentionPolicy)",message="spec.retentionPolicy of a ScheduledBackup is not supported: the backups of a Cluster expire together, whichever schedule made them, because the archive between them is one; remove it, and set spec.backup.retentionPolicy of the Cluster"
type ScheduledBackupSpec struct {
	// Cluster of this namespace.
	// +kubebuilder:validation:Required
	Cluster ClusterReference `json:"cluster"`

	// Schedule has six fields: second, minute, hour, day of month, month, day of week;
	// or is @hourly, @daily, @weekly, @monthly, @yearly, or @every DURATION.
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Schedule string `json:"schedule"`
	// TimeZone of the schedule, as Europe/Berlin; UTC when empty.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// Immediate makes a Backup at once when this is created.
	// +optional
	Immediate bool `json:"immediate,omitempty"`
	// Suspend makes no Backups meanwhile; those that were missed are not made up for.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	BackupWishes `json:",inline"`

	// BackupOwnerReference is with what the Backups are deleted: with this (self), with
	// the Cluster (cluster), or with nothing (none). What is in the store stays, unless
	// reclaimPolicy is Delete.
	// +kubebuilder:validation:Enum=none;self;cluster
	// +kubebuilder:default=self
	// +optional
	BackupOwnerReference string `json:"backupOwnerReference,omitempty"`
	// SuccessfulBackupsHistoryLimit is how many Completed Backups are kept in
	// Kubernetes, the newest, and the last one always; all when absent. What is in the
	// store stays, unless reclaimPolicy is Delete.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SuccessfulBackupsHistoryLimit *int32 `json:"successfulBackupsHistoryLimit,omitempty"`
	// FailedBackupsHistoryLimit is the same of Failed ones. The last one stays until one
	// is Completed after it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailedBackupsHistoryLimit *int32 `json:"failedBackupsHistoryLimit,omitempty"`
	// RetentionPolicy is not supported: that of the Cluster's spec.backup is for all.
	// +optional
	RetentionPolicy string `json:"retentionPolicy,omitempty"`
}

// Values of backupOwnerReference.
const (
	BackupOwnerNone    = "none"
	BackupOwnerSelf    = "self"
	BackupOwnerCluster = "cluster"
)

// ScheduledBackupStatus is what was made of a schedule.
type ScheduledBackupStatus struct {
	// LastCheckTime is when the schedule was last looked at with something to do.
	// +optional
	LastCheckTime *metav1.Time `json:"lastCheckTime,omitempty"`
	// LastScheduleTime is the time of the schedule for which a Backup was last made.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// NextScheduleTime is when the next one is made.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// LastBackup is the name of the Backup that was made last.
	// +optional
	LastBackup string `json:"lastBackup,omitempty"`
	// Problem says why no Backups are made, and what to do.
	// +optional
	Problem string `json:"problem,omitempty"`
}
