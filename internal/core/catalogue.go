package core

import (
	"cmp"
	"slices"
)

// Kind tells what a name is said of.
type Kind string

// Kinds of names.
const (
	KindDiagnosis Kind = "diagnosis"
	KindOperation Kind = "operation"
	KindStep      Kind = "step"
	KindProof     Kind = "proof"
	KindEvent     Kind = "event"
	KindRefusal   Kind = "refusal"
	KindInstance  Kind = "instance"
	KindOrder     Kind = "order"
	KindProblem   Kind = "problem"
	KindBackup    Kind = "backup"
	KindVerify    Kind = "verification"
)

// Entry is a name that the product says: in a status, an event, a condition, a metric or an
// instance's report.
type Entry struct {
	Name  string
	Kind  Kind
	Means string // for whoever is on call
	See   string // the page of docs/ that says more, and its heading
}

// Catalogue has every name that the product says; docs/names.md is made of it.
func Catalogue() []Entry {
	return slices.Concat(
		entries(KindDiagnosis, "failover.md#diagnoses", diagnoses),
		entries(KindOperation, "status.md#fields-of-the-status", operations),
		entries(KindStep, "failover.md#the-steps", steps),
		entries(KindProof, "architecture.md#who-may-write", proofs),
		entries(KindEvent, "status.md#events", events),
		entries(KindRefusal, "failover.md#refusals", refusals),
		entries(KindInstance, "status.md#states-of-an-instance", instanceReasons),
		entries(KindOrder, "status.md#events", orderRefusals),
		entries(KindProblem, "troubleshooting.md#blocked-before-anything-starts", problems),
		entries(KindBackup, "backups.md#what-a-backup-says", backups),
		entries(KindVerify, "verification.md#what-it-says", verifications),
	)
}

// row is a name, what it means, and where more is said; "" is the page of its kind.
type row[T ~string] struct {
	name       T
	means, see string
}

func entries[T ~string](kind Kind, page string, rows []row[T]) []Entry {
	out := make([]Entry, len(rows))
	for i, r := range rows {
		out[i] = Entry{Name: string(r.name), Kind: kind, Means: r.means, See: cmp.Or(r.see, page)}
	}
	return out
}

var diagnoses = []row[Diagnosis]{
	{DiagnosisNone, "no primary was chosen yet", ""},
	{PrimaryHealthy, "the primary takes writes", ""},
	{PrimaryFollows, "the primary follows an external server, and takes no writes", "import.md#follow-the-server"},
	{PrimaryTerminating, "its Pod is being stopped, and another instance is to take over", ""},
	{PrimaryIsolated, "it takes writes, but its replicas cannot reach it: commits hang", ""},
	{PrimaryFull, "it takes writes, but its volume is full: commits hang until it has space",
		"runbooks.md#the-disk-is-full"},
	{PrimaryLostTransactions,
		"it lacks transactions of its own that replicas hold: a human decides which copy is right", ""},
	{PrimaryPromoting, "it was promoted, and is becoming writable", ""},
	{PrimaryClosed,
		"it was made read-only to give its data to replicas, because no commit would end without them; it takes " +
			"writes again by itself",
		""},
	{PrimaryDemoted, "it was made read-only so that another can take over", ""},
	{PrimaryFenced, "a human fenced it: nobody takes writes, and nobody takes over", ""},
	{MysqldDown, "its manager says that mysqld does not run, or is only being started again", ""},
	{PrimaryHung, "its manager says that mysqld does not answer", ""},
	{PrimaryFailed, "its manager says that it cannot run mysqld, and why", ""},
	{PodGone, "the Pod that took writes is gone or has ended", ""},
	{PrimaryDataLost, "its volume is empty", ""},
	{PrimaryUnreachable, "its manager cannot be reached, which tells nothing about mysqld", ""},
	{PrimaryUnreachableButReplicasStream,
		"its manager cannot be reached, and replicas receive from its mysqld all the same: nothing is done", ""},
	{PrimaryUnreachableReplicasLost,
		"its manager cannot be reached, and replicas cannot reach its mysqld either", ""},
	{GroupElecting, "the group has its quorum, and no primary yet", "group-replication.md#failover"},
	{GroupQuorumLost, "the group has lost its majority: transactions wait", "group-replication.md#failover"},
	{GroupUnknown, "too few members answer to tell", "group-replication.md#failover"},
}

