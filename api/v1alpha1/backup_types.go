package v1alpha1

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Backup is one physical backup of a Cluster, taken when it is created and never again. One
// that failed stays failed.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=backups,singular=backup,shortName=mybackup,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress.percent`
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.status.instanceName`
// +kubebuilder:printcolumn:name="Stored",type=string,JSONPath=`.status.storedSize`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.error`,priority=1
// +kubebuilder:validation:XValidation:rule="self.spec == oldSelf.spec",message="a Backup is made once, and its spec cannot be changed; create another Backup"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 56 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name of a Backup must have at most 56 characters, and only lower-case letters, digits and '-': the name of its Job is made from it; choose another name"
type Backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:validation:Required
	Spec BackupSpec `json:"spec"`
	// +optional
	Status BackupStatus `json:"status,omitempty"`

	// UnreadWhy tells what of it could not be read; "" if all was. It is nothing of the API.
	UnreadWhy string `json:"-"`
}

// BackupList is a list of Backups.
//
// +kubebuilder:object:root=true
type BackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Backup `json:"items"`
}

// BackupSpec is what is backed up, and where to.
type BackupSpec struct {
	// Cluster of this namespace.
	// +kubebuilder:validation:Required
	Cluster ClusterReference `json:"cluster"`

	BackupWishes `json:",inline"`

	// ObjectStore to write to; that of the Cluster's spec.backup when absent.
	// +optional
	ObjectStore *ObjectStoreSpec `json:"objectStore,omitempty"`
}

// ClusterReference names a Cluster of the same namespace.
type ClusterReference struct {
	// +kubebuilder:validation:Required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name"`
}

