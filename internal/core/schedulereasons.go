package core

// Reasons of what is told of a ScheduledBackup.
const (
	ReasonBackupScheduled Reason = "BackupScheduled"
	ReasonScheduleInvalid Reason = "ScheduleInvalid"
	ReasonBackupHeldBack  Reason = "BackupHeldBack"
)