var operations = []row[OperationKind]{
	{OperationSwitchover, "another instance becomes primary as planned", ""},
	{OperationFailover, "the primary fails, and is replaced", ""},
	{OperationGiveData, "the primary is closed while it gives its data to others", ""},
	{OperationQuorumRecovery, "the remaining members of a group force the quorum, or one reboots the group", ""},
}

var steps = []row[Step]{
	{StepCatchUp, "the target catches up while the old primary takes writes",
		"runbooks.md#a-switchover-does-not-end"},
	{StepDemote, "the old primary is being made read-only", "runbooks.md#a-switchover-does-not-end"},
	{StepDelay, "spec.failoverDelay has not passed yet", ""},
	{StepProve, "waits for a proof that the old primary cannot take writes", ""},
	{StepElect, "reads what the candidates hold", ""},
	{StepPromote, "the new primary was promoted, and is becoming writable", ""},
	{StepCopy, "the closed primary gives its data", ""},
	{StepReturn, "the old primary takes writes again", ""},
	{StepSetPrimary, "the group was asked to make another member primary", "runbooks.md#a-switchover-does-not-end"},
	{StepForce, "a survivor was told to force the quorum with the remaining members", ""},
	{StepReboot, "an instance that holds all transactions was told to reboot the group", ""},
}

var proofs = []row[Proof]{
	{ProofBootstrap, "there never was a primary", ""},
	{ProofManagerFenced, "its manager promised, on its volume, that it takes no writes below this epoch", ""},
	{ProofPodTerminated,
		"the kubelet reported that its container has ended for good, or its node is out of service", ""},
	{ProofQuorumCut, "so many replicas stopped receiving that no commit of it can be acknowledged any more", ""},
	{ProofLeaseExpired,
		"its Lease ran out and the operator took it, and so many instances stopped vouching for it that it isolated " +
			"itself", ""},
	{ProofAdopted, "its Cluster was deleted, and all instances with kept volumes answer", ""},
	{ProofStatusRestored,
		"the status was set back; all instances answer, and this one is the primary of the last epoch that any of " +
			"them saw", ""},
	{ProofTakenOver, "the same instance followed an external server before, and so nobody took writes",
		"import.md#take-over"},
	{ProofAcceptedLoss, "none: a human accepted a loss of writes", ""},
}

