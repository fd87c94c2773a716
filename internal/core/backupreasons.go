package core

// Reasons for which a Backup waits, or has failed.
const (
	BackupNoCluster     Reason = "ClusterMissing"
	BackupNoStore       Reason = "NoObjectStore"
	BackupStoreSecret   Reason = "StoreSecretMissing"
	BackupNotYet        Reason = "ClusterNotReady"
	BackupOtherRuns     Reason = "BackupRunning"
	BackupNoDonor       Reason = "NoInstanceToBackUp"
	BackupJoinGoesFirst Reason = "JoinGoesFirst"
	BackupUndecided     Reason = "HistoryUndecided"
	BackupNameTaken     Reason = "JobNameTaken"
	BackupJobWaits      Reason = "JobDoesNotRun"
	BackupJobRefused    Reason = "JobRefused"
	BackupJobFailed     Reason = "JobFailed"
	BackupWaitedTooLong Reason = "WaitedTooLong"
	BackupNotTaken      Reason = "SnapshotFailed"
	BackupDonorLags     Reason = "InstanceLags"
	// BackupAccountMissing says that there is no account yet with which the Job logs in.
	BackupAccountMissing Reason = "BackupAccountMissing"
)

// Reasons of the condition ContinuousArchiving, which are events, too, besides those that the
// archive and the store have.
const (
	ReasonArchiving       Reason = "Archiving"
	ReasonArchiveNotKnown Reason = "ArchiveNotKnown"
	ReasonArchivingBehind Reason = "ArchivingBehind"
	ReasonArchivingFailed Reason = "ArchivingFailed"
	ReasonArchiveGap      Reason = "ArchiveGap"
	// ReasonArchiveMoved says that a store is archived to, the first one or another one than before, and there is
	// no backup in it yet.
	ReasonArchiveMoved Reason = "ArchiveMoved"
	// ReasonGapBackup, ReasonStepBackup and ReasonGapBackupRefused are events only.
	ReasonGapBackup        Reason = "BackupAfterGap"
	ReasonStepBackup       Reason = "BackupAfterUpgrade"
	ReasonGapBackupRefused Reason = "BackupAfterGapRefused"
)

// Reasons of the condition NewestBackupRestored; the first is an event, too.
const (
	// ReasonBackupPassedOver says that a restore takes an older backup, because a
	// newer one cannot be used.
	ReasonBackupPassedOver Reason = "BackupPassedOver"
	ReasonNewestRestored   Reason = "NewestBackup"
)

// Why something is not encrypted, or not decrypted. A Backup waits for a key that is invalid,
// and a restore for any of them; of the archive they are reasons of ContinuousArchiving.
const (
	KeyInvalid Reason = "KeyInvalid"
	KeyMissing Reason = "KeyMissing"
	KeyWrong   Reason = "KeyWrong"
)

// Events of a Backup.
const (
	ReasonBackupStarted   Reason = "BackupStarted"
	ReasonPrimaryBackedUp Reason = "PrimaryBackedUp"
	ReasonBackupCompleted Reason = "BackupCompleted"
	ReasonBackupFailed    Reason = "BackupFailed"
)

// Why retention removed nothing, or less than it could: in status.retention of a Backup, and
// the reason of its condition Retention.
const (
	RetentionYoung         Reason = "NoBackupOldEnough"
	RetentionTimeUnknown   Reason = "StoreTimeUnknown"
	RetentionBranchMissing Reason = "BranchMissing"
	RetentionAnchorDamaged Reason = "AnchorDamaged"
	RetentionFailed        Reason = "RetentionFailed"
)

// Retention of a Backup: ReasonExpired of one that was removed from the store, ReasonRetained
// of one after which it was looked what has expired, and the event of one that could not.
const (
	ReasonExpired       Reason = "Expired"
	ReasonRetained      Reason = "RetentionRan"
	ReasonRetentionHeld Reason = "RetentionHeld"
)

// Merging of small parts of the archive after a Backup: reasons of its condition ArchiveMerged, and
// events. MergeFailed is the reason of one that ended for what has no name.
const (
	ReasonMerged    Reason = "ArchiveMerged"
	ReasonNotMerged Reason = "ArchiveNotMerged"
	MergeFailed     Reason = "MergeFailed"
)

// Removal of a Backup's data when it is deleted: reasons of its condition Stored, and events. The
// second to fourth are those of a Cluster's archive, too, in its condition ArchiveStored.
const (
	ReasonBackupRemoved       Reason = "Removed"
	ReasonBackupRemovalWaits  Reason = "RemovalWaits"
	ReasonBackupRemovalHeld   Reason = "RemovalHeld"
	ReasonBackupRemovalFailed Reason = "RemovalFailed"
	ReasonBackupForgotten     Reason = "BackupForgotten"
)

// Removal of the whole archive with its Cluster: what else the condition ArchiveStored says, and
// an event.
const (
	ReasonArchiveRemoved Reason = "ArchiveRemoved"
	ReasonArchiveKept    Reason = "ArchiveKept"
)
