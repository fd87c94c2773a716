package core

// Reasons of an instance: why it is in its state. Catalogue tells what each means.
const (
	InstancePromoting           Reason = "Promoting"
	InstanceTransactionsMissing Reason = "TransactionsMissing"
	InstanceApplierStopped      Reason = "ApplierStopped"
	InstanceDemoting            Reason = "Demoting"
	InstanceDemoted             Reason = "Demoted"
	InstanceEpochEnded          Reason = "EpochEnded"
	InstanceOtherPod            Reason = "OtherPod"
	InstanceNoPrimary           Reason = "NoPrimary"
	InstanceAwaitingPrimary     Reason = "AwaitingPrimary"
	InstanceAskingPrimary       Reason = "AskingPrimary"
	InstanceAsksInVain          Reason = "AsksInVain"
	InstanceApplyingRelayLog    Reason = "ApplyingRelayLog"
	InstanceMayLack             Reason = "MayLackAcknowledged"
	InstanceFrozen              Reason = "Frozen"
	InstanceReceiveFailed       Reason = "ReceiveFailed"
	InstanceNeedsReclone        Reason = "NeedsReclone"
	InstanceIsDiverged          Reason = "Diverged"
	InstanceDataMissing         Reason = "DataMissing"
	InstanceForeignData         Reason = "ForeignData"
	InstanceLoginRefused        Reason = "LoginRefused"
	InstanceNoAnswer            Reason = "NoAnswer"
	InstanceNoProgress          Reason = "NoProgress"
	InstanceDiskStalled         Reason = "DiskStalled"
	InstanceEnding              Reason = "Ending"
	InstanceStartTimedOut       Reason = "StartTimedOut"
	InstanceBreakingOffRecovery Reason = "BreakingOffRecovery"
	InstanceMysqldCrashed       Reason = "MysqldCrashed"
	InstanceCrashLoop           Reason = "CrashLoop"
	InstanceAwaitingSuccessor   Reason = "AwaitingSuccessor"
	InstanceAwaitingWord        Reason = "AwaitingWord"
	InstanceCuttingTail         Reason = "CuttingTail"
	InstanceGivesData           Reason = "GivesData"
	InstanceIsolated            Reason = "Isolated"
	InstanceIsFenced            Reason = "Fenced"
	InstanceFencing             Reason = "Fencing"
	InstanceUnfencing           Reason = "Unfencing"
	InstanceStopping            Reason = "Stopping"
	InstanceTerminating         Reason = "Terminating"
	InstanceTerminated          Reason = "Terminated"
	InstanceClusterUnknown      Reason = "ClusterUnknown"
	InstanceVolumeInUse         Reason = "VolumeInUse"
	InstanceVolumeUnusable      Reason = "VolumeUnusable"
	InstanceDiskFull            Reason = "DiskFull"
	InstanceConfigRefused       Reason = "ConfigRefused"
	InstanceMysqldUnusable      Reason = "MysqldUnusable"
	InstanceMysqldNotFound      Reason = "MysqldNotFound"
	InstanceMysqldSilent        Reason = "MysqldSilent"
	InstanceInitializeFailed    Reason = "InitializeFailed"
	InstanceRestoreFailed       Reason = "RestoreFailed"
	InstanceRestoreNotOurs      Reason = "BackupsOfAnother"
	InstanceStartFailed         Reason = "StartFailed"
	InstancePostInitSQLFailed   Reason = "PostInitSQLFailed"
	InstanceSourceUnknown       Reason = "ExternalServerUnknown"
	InstanceSourceUnreached     Reason = "ExternalServerUnreached"
	InstanceSourceRefused       Reason = "ExternalServerNotApplied"
)