var events = []row[Reason]{
	{ReasonRequested, "a switchover begins: somebody set status.targetPrimary", ""},
	{ReasonPodTerminating, "a switchover begins: the primary's Pod is being stopped", ""},
	{ReasonDemoteRequested,
		"a switchover begins, or is called off: the annotation cnmsql.cnmsql.co/demote asks for it", ""},
	{ReasonScaleDown, "a switchover begins, or is called off: the primary is to be removed", ""},
	{ReasonReturn, "the switchover was given up, and the old primary takes writes again", ""},
	{ReasonGivenUp, "notice: the last switchover ran out of time and was given up before it stopped writes",
		"switchover.md#refusals"},
	{ReasonVolumeDeleting, "a switchover begins: the primary's volume is being deleted, or is gone", ""},
	{ReasonVolumeHeld, "notice: an instance's volume is being deleted, but the operator keeps its Pod, because the " +
		"data would be lost with it: it is the only instance, no primary is known that has and keeps the data, or " +
		"the instance is still needed",
		"troubleshooting.md#a-volume-is-being-deleted-and-stays"},
	{ReasonPreferred, "a switchover begins: to an instance of spec.failoverPolicy.preferredPrimary", ""},
	{ReasonFenced, "the instance is fenced, because a human asked for it", ""},
	{ReasonUnfenced, "the instance is not fenced any more", ""},
	{ReasonReinit, "the data of the instance is deleted and copied again, because a human asked for it", ""},
	{ReasonOverride,
		"an instance is promoted without a proof, because a human asked for it; what it does not hold is lost", ""},
	{ReasonRollout,
		"a switchover begins, or is called off: the primary's Pod is to be recreated from a changed spec", ""},
	{ReasonFailover, "the primary fails, and a failover begins; the message has the diagnosis", ""},
	{ReasonPromotionGranted, "an instance may take writes; the message has the proof that nobody else does", ""},
	{ReasonPrimaryContinues, "the primary stays, in a new epoch: a change was ordered, but not completed", ""},
	{ReasonStatusRestored, "the status had been set back, and the operator repaired it", ""},
	{ReasonPrimaryEstablished, "the cluster has its first primary", ""},
	{ReasonPrimaryChanged, "another instance is the primary now; the message says how long it took", ""},
	{ReasonRestartInPlace, "mysqld of the primary is restarted, because no other instance can take over, or the best " +
		"candidate lacks transactions of the primary", ""},
	{ReasonGivesData, "the primary is closed for writes while it gives its data to others", ""},
	{ReasonCloneStarted, "an instance begins to copy another's data", ""},
	{ReasonCloneFailed,
		"an instance could not copy another's data, at least twice in a row; the message has MySQL's words",
		"troubleshooting.md#a-clone-does-not-end"},
	{ReasonInstanceCreated, "an instance is made", ""},
	{ReasonInstanceRemoved, "an instance is removed, because spec.instances was lowered", ""},
	{ReasonInstanceRestarted, "an instance's Pod is recreated from a changed spec", ""},
	{ReasonManagerReplaced, "an instance's manager was replaced in place: the new one answers; its mysqld ran on", ""},
	{ReasonAdopted,
		"the primary commits empty transactions with the GTIDs that maintenance on a replica used", ""},
	{ReasonVolumesAdopted, "the Cluster goes on with the volumes of a deleted one", ""},
	{ReasonAcksChanged, "commits wait for another number of acknowledgements", ""},
	{ReasonDiverged,
		"an instance holds transactions that the primary, or the group, does not have; it is kept out of service", ""},
	{ReasonBroken, "the applier of a replica stopped with an error", ""},
	{ReasonRecovered, "the primary takes writes again", ""},
	{ReasonLost,
		"the instance that is promoted lacks transactions that the promotion before it required, and no candidate " +
			"has them: those that were acknowledged are lost", ""},
	{ReasonTakesOver, "the primary takes writes, and no longer follows the external server", "import.md#take-over"},
	{ReasonNotFollowing,
		"the primary follows an external server, and does not receive from it or cannot apply what it sends; a " +
			"notice, which hinders nothing", "import.md#when-it-does-not-follow"},
	{ReasonForeignPod,
		"a Pod has the labels of an instance, but does not belong to the Cluster: Services may send clients there",
		"services.md#a-pod-that-is-no-instance"},
	{ReasonForeignAcks,
		"a server that is no instance of the Cluster acknowledged commits: its connection to the primary is ended",
		"durability.md#a-server-that-is-no-instance"},
	{ReasonForeignObject,
		"a PersistentVolumeClaim has the labels of an instance, but does not belong to the Cluster",
		"services.md#a-pod-that-is-no-instance"},
	{ReasonLeaseSpoilt,
		"the primary's Lease names a promotion that does not exist: the operator sets it back, or says why it does " +
			"not", "troubleshooting.md#a-promotion-is-stuck"},
	{ReasonTaintLeft,
		"an instance answers from a node that has the taint out-of-service, which says that nothing runs there: " +
			"take the taint off; a notice, which hinders nothing", "failover.md#noproof"},
	{ReasonTokenRefused,
		"the API server refuses the token of an instance's manager (401 Unauthorized), and has done so for 30 s: " +
			"the instance does not see changes of the Cluster, and cannot become primary, except in a group; " +
			"delete its Pod",
		"troubleshooting.md#the-api-server-refuses-an-instance"},
	{ReasonNearlyFull,
		"less than 10 % of an instance's volume is free (the notice ends at 12 %): raise spec.storage.size; a " +
			"notice, which hinders nothing", "runbooks.md#the-disk-is-full"},
	{ReasonNotGrown,
		"Kubernetes took a larger size of an instance's volume ten minutes ago or more, or says that it failed, and " +
			"the volume has not grown; a notice, which hinders nothing", "provisioning.md#volumes"},
	{ReasonFull, "the primary's volume is full, and commits hang until it has space", "runbooks.md#the-disk-is-full"},
	{ReasonActionFailed, "Kubernetes, or an instance, refused an action; the operator tries again", ""},
	{ReasonUnreadable,
		"a value of the spec or the status cannot be read, although the API server took it: the operator leaves " +
			"that Cluster alone, failovers included, until it is corrected; the message names the value. Where the " +
			"value is a Backup's, nobody copies data from an instance of its namespace",
		"troubleshooting.md#a-cluster-that-cannot-be-read"},
	{ReasonBackupScheduled, "a ScheduledBackup made a Backup; the message has the time that it is for",
		"scheduled-backups.md"},
	{ReasonScheduleInvalid,
		"the schedule or the time zone of a ScheduledBackup cannot be read, or never comes: it makes no Backups",
		"scheduled-backups.md#on-call"},
	{ReasonBackupHeldBack,
		"a ScheduledBackup makes no Backup now; the message says what it waits for", "scheduled-backups.md#on-call"},
	{ReasonGroupBootstrap, "an instance is to make the group", ""},
	{ReasonGroupBootstrapped, "the group is made", ""},
	{ReasonFailoverObserved, "the group has elected another primary", ""},
	{ReasonQuorumRestored, "the group has its quorum again", ""},
	{ReasonQuorumForced, "the group continues with the remaining members, as a human requested", ""},
	{ReasonRecoveryVoid,
		"an ordered recovery did not happen: the group continues as it was, and no instance is excluded", ""},
	{ReasonTotalOutage, "the operator has the group rebooted after an outage of all members", ""},
	{ReasonEvenSize, "a group with an even number of members survives no more failures than a group with one member " +
		"fewer", ""},
	{ReasonGroupAlone, "the only member reboots the group after a restart", ""},
	{ReasonWithoutEffect,
		"the spec has fields that have no effect in a group, such as spec.failoverDelay; a notice, which hinders " +
			"nothing",
		"group-replication.md#what-has-no-effect"},
	{ReasonMembersToRejoin, "members use certificates that expire within 30 days, or a former authority, until they " +
		"join again: restart all members one by one; a notice, which hinders nothing",
		"security.md#a-groups-certificates"},
	{ReasonMembersSevered, "members and joining instances do not trust each other's certificates: no member that " +
		"stops can join again. Restart and drain nothing; the group needs an outage and a reboot; a notice, which " +
		"hinders nothing", "security.md#with-an-outage"},
}