// BackupWishes say how a backup is made, of a Backup and of those of a ScheduledBackup.
//
// +kubebuilder:validation:XValidation:rule="!has(self.method) || self.method == 'clone'",message="the only method is clone: backups are taken through MySQL's own clone protocol, and need neither a tool in the image nor snapshots of volumes; set method: clone, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.online) || self.online",message="online cannot be false: the instance keeps running while it is backed up; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.reclaimPolicy) || self.reclaimPolicy.lowerAscii() in ['retain', 'delete']",message="reclaimPolicy must be Retain or Delete: with Delete the data in the store go when the Backup is deleted; correct it, or remove it to retain them"
type BackupWishes struct {
	// Method is clone: a snapshot through MySQL's clone protocol.
	// +kubebuilder:validation:MaxLength=20
	// +optional
	Method string `json:"method,omitempty"`
	// Target is the instance that is backed up: prefer-standby takes a replica, and the
	// primary of a Cluster of one instance, or when no replica has been ready for five
	// minutes; that of the Cluster's spec.backup when absent.
	// +kubebuilder:validation:Enum=primary;prefer-standby
	// +optional
	Target string `json:"target,omitempty"`
	// Online: the instance goes on.
	// +optional
	Online *bool `json:"online,omitempty"`
	// ReclaimPolicy is what becomes of the data in the store when the Backup is
	// deleted: Retain, or Delete. They are retained when absent.
	// +optional
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`
	// JobTemplate of the Job that makes the backup; that of the Cluster's spec.backup
	// when absent.
	// +optional
	JobTemplate *JobTemplate `json:"jobTemplate,omitempty"`
}

// Instances that are backed up.
const (
	TargetPrimary       = "primary"
	TargetPreferStandby = "prefer-standby"
)

// ReclaimDelete has the data in the store removed when the Backup is deleted; in any case of
// letters.
const ReclaimDelete = "Delete"

// MethodClone is the way in which backups are taken.
const MethodClone = "clone"

// JobTemplate shapes the Pod of a backup's Job.
type JobTemplate struct {
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/') || self[k] != 'unconfined')",message="jobTemplate.annotations container.apparmor.security.beta.kubernetes.io/…: unconfined is refused: it would give whoever may ask for backups more than a backup on the node; remove it"
	// +optional
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Resources of the container. It needs up to 256 MiB of memory. Without any it
	// requests 128Mi of memory, and as much CPU as an instance requests, 100m at
	// most; where a quota wants limits, name them.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// TTL is how long the Job is kept after its end; a day when absent.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="a duration is like 10m"
	// +optional
	TTL *metav1.Duration `json:"ttl,omitempty"`
}

// Phases of a Backup.
const (
	BackupPending   = "Pending"
	BackupRunning   = "Running"
	BackupCompleted = "Completed"
	BackupFailed    = "Failed"
)

// BackupStatus is what became of a Backup.
type BackupStatus struct {
	// Phase is Pending, Running, Completed or Failed; the last two are for ever.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Reason names why it is Pending or Failed, or why its Job does not run.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Error says what went wrong, or what is waited for, and what to do.
	// +optional
	Error string `json:"error,omitempty"`
	// QueuedUntil is when it last stopped waiting for another Backup, or for a join: it waits for anything else
	// for an hour from then, or from its creation.
	// +optional
	QueuedUntil *metav1.Time `json:"queuedUntil,omitempty"`
	// NoInstanceSince is since when Reason has been NoInstanceToBackUp without a break; absent
	// while it is not. Five minutes later the primary is taken, where a replica is preferred.
	// +optional
	NoInstanceSince *metav1.Time `json:"noInstanceSince,omitempty"`
	// +optional
	Method string `json:"method,omitempty"`
	// InstanceName is the instance that was backed up.
	// +optional
	InstanceName string `json:"instanceName,omitempty"`
	// InstanceReason says why that is the primary, where a replica was preferred; absent otherwise.
	// +optional
	InstanceReason string `json:"instanceReason,omitempty"`
	// +optional
	JobName string `json:"jobName,omitempty"`
	// BackupID is the backup's name in the store.
	// +optional
	BackupID string `json:"backupId,omitempty"`
	// DestinationPath is where it lies.
	// +optional
	DestinationPath string `json:"destinationPath,omitempty"`
	// ObjectStore is what it was written to.
	// +optional
	ObjectStore *ObjectStoreSpec `json:"objectStore,omitempty"`
	// BeginGTID is what the backup surely holds.
	// +optional
	BeginGTID string `json:"beginGTID,omitempty"`
	// EndGTID is what the backup holds at most.
	// +optional
	EndGTID string `json:"endGTID,omitempty"`
	// ServerVersion of the instance. An older server cannot restore it.
	// +optional
	ServerVersion string `json:"serverVersion,omitempty"`
	// SHA256 of the manifest, which holds those of all parts.
	// +optional
	SHA256 string `json:"sha256,omitempty"`
	// Size of the data, and StoredSize of what was written to the store, in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
	// +optional
	StoredSize int64 `json:"storedSize,omitempty"`
	// EncryptedTo is the recipient of age that the backup is encrypted to: whoever has its
	// identity restores it. Empty when it is not encrypted.
	// +optional
	EncryptedTo string `json:"encryptedTo,omitempty"`
	// Progress while it runs.
	// +optional
	Progress *BackupProgress `json:"progress,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	StoppedAt *metav1.Time `json:"stoppedAt,omitempty"`
	// Retention is what was removed from the store after this backup, of a Cluster that
	// has spec.backup.retentionPolicy.
	// +optional
	Retention *BackupRetention `json:"retention,omitempty"`
	// Merging is what became of small parts of the archive after this backup; absent if there
	// was nothing to do.
	// +optional
	Merging *BackupMerging `json:"merging,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// BackupProgress is how far a Backup is.
type BackupProgress struct {
	// Bytes of the data that were copied, of TotalBytes that are expected: writes
	// meanwhile may make it more.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes"`
	// Percent of it.
	Percent string `json:"percent"`
	// BytesPerSecond since it began.
	BytesPerSecond int64 `json:"bytesPerSecond"`
	// ExpectedEnd at that rate.
	// +optional
	ExpectedEnd *metav1.Time `json:"expectedEnd,omitempty"`
}

// BackupRetention is what was removed from the store, and what was not.
type BackupRetention struct {
	// RanAt is when it ended.
	RanAt metav1.Time `json:"ranAt"`
	// RemovedBackups are the names in the store of the backups that had expired.
	// +optional
	RemovedBackups []string `json:"removedBackups,omitempty"`
	// RemovedUnfinished is how many backups were removed that had been given up.
	// +optional
	RemovedUnfinished int32 `json:"removedUnfinished,omitempty"`
	// RemovedParts is how many parts of the archive of binary logs were removed.
	// +optional
	RemovedParts int64 `json:"removedParts,omitempty"`
	// KeptSince is the earliest moment that can be restored.
	// +optional
	KeptSince *metav1.Time `json:"keptSince,omitempty"`
	// Held tells why nothing was removed, or less than has expired.
	// +optional
	Held *RetentionHeld `json:"held,omitempty"`
	// UnknownObjects is how many objects lie below the Cluster's name that are not the
	// operator's, and UnknownNames are the first of them. They are left alone.
	// +optional
	UnknownObjects int64 `json:"unknownObjects,omitempty"`
	// +optional
	UnknownNames []string `json:"unknownNames,omitempty"`
}

