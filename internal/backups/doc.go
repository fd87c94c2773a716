// Package backups has the controllers of Backup and ScheduledBackup: when a backup is taken,
// of which instance, and what became of it. The backup itself is taken by a Job
// (internal/backupjob); what is decided is in internal/core/backup. The package never reads
// or writes what is in an object store.
package backups