var refusals = []row[Reason]{
	{RefusalNoCandidate, "no replica can be promoted: no position is known, or no replica is eligible", ""},
	{RefusalIncomparable,
		"no replica holds everything that the others hold: a human decides which replica to go on with",
		"failover.md#incomparablehistories-allcandidatesdiverged"},
	{RefusalTooFewKnown, "too few positions are known to be sure that nothing acknowledged is lost", ""},
	{RefusalNoProof,
		"there is no proof that the old primary takes no writes: promoting another could make two",
		"failover.md#noproof"},
	{RefusalTargetUnknown, "the cluster has no instance of that name", "switchover.md#refusals"},
	{RefusalTargetNotReady, "the target cannot become primary now", "switchover.md#refusals"},
	{RefusalTargetDiverged,
		"the target holds transactions that the primary does not have", "switchover.md#refusals"},
	{RefusalTargetNotReplicating, "the target does not receive from the primary", "switchover.md#refusals"},
	{RefusalTargetFull, "the target's volume is full: its first commit would hang", "switchover.md#refusals"},
	{RefusalDeadline, "an operation did not end in its time and was given up", "switchover.md#refusals"},
	{RefusalProblem,
		"an instance cannot start, and the cluster has no primary yet", ""},
	{RefusalAllDiverged, "every replica holds transactions that the failed primary did not have",
		"failover.md#incomparablehistories-allcandidatesdiverged"},
	{RefusalLostTransactions,
		"the primary lacks transactions of its own that replicas hold", "failover.md#primarylosttransactions"},
	{RefusalPrimaryFenced, "the primary is fenced: writes stop until a human takes the fence off",
		"runbooks.md#nobody-takes-writes"},
	{RefusalBehind,
		"the best candidate lacks more transactions than spec.failoverPolicy.maxTransactionsBehind, " +
			"or nobody knows how many", ""},
	{RefusalLag, "the best candidate lags more than spec.failoverPolicy.maxReplicationLag", ""},
	{RefusalTooSoon, "the last failover is less than spec.failoverPolicy.minTimeBetweenFailovers ago", ""},
	{RefusalReinitPrimary, "the data of the primary is not recreated: switch over first", ""},
	{RefusalReinitOutdated, "a request to recreate data was dropped: what it was made for has changed since",
		"provisioning.md#have-an-instance-cloned-again"},
	{RefusalReinitUnbound, "a request to recreate data was dropped: its epoch and volume cannot be read",
		"provisioning.md#have-an-instance-cloned-again"},
	{RefusalOverride, "the annotation accept-data-loss was refused; the message says why", ""},
	{RefusalTakeOver,
		"the primary is to take over, but it is not known whether it has all that the external server has executed",
		"import.md#take-over"},
	{RefusalDataWithoutStatus,
		"instances have data, but the Cluster's status names no primary: the status was lost", ""},
	{RefusalStatusRegressed,
		"the Cluster's status is older than what instances have seen of it", "failover.md#statusregressed"},
	{RefusalParameters,
		"mysqld of an instance refuses parameters of the spec, and runs with its former parameters",
		"configuration.md#a-parameter-that-mysqld-refuses"},
	{RefusalManager,
		"a manager cannot be replaced in place; the old one runs on", "upgrades.md#when-it-does-not-work"},
	{RefusalVolumesKept,
		"there are volumes of a deleted Cluster of this name, and the operator makes no others beside them",
		"provisioning.md#go-on-with-kept-volumes"},
	{RefusalAdoption, "volumes were to be adopted, and cannot be", "provisioning.md#go-on-with-kept-volumes"},
	{RefusalLineage,
		"adopted volumes do not show whether the group of the deleted Cluster excluded some of them",
		"provisioning.md#go-on-with-the-volumes-of-a-group"},
	{RefusalLogin,
		"the primary does not let replicas in: accounts, certificates or limits", "troubleshooting.md#writes-fail"},
	{RefusalDamped,
		"replacing the primary did not help the last time: another is tried later", "troubleshooting.md#writes-fail"},
	{RefusalCloneVersions,
		"an instance has no data, and MySQL cannot clone from the others, because they run another series",
		"troubleshooting.md#a-clone-does-not-end"},
	{RefusalUnreachable,
		"the primary's manager cannot be reached, and no replica can be asked: the primary may still take writes",
		"runbooks.md#nobody-takes-writes"},
	{RefusalRestart,
		"mysqld ends again and again, and no other instance can take over", "runbooks.md#nobody-takes-writes"},
	{RefusalQuorumLost, "the group has lost its quorum: writes wait", "runbooks.md#a-group-has-lost-its-quorum"},
	{RefusalGroupUnknown, "too few members answer to tell whether the group has its quorum: it may be working",
		"runbooks.md#nobody-knows-how-a-group-is"},
	{RefusalFenceQuorum, "a fence would cost the group its quorum", "group-replication.md#the-quorum"},
	{RefusalScaleQuorum, "removing a member could cost the group its quorum", "group-replication.md#the-quorum"},
	{RefusalReinitQuorum, "recreating the data of a member would cost the group its quorum",
		"group-replication.md#the-quorum"},
	{RefusalQuorumPresent, "the group has its quorum: there is nothing to force", "runbooks.md#it-refuses"},
	{RefusalNoSafeSurvivor,
		"no remaining member holds all that the others hold, or all that was seen in the group",
		"runbooks.md#it-refuses"},
	{RefusalMembersUnknown, "it is not known what some instance holds", "runbooks.md#it-refuses"},
	{RefusalTargetNotOnline, "the target is not an online member", "group-replication.md#switchover"},
	{RefusalTargetNewer,
		"the target runs a later MySQL than other members, which cannot follow it", "group-replication.md#switchover"},
	{RefusalGroupWithoutData,
		"the group existed, but no instance has its data any more", "group-replication.md#limits"},
	{RefusalSplitBrain, "there are two groups with a quorum, or may be", "runbooks.md#it-refuses"},
	{RefusalSurvivorFenced, "the instance that would lead the group is fenced", "runbooks.md#it-refuses"},
	{RefusalViewChanged, "members joined or left since the recovery was requested", "runbooks.md#it-refuses"},
}

