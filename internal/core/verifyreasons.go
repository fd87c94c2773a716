package core

// Events of a verification of backups; the last two are also reasons of the condition
// BackupsVerified.
const (
	ReasonVerificationStarted   Reason = "VerificationStarted"
	ReasonVerificationHeldBack  Reason = "VerificationHeldBack"
	ReasonVerificationSucceeded Reason = "VerificationSucceeded"
	ReasonVerificationFailed    Reason = "VerificationFailed"
)

// Reasons for which a verification of backups waits, or has failed.
const (
	VerifyNoStore       Reason = "NothingToVerify"
	VerifyNotYet        Reason = "VerifiedClusterNotReady"
	VerifyBackupRuns    Reason = "VerificationWaitsForBackup"
	VerifyNameTaken     Reason = "VerificationNameTaken"
	VerifyCopyRefused   Reason = "VerificationClusterRefused"
	VerifyCopyGone      Reason = "VerificationClusterGone"
	VerifyTooLong       Reason = "VerificationTimedOut"
	VerifyRestoreFailed Reason = "VerificationRestoreFailed"
	VerifyNotOurs       Reason = "VerificationNotOurs"
	VerifyNotChecked    Reason = "TablesNotChecked"
	VerifyDamaged       Reason = "TablesDamaged"
	VerifyDiffer        Reason = "TablesDiffer"
	VerifyPassedOver    Reason = "NewestBackupUnusable"
)

var verifications = []row[Reason]{
	{ReasonVerificationStarted, "event: a verification of the backups begins", ""},
	{ReasonVerificationHeldBack, "event: by the schedule one should begin, and does not; the message says why", ""},
	{ReasonVerificationSucceeded, "event and condition: the newest backup was restored, and its tables are sound", ""},
	{ReasonVerificationFailed,
		"event: the backups could not be restored or checked, or data are not as they should be", ""},
	{VerifyNoStore, "failed: spec.backup names no object store", ""},
	{VerifyNotYet, "waits: the Cluster has no data yet", ""},
	{VerifyBackupRuns, "waits for a Backup of the Cluster that runs", ""},
	{VerifyNameTaken, "failed: the throw-away Cluster's name belongs to a Cluster that the operator did not make", ""},
	{VerifyCopyRefused, "failed: Kubernetes refused to make the throw-away Cluster; the message has its words", ""},
	{VerifyCopyGone, "failed: somebody deleted the throw-away Cluster before the end", ""},
	{VerifyTooLong, "failed: it did not end within spec.backup.verify.maxDuration", ""},
	{VerifyRestoreFailed, "failed: the restore made no progress; the message has the instance's words",
		"restore.md#what-is-refused-and-when"},
	{VerifyNotOurs, "failed: the backups are of a deleted Cluster that had the same name; this Cluster has none there",
		""},
	{VerifyNotChecked, "failed: the restored tables could not be checked to the end", ""},
	{VerifyDamaged, "failed: CHECK TABLE found damaged tables, or some that are not there", ""},
	{VerifyDiffer, "failed: rows of the restored tables are not those of the Cluster at the same GTIDs", ""},
	{VerifyPassedOver,
		"failed: an older backup was restored and is sound, because something is wrong with a newer one; the message " +
			"says which and why", ""},
}