// Reasons of a member of a group, besides.
const (
	MemberBootstrapping Reason = "Bootstrapping"
	MemberRebooting     Reason = "Rebooting"
	MemberJoining       Reason = "Joining"
	MemberJoinFailed    Reason = "JoinFailed"
	MemberLeaving       Reason = "Leaving"
	MemberLeft          Reason = "Left"
	MemberLeftOut       Reason = "LeftOut"
	MemberIsInError     Reason = "MemberError"
	MemberNoQuorum      Reason = "NoQuorum"
	MemberAwaitingGroup Reason = "AwaitingGroup"
	MemberIsRecovering  Reason = "Recovering"
	MemberDataRemoved   Reason = "DataRemoved"
)

// Reasons for which an instance refuses an order, a vouch or a request.
const (
	OrderStaleEpoch     Reason = "StaleEpoch"
	OrderStale          Reason = "StaleOrder"
	OrderNotPrimary     Reason = "NotPrimary"
	OrderBusy           Reason = "Busy"
	OrderHasData        Reason = "HasData"
	OrderNoDonor        Reason = "NoDonor"
	OrderNotAdopted     Reason = "NotAdopted"
	OrderNotUnderstood  Reason = "NotUnderstood"
	OrderUnknown        Reason = "UnknownVerb"
	OrderGroupRefused   Reason = "GroupRefused"
	OrderNotASurvivor   Reason = "NotASurvivor"
	OrderInGroup        Reason = "InGroup"
	OrderBinaryDamaged  Reason = "BinaryDamaged"
	OrderBinaryRefused  Reason = "BinaryRefused"
	OrderNotAThrowAway  Reason = "NotAThrowAway"
	VouchNotAMember     Reason = "NotAMember"
	VouchOtherPrimary   Reason = "OtherPrimary"
	VouchWithheldReason Reason = "Withheld"
	ControlForbidden    Reason = "Forbidden"
	ControlBadRequest   Reason = "BadRequest"
	ControlFailed       Reason = "Failed"
)

// Reasons of what a user has to mend before there can be an instance.
const (
	ProblemSecretMissing    Reason = "SecretMissing"
	ProblemSecretIncomplete Reason = "SecretIncomplete"
	ProblemSecretOwn        Reason = "SecretIsTheOperators"
	ProblemAuthorityBroken  Reason = "CertificateAuthorityBroken"
	ProblemAuthorityEnds    Reason = "CertificateAuthorityEnds"
	ProblemNameTaken        Reason = "NameTaken"
	ProblemPrerequisites    Reason = "PrerequisitesFailed"
	ProblemCRDOutdated      Reason = "CRDOutdated"
	ProblemRecoverySource   Reason = "RecoverySourceMissing"
	ProblemClassNotFound    Reason = "StorageClassNotFound"
	ProblemNoDefaultClass   Reason = "NoDefaultStorageClass"
	ProblemPodMonitor       Reason = "PodMonitorRefused"

	ProblemAuthorityLost     Reason = "CertificateAuthorityLost"
	ProblemAuthorityRestored Reason = "CertificateAuthorityRestored"
	ProblemAuthorityChanges  Reason = "CertificateAuthorityChanges"
	ProblemAuthorityAwaits   Reason = "CertificateAuthorityAwaitsRestarts"
)