// BackupMerging is what became of small parts of the archive of binary logs.
type BackupMerging struct {
	// MergedParts were written into Bundles.
	// +optional
	MergedParts int64 `json:"mergedParts,omitempty"`
	// +optional
	Bundles int64 `json:"bundles,omitempty"`
	// RemovedObjects are those whose parts had been in a bundle for a while.
	// +optional
	RemovedObjects int64 `json:"removedObjects,omitempty"`
	// Held tells why less was done than could be.
	// +optional
	Held *RetentionHeld `json:"held,omitempty"`
}

// RetentionHeld is why something was not removed, or not merged.
type RetentionHeld struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ConditionBackupStored of a Backup is False once the backup was removed from the store, and
// Unknown while that is tried and fails; it is absent before.
const ConditionBackupStored = "Stored"

// Removed is the condition by which a Backup tells that its data are not in the store any
// more; nil while they are, as far as is known.
func (b *Backup) Removed() *metav1.Condition {
	if c := meta.FindStatusCondition(b.Status.Conditions, ConditionBackupStored); c != nil &&
		c.Status == metav1.ConditionFalse {
		return c
	}
	return nil
}

// IsRestorable reports whether it is complete and its data are in the store, as far as is known.
// Of one that is being deleted they go, its manifest first.
func (b *Backup) IsRestorable() bool {
	return b.Status.Phase == BackupCompleted && b.DeletionTimestamp == nil && b.Removed() == nil
}

// IsOfEarlier reports whether it was taken of a Cluster that had the name before c was created. It
// holds nothing of c. Who began it before has been told so by two clocks, where there are two.
func (b *Backup) IsOfEarlier(c *Cluster) bool {
	return c != nil && b.CreationTimestamp.Before(&c.CreationTimestamp) &&
		(b.Status.StartedAt == nil || b.Status.StartedAt.Before(&c.CreationTimestamp))
}

// ConditionBackupRetention of a Backup tells whether what had expired after it was removed;
// absent unless the Cluster has a retentionPolicy.
const ConditionBackupRetention = "Retention"

// ConditionArchiveMerged of a Backup tells whether small parts of the archive were merged after
// it; absent if there was nothing to do.
const ConditionArchiveMerged = "ArchiveMerged"

// ConditionBackupCompleted of a Backup is True once the backup is in the store, and False
// with a reason otherwise.
const ConditionBackupCompleted = "Completed"

// CompressionNone is that of backups that are stored as they are.
const CompressionNone = "none"

