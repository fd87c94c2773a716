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

	ProblemAuthorityLost     Reason = "CertificateAuthorityLost"
	ProblemAuthorityRestored Reason = "CertificateAuthorityRestored"
	ProblemAuthorityChanges  Reason = "CertificateAuthorityChanges"
	ProblemAuthorityAwaits   Reason = "CertificateAuthorityAwaitsRestarts"
)

var instanceReasons = []row[Reason]{
	{InstancePromoting,
		"was permitted to take writes, and is on its way: it receives what it lacks and applies all it has",
		"failover.md#the-steps"},
	{InstanceTransactionsMissing,
		"was permitted to take writes, and lacks transactions that it must have, or of its own that another holds",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceApplierStopped,
		"was permitted to take writes, and its applier stopped before it had applied all",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceDemoting,
		"its mysqld is being made read-only: it takes writes without being permitted to, or not any more",
		"switchover.md#what-happens"},
	{InstanceDemoted, "was made read-only, and promised to stay so below an epoch", "failover.md"},
	{InstanceEpochEnded, "was promoted in an epoch that has ended, and waits to see who follows", "failover.md"},
	{InstanceOtherPod,
		"another Pod of this instance was promoted, and may still run elsewhere",
		"troubleshooting.md#a-promotion-is-stuck"},
	{InstanceNoPrimary, "waits until a primary is chosen", "failover.md"},
	{InstanceAwaitingPrimary, "waits until the primary takes writes", "troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAskingPrimary,
		"asks the primary for its position before it follows it", "troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAsksInVain, "would follow the primary, and gets no answer from it",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceApplyingRelayLog,
		"applies what it has received, of which others may have no copy, before it follows another source",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceMayLack,
		"what it had received was not flushed when its node, its mount or its volume failed: " +
			"elections do not count it until it holds what the primary had",
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
		"makes, copies or restores data, and nothing has moved for more than a minute: it is broken off and begun " +
			"anew when that lasts 15 min", "troubleshooting.md#a-clone-does-not-end"},
	{InstanceDiskStalled, "its volume completes no write: look at the storage", "troubleshooting.md"},
	{InstanceEnding, "mysqld shuts down and does not answer any more", ""},
	{InstanceStartTimedOut,
		"mysqld accepted no connection within spec.maxStartDelay; raise it if crash recovery needs longer",
		"troubleshooting.md#mysqld-restarts-again-and-again"},
	{InstanceBreakingOffRecovery,
		"was about to go on as the primary when another took over: " +
			"its recovery would commit what nobody acknowledged", "troubleshooting.md#a-replica-does-not-follow"},
	{InstanceMysqldCrashed, "mysqld has ended, and is started again",
		"troubleshooting.md#mysqld-restarts-again-and-again"},
	{InstanceCrashLoop,
		"mysqld ends again and again soon after its start; the message has the last line of its log",
		"troubleshooting.md"},
	{InstanceAwaitingSuccessor,
		"was the primary and crashed: waits until it is known who is promoted next",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceAwaitingWord,
		"was the primary and crashed: waits for the Cluster's or its peers' word before mysqld recovers, " +
			"which would commit what nobody acknowledged", "design/2026-11-22-a-word-before-recovery.md"},
	{InstanceCuttingTail,
		"takes what nobody acknowledged off the end of its binary log; a copy is kept on its volume",
		"troubleshooting.md#a-replica-does-not-follow"},
	{InstanceGivesData, "is the primary, closed for writes until enough replicas have its data",
		"durability.md#the-primary-is-closed-for-a-copy"},
	{InstanceSourceUnknown,
		"is to follow an external server, and has no Secret yet that tells how to reach it",
		"import.md#follow-the-server"},
	{InstanceSourceUnreached,
		"follows an external server, and receives nothing from it; the message has MySQL's words",
		"import.md#when-it-does-not-follow"},
	{InstanceSourceRefused,
		"follows an external server, and cannot apply what that sends; the message has MySQL's words",
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
		"the API server has not told it yet what the Cluster looks like", ""},
	{InstanceVolumeInUse,
		"another manager of this instance still holds the lock on the volume", "troubleshooting.md"},
	{InstanceVolumeUnusable,
		"its volume cannot be read or written", "troubleshooting.md#an-instance-says-failed"},
	{InstanceDiskFull,
		"less than 16 MiB are left on its volume, or its commits or its replication wait for space there: " +
			"raise spec.storage.size, or free space", "troubleshooting.md#an-instance-says-failed"},
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
		"a throw-away Cluster is to try the backups of a Cluster, and what lies there is of an earlier one of its name",
		"verification.md#what-it-says"},
	{InstanceStartFailed,
		"mysqld could not be started; the message says why", "troubleshooting.md#an-instance-says-failed"},
	{InstancePostInitSQLFailed,
		"a statement of bootstrap.initdb failed; the message has MySQL's words",
		"troubleshooting.md#an-instance-says-failed"},
	{ReasonActionFailed,
		"Kubernetes, or mysqld, refused what was to be done; it is tried again", "status.md#events"},
	{MemberBootstrapping, "makes the group", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberRebooting,
		"reboots the group, as it was told to", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberJoining, "joins the group", "group-replication.md"},
	{MemberJoinFailed,
		"could not join the group, or make it, and tries again; the message has MySQL's words", "group-replication.md"},
	{MemberLeaving, "leaves the group, for the operator asked for it", "group-replication.md"},
	{MemberLeft, "stays out of the group until the next epoch", "group-replication.md"},
	{MemberLeftOut,
		"the group went on without it; it waits until the operator has seen what it holds",
		"troubleshooting.md#a-replica-does-not-follow"},
	{MemberIsInError,
		"was expelled, or could not go on; mysqld has a while to join again by itself, then it leaves the group, and " +
			"joins anew",
		"troubleshooting.md#a-replica-does-not-follow"},
	{MemberNoQuorum,
		"has lost the majority of the group: transactions wait", "runbooks.md#a-group-has-lost-its-quorum"},
	{MemberAwaitingGroup, "waits until there is a group to join", "troubleshooting.md#a-replica-does-not-follow"},
	{MemberIsRecovering, "receives from another member what it lacks", "group-replication.md"},
	{MemberDataRemoved,
		"a copy of another member's data replaced its own and did not end; its data is copied again",
		"group-replication.md"},
	{RefusalDataWithoutStatus,
		"holds data, and the Cluster's status knows of none: the status was lost; restore it", "failover.md#refusals"},
}