var orderRefusals = []row[Reason]{
	{OrderStaleEpoch, "the order is of an epoch that has ended", ""},
	{OrderStale, "another order came after it", ""},
	{OrderNotPrimary, "the instance does not take writes in the order's epoch", ""},
	{OrderBusy, "another order is being carried out", ""},
	{OrderHasData, "the instance has data, which an order never replaces", ""},
	{OrderNoDonor, "the order to copy data names nobody to copy from", ""},
	{OrderNotAdopted, "transactions cannot be adopted: too many, or the server's own", ""},
	{OrderNotUnderstood, "the transactions to adopt cannot be read", ""},
	{OrderUnknown, "the manager does not know the order; it may be older than the operator", ""},
	{OrderGroupRefused, "the group refused to make another member primary", ""},
	{OrderNotASurvivor, "the member is not online in a group that lost its quorum", ""},
	{OrderInGroup, "the member is in a group, or makes one at this moment, or cannot be asked", ""},
	{OrderBinaryDamaged, "the manager's binary did not arrive as it was announced", ""},
	{OrderNotAThrowAway, "tables are checked in throw-away Clusters only: CHECK TABLE reads all data", ""},
	{OrderBinaryRefused, "the manager's binary does not run here", ""},
	{VouchNotAMember, "an instance that has no data yet vouches for nobody", ""},
	{VouchOtherPrimary, "the instance that was asked to vouch knows another primary", ""},
	{VouchWithheldReason, "the instance promised to vouch for nobody below an epoch", ""},
	{ControlForbidden, "the certificate of the caller may not use this route", ""},
	{ControlBadRequest, "the request cannot be read", ""},
	{ControlFailed, "the request failed; the message says why", ""},
}