// BackupDefaults are what the Backups of a Cluster have in common.
//
// +kubebuilder:validation:XValidation:rule="!has(self.xtrabackupOptions) || self.xtrabackupOptions.size() == 0",message="spec.backup.xtrabackupOptions is not supported: backups are taken through MySQL's own clone protocol; remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.retentionPolicy) || has(self.objectStore)",message="spec.backup.retentionPolicy needs spec.backup.objectStore, in which backups expire; add it, or remove retentionPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.minimumBackups) || has(self.retentionPolicy)",message="spec.backup.minimumBackups goes with spec.backup.retentionPolicy: without it, all backups stay; add retentionPolicy, or remove minimumBackups"
// +kubebuilder:validation:XValidation:rule="!has(self.continuousArchiving) || !self.continuousArchiving.enabled || has(self.objectStore)",message="spec.backup.continuousArchiving needs spec.backup.objectStore, where the archive lies; add it, or set enabled: false"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || has(self.objectStore)",message="spec.backup.verify needs spec.backup.objectStore, whose backups it verifies; add it, or remove verify"
// +kubebuilder:validation:XValidation:rule="!has(self.reclaimPolicy) || self.reclaimPolicy.lowerAscii() == 'retain' || self.reclaimPolicy.lowerAscii() == 'delete' && has(self.objectStore)",message="spec.backup.reclaimPolicy must be Retain, or Delete with spec.backup.objectStore, from which all backups and the archive then go with the Cluster; correct it, or remove it to retain them"
type BackupDefaults struct {
	// ObjectStore that Backups are written to which name none.
	// +optional
	ObjectStore *ObjectStoreSpec `json:"objectStore,omitempty"`
	// Target is the instance that is backed up.
	// +kubebuilder:validation:Enum=primary;prefer-standby
	// +kubebuilder:default=prefer-standby
	// +optional
	Target string `json:"target,omitempty"`
	// JobTemplate of the Jobs that make backups.
	// +optional
	JobTemplate *JobTemplate `json:"jobTemplate,omitempty"`
	// MaxBytesPerSecond bounds what a backup writes to the store, and a restore reads
	// from it; not bounded when 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxBytesPerSecond int64 `json:"maxBytesPerSecond,omitempty"`
	// Compression of backups: zstd, or none, which spares the cores and needs two to three
	// times the place. Binary logs are compressed in any case. zstd when absent.
	// +kubebuilder:validation:Enum=zstd;none
	// +optional
	Compression string `json:"compression,omitempty"`
	// ReclaimPolicy is what becomes of all that lies in objectStore, backups and archive, when
	// the Cluster is deleted: Retain, which it is when absent, or Delete.
	// +optional
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`
	// RetentionPolicy is for how long every moment stays restorable, as 30d, 8w or 12m:
	// days, weeks, or months of 31 days. After each backup, what is not needed for that is
	// removed from objectStore, whoever made it. All stays when absent.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*[dwm]$')",message="spec.backup.retentionPolicy must be a number and d, w or m, as 30d for thirty days, 8w for eight weeks, 12m for twelve months of 31 days"
	// +kubebuilder:validation:MaxLength=5
	// +optional
	RetentionPolicy string `json:"retentionPolicy,omitempty"`
	// MinimumBackups is how many backups stay however old they are; 1 when absent.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MinimumBackups *int32 `json:"minimumBackups,omitempty"`
	// ContinuousArchiving ships the binary log to the object store while it is written.
	// +optional
	ContinuousArchiving *ContinuousArchivingSpec `json:"continuousArchiving,omitempty"`
	// Verify is when backups are tried by restoring them.
	// +optional
	Verify *VerifySpec `json:"verify,omitempty"`
	// XtrabackupOptions are not supported: there are none.
	// +kubebuilder:validation:MaxItems=64
	// +optional
	XtrabackupOptions []string `json:"xtrabackupOptions,omitempty"`
}

// ContinuousArchivingSpec is how binary logs are archived. To enable it, or disable it,
// restarts the instances one after the other: their Pods have to hold the store's
// credentials.
type ContinuousArchivingSpec struct {
	// Enabled has the primary archive what it executes.
	// +kubebuilder:default=false
	// +optional
	Enabled bool `json:"enabled"`
	// TargetRPOSeconds is how old the oldest transaction that is not archived may become.
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TargetRPOSeconds int32 `json:"targetRPOSeconds,omitempty"`
	// BinlogExpireSeconds is how long the server keeps a binary log that it has closed, as
	// binlog_expire_logs_seconds; a week when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	BinlogExpireSeconds *int64 `json:"binlogExpireSeconds,omitempty"`
	// MaxBinlogSizeMB is how large a binary log becomes before the server begins another,
	// in MiB, as max_binlog_size; the server's default when absent. Nothing waits for it:
	// logs are archived while they are written.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +optional
	MaxBinlogSizeMB *int32 `json:"maxBinlogSizeMB,omitempty"`
}

// TargetRPO returns TargetRPOSeconds as a duration. An object of before its default may not have
// it; then it is the default, five minutes.
func (s *ContinuousArchivingSpec) TargetRPO() time.Duration {
	return time.Duration(cmp.Or(s.TargetRPOSeconds, 300)) * time.Second
}

// Archives reports whether binary logs are archived. Nil defaults archive nothing, nor do any
// without an object store.
func (d *BackupDefaults) Archives() bool {
	return d != nil && d.ObjectStore != nil && d.ContinuousArchiving != nil && d.ContinuousArchiving.Enabled
}

// ArchiveGoes reports whether what lies in the object store goes with the Cluster. With nil
// defaults nothing does.
func (d *BackupDefaults) ArchiveGoes() bool {
	return d != nil && d.ObjectStore != nil && strings.EqualFold(d.ReclaimPolicy, ReclaimDelete)
}

// Encrypts reports whether what goes to the object store is encrypted before. With nil defaults
// nothing is.
func (d *BackupDefaults) Encrypts() bool {
	return d != nil && d.ObjectStore != nil && d.ObjectStore.Encryption != nil
}