var instanceReasons = []row[Reason]{
	{InstancePromoting,
		"was promoted, and is becoming writable: it receives what it lacks and applies all it has",
		"failover.md#the-steps"},
	{InstanceTransactionsMissing,
		"was promoted, but lacks required transactions, or its own transactions that another instance holds",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceApplierStopped,
		"was promoted, but its applier stopped before it had applied all",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceDemoting,
		"its mysqld is being made read-only, because it may not take writes, or no longer",
		"switchover.md#what-happens"},
	{InstanceDemoted, "was made read-only, and promised to stay so below an epoch", "failover.md"},
	{InstanceEpochEnded, "was promoted in an epoch that has ended, and waits for the next primary", "failover.md"},
	{InstanceOtherPod,
		"another Pod of this instance was promoted, and may still run elsewhere",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceNoPrimary, "waits until a primary is chosen", "failover.md"},
	{InstanceAwaitingPrimary, "waits until the primary takes writes", "troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAskingPrimary,
		"asks the primary for its position before it follows it", "troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAsksInVain, "cannot follow the primary yet, because the primary does not answer it",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceApplyingRelayLog,
		"applies what it has received, of which others may have no copy, before it follows another source",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceMayLack,
		"may lack transactions that it acknowledged: they were not flushed before its node, its mount or its volume " +
			"failed. Elections do not count it until it holds what the primary had",
		"durability.md#what-an-acknowledgement-rests-on"},
	{InstanceFrozen,
		"promised to receive nothing below an epoch: another primary is about to be promoted",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceReceiveFailed,
		"its source refuses the connection, or cannot be reached; the message has MySQL's words",
		"troubleshooting.md#a-replica-does-not-follow"},
	{ReasonBroken,
		"its applier stopped with an error; the message has MySQL's words",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceNeedsReclone,
		"the primary has purged transactions that it lacks: its data must be copied again (kubectl cnmsql reinit)",
		"troubleshooting.md#a-replica-does-not-follow"},
	{ReasonCloneFailed,
		"has no data yet, and could not copy another's; the message has MySQL's words",
		"troubleshooting.md#a-clone-does-not-end"},
	{InstanceIsDiverged,
		"holds transactions that the primary, or the group, does not have; it is read-only and in no Service",
		"failover.md#diverged-instances"},
	{InstanceDataMissing,
		"is the primary, and its volume is empty: an established cluster is never initialised again",
		"failover.md#refusals"},
	{InstanceForeignData,
		"its volume holds the data of another cluster or instance; nothing was touched",
		"troubleshooting.md#an-instance-says-failed"},
	{InstanceLoginRefused,
		"mysqld refuses the instance manager's account; mysqld is started again, and the account restored",
		"troubleshooting.md#an-instance-says-failed"},
	{InstanceNoAnswer, "mysqld runs and does not answer", "troubleshooting.md"},
	{InstanceNoProgress,
		"makes, copies or restores data, without progress for more than a minute: after 15 min without progress, the " +
			"manager aborts it and begins again", "troubleshooting.md#a-clone-does-not-end"},
	{InstanceDiskStalled, "its volume completes no write: look at the storage", "troubleshooting.md"},
	{InstanceEnding, "mysqld shuts down and does not answer any more", ""},
	{InstanceStartTimedOut,
		"mysqld accepted no connection within spec.maxStartDelay; raise it if crash recovery needs longer",
		"troubleshooting.md#mysqld-restarts-again-and-again"},
	{InstanceBreakingOffRecovery,
		"was started as primary when another took over: its recovery would commit unacknowledged transactions",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceMysqldCrashed, "mysqld has ended, and is started again",
		"troubleshooting.md#mysqld-restarts-again-and-again"},
	{InstanceCrashLoop,
		"mysqld ends again and again soon after its start; the message has the last line of its log",
		"troubleshooting.md"},
	{InstanceAwaitingSuccessor,
		"was the primary and crashed: waits for the promotion of the next primary",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAwaitingWord,
		"was the primary and crashed: mysqld starts when the API server or a majority of the instances confirms that " +
			"it is still the primary. Recovery would commit unacknowledged transactions",
		"design/2026-11-22-a-word-before-recovery.md"},
	{InstanceCuttingTail,
		"cuts unacknowledged transactions off the end of its binary log; a copy is kept on its volume",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceGivesData, "is the primary, closed for writes until enough replicas have its data",
		"durability.md#the-primary-is-closed-for-a-copy"},
	{InstanceSourceUnknown,
		"is to follow an external server, but does not have the Secret yet with which to reach it",
		"import.md#follow-the-server"},
	{InstanceSourceUnreached,
		"follows an external server, but receives nothing from it; the message has MySQL's words",
		"import.md#when-it-does-not-follow"},
	{InstanceSourceRefused,
		"follows an external server, but cannot apply what it sends; the message has MySQL's words",
		"import.md#when-it-does-not-follow"},
	{InstanceIsolated,
		"is the primary, and is about to isolate itself: " +
			"it could not renew its Lease, and no majority vouches for it", "architecture.md"},
	{InstanceIsFenced, "a human fenced it; its data is kept (kubectl cnmsql fence off)", "plugin.md"},
	{InstanceFencing, "is being fenced", "plugin.md"},
	{InstanceUnfencing, "was fenced, and comes back", "plugin.md"},
	{InstanceStopping, "mysqld is being stopped", ""},
	{InstanceTerminating, "its Pod is being stopped", ""},
	{InstanceTerminated, "its Pod was stopped", ""},
	{InstanceClusterUnknown,
		"waits to read the Cluster from the API server", ""},
	{InstanceVolumeInUse,
		"another manager of this instance still holds the lock on the volume", "troubleshooting.md"},
	{InstanceVolumeUnusable,
		"its volume cannot be read or written", "troubleshooting.md#an-instance-says-failed"},
	{InstanceDiskFull,
		"less than 16 MiB is free on its volume, or its commits or its replication wait for space: raise " +
			"spec.storage.size, or free space", "troubleshooting.md#an-instance-says-failed"},
	{InstanceConfigRefused,
		"mysqld refuses a parameter; the message names it", "troubleshooting.md#an-instance-says-failed"},
	{InstanceMysqldUnusable,
		"the image's mysqld does not run, or is too old", "troubleshooting.md#an-instance-says-failed"},
	{InstanceMysqldNotFound, "the image has no mysqld", "troubleshooting.md#an-instance-says-failed"},
	{InstanceMysqldSilent,
		"mysqld did not tell its version within 10 s: the node reads the image slowly",
		"troubleshooting.md#an-instance-says-failed"},
	{InstanceInitializeFailed,
		"mysqld could not make a data directory; the message has the last line of its log",
		"troubleshooting.md#an-instance-says-failed"},
	{InstanceRestoreFailed,
		"the backup could not be restored; the message says why, and it is tried again", "restore.md"},
	{InstanceRestoreNotOurs,
		"a throw-away Cluster should verify the backups of a Cluster, but the backups there are of an earlier " +
			"Cluster of its name",
		"verification.md#what-it-says"},
	{InstanceStartFailed,
		"mysqld could not be started; the message says why", "troubleshooting.md#an-instance-says-failed"},
	{InstancePostInitSQLFailed,
		"a statement of bootstrap.initdb failed; the message has MySQL's words",
		"troubleshooting.md#an-instance-says-failed"},
	{ReasonActionFailed,
		"Kubernetes, or mysqld, refused an action; it is tried again", "status.md#events"},
	{MemberBootstrapping, "makes the group", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberRebooting,
		"reboots the group, as it was told to", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberJoining, "joins the group", "group-replication.md"},
	{MemberJoinFailed,
		"could not join the group, or make it, and tries again; the message has MySQL's words", "group-replication.md"},
	{MemberLeaving, "leaves the group, because the operator ordered it", "group-replication.md"},
	{MemberLeft, "stays out of the group until the next epoch", "group-replication.md"},
	{MemberLeftOut,
		"was excluded from the group; waits until the operator has compared what it holds",
		"troubleshooting.md#a-replica-does-not-follow"},
	{MemberIsInError,
		"was expelled, or hit an error; mysqld tries to join again by itself for a while, then it leaves the group " +
			"and joins anew",
		"troubleshooting.md#a-replica-does-not-follow"},
	{MemberNoQuorum,
		"has lost the majority of the group: transactions wait", "runbooks.md#a-group-has-lost-its-quorum"},
	{MemberAwaitingGroup, "waits for a group that it can join", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberIsRecovering, "receives from another member what it lacks", "group-replication.md"},
	{MemberDataRemoved,
		"a clone began to replace its data, but did not finish; its data is cloned again",
		"group-replication.md"},
	{RefusalDataWithoutStatus,
		"holds data, but the Cluster's status names no primary or group: the status was lost; restore it",
		"failover.md#refusals"},
}