var problems = []row[Reason]{
	{ProblemSecretMissing, "the Secret that initdb.secret names does not exist", ""},
	{ProblemSecretIncomplete,
		"the Secret lacks username or password, has a password of several lines, or of more than 256 bytes (32 for " +
			"replication), or names another owner, a reserved account, or by now another account; a cluster that is " +
			"made keeps its account, and goes on", ""},
	{ProblemSecretOwn, "initdb.secret names the Secret <cluster>-app, which the operator makes itself", ""},
	{ProblemPodMonitor, "spec.monitoring.enablePodMonitor is true, and the PodMonitor cannot be made: this " +
		"Kubernetes does not know the kind, the API server refuses it, or somebody else has one of its name; a " +
		"notice, which hinders nothing", "status.md#a-podmonitor"},
	{ProblemAuthorityBroken, "the Secret <cluster>-ca is damaged, or its certificate has expired; restore it, or " +
		"have another made", "security.md#tls"},
	{ProblemAuthorityEnds, "the certificate in the Secret <cluster>-ca expires soon, and then TLS between the " +
		"instances and the operator fails; a notice, which hinders nothing", "security.md#when-the-authority-ends"},
	{ProblemAuthorityLost, "the Secret <cluster>-ca of a group is gone, the operator does not know what was in it, " +
		"and the Secrets of the members' certificates are gone as well. The operator makes no other authority, " +
		"because a member that stops could then not join again; restore the Secret, or ask for another authority by " +
		"annotation",
		"runbooks.md#the-certificate-authority-is-gone"},
	{ProblemAuthorityRestored, "the Secret <cluster>-ca was deleted, and the operator has put it back as it was; a " +
		"notice, which hinders nothing", "runbooks.md#the-certificate-authority-is-gone"},
	{ProblemAuthorityChanges, "the cluster changes to another certificate authority; until then it trusts both; a " +
		"notice, which hinders nothing", "security.md#another-authority"},
	{ProblemAuthorityAwaits, "a group changes to another certificate authority, and its next step waits until the " +
		"named members are restarted; a notice, which hinders nothing", "security.md#another-authority"},
	{ProblemNameTaken, "an object of that name belongs to somebody else; rename one of the two", ""},
	{ProblemCRDOutdated,
		"the API server drops what the operator writes into the status: its CustomResourceDefinition is of another " +
			"release", "upgrades.md#the-customresourcedefinitions"},
	{ProblemPrerequisites, "Secrets, Services or rights could not be made; it is tried again", ""},
	{ProblemRecoverySource,
		"the backup that spec.bootstrap.recovery names is missing or not complete, or the Secret of its store, or of " +
			"the running server, is",
		"restore.md"},
	{KeyInvalid, "the Secret that objectStore.encryption.identity of the backup names holds no age identity",
		"restore.md"},
	{ProblemClassNotFound, "the StorageClass does not exist", ""},
	{ProblemNoDefaultClass, "no StorageClass is named, and none is the default", ""},
}
