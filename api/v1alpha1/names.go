package v1alpha1

// Labels and annotations that the operator writes on the objects it owns.
const (
	// LabelCluster names the Cluster that an object belongs to.
	LabelCluster = "mysql.cnmsql.co/cluster"
	// LabelInstance names the instance that an object belongs to; -rw
	// Services select the primary by it.
	LabelInstance = "mysql.cnmsql.co/instanceName"
	// LabelBackup names the Backup that an object belongs to.
	LabelBackup = "mysql.cnmsql.co/backup"
	// LabelScheduledBackup names the ScheduledBackup that made a Backup.
	LabelScheduledBackup = "mysql.cnmsql.co/scheduledBackup"
	// LabelRole is RolePrimary or RoleReplica on a Pod.
	LabelRole = "mysql.cnmsql.co/role"
	// LabelRoutable is "true" on a Pod that may be in a Service.
	LabelRoutable = "mysql.cnmsql.co/routable"
	// AnnotationPodSpecHash is the hash of the Pod spec that the operator
	// built the Pod from, before the API server defaulted it.
	AnnotationPodSpecHash = "mysql.cnmsql.co/podSpecHash"
	// AnnotationPodInputHash is the hash of what the Pod was built from: it is the
	// same where another release builds Pods otherwise.
	AnnotationPodInputHash = "mysql.cnmsql.co/podInputHash"
	// AnnotationManagerImage is the image that the operator had the Pod's
	// manager copied from, whatever admission made of it.
	AnnotationManagerImage = "mysql.cnmsql.co/managerImage"
	// AnnotationAwaited on a Pod of the primary is the name by which
	// status.promotion.pods awaited it before it was made.
	AnnotationAwaited = "cnmsql.cnmsql.co/awaited"
	// AnnotationEpoch is the epoch of the primary's lease, on its record.
	AnnotationEpoch = "mysql.cnmsql.co/epoch"
	// AnnotationGroupObserved on a Pod changes whenever the instance sees its
	// group change: a doorbell, and no authority.
	AnnotationGroupObserved = "mysql.cnmsql.co/gr-observed"
	// AnnotationClusterUID on a volume claim is the UID of the Cluster whose data it
	// has: it outlives the Cluster. On a Job, and its Secret, that whose archive it removes
	// or merges.
	AnnotationClusterUID = "mysql.cnmsql.co/clusterUID"
	// AnnotationTold on a Job that merged an archive is the reason by which its end was told.
	AnnotationTold = "mysql.cnmsql.co/told"
	// AnnotationKept on a volume claim is when its instance was removed, and the claim
	// kept.
	AnnotationKept = "mysql.cnmsql.co/kept"
	// AnnotationBackupUID on a Job, and its Secret, is the UID of the Backup whose data it
	// removes from the store.
	AnnotationBackupUID = "mysql.cnmsql.co/backupUID"
	// AnnotationBackupRecord on a Backup is what the operator decided about it before there was
	// a Job: store, Secrets, instance and name. The Job may patch the status, and not this.
	AnnotationBackupRecord = "mysql.cnmsql.co/backupRecord"
	// FinalizerStoredBackup on a Backup keeps it until its data are removed from the store.
	FinalizerStoredBackup = "mysql.cnmsql.co/stored-backup"
	// FinalizerStoredArchive on a Cluster keeps it until its archive is removed from the store.
	FinalizerStoredArchive = "mysql.cnmsql.co/stored-archive"
	// LabelVerifies on a throw-away Cluster names the Cluster whose backups it was made to
	// try.
	LabelVerifies = "mysql.cnmsql.co/verifies"
	// AnnotationThrowAway on such a Cluster says to people what it is.
	AnnotationThrowAway = "mysql.cnmsql.co/throwAway"
	// AnnotationServerID is the server_id of the instance, on its volume claim.
	AnnotationServerID = "mysql.cnmsql.co/serverID"
)

// Values of LabelRole.
const (
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// Annotations by which a user asks for something.
const (
	// AnnotationDemote on the primary's Pod asks for a switchover.
	AnnotationDemote = "cnmsql.cnmsql.co/demote"
	// AnnotationFencing on an instance's Pod takes it out of service.
	AnnotationFencing = "cnmsql.cnmsql.co/fencing"
	// AnnotationReinit on a Cluster names the instances, separated by commas, of which the
	// data is to be recreated: "<instance>", which the operator binds to the present epoch and
	// volume, or "<instance>@<epoch>/<UID of the volume claim>", with "/diverged" behind it when
	// the user was told that the instance holds what the others lack.
	AnnotationReinit = "cnmsql.cnmsql.co/reinit"
	// AnnotationForceQuorum on a Cluster is a human's word to make a group that
	// lost its quorum go on with those who are left: "true", or a time and the view of
	// the group in which it was given, "<time>@<view>".
	AnnotationForceQuorum = "cnmsql.cnmsql.co/force-quorum-recovery"
	// AnnotationAcceptLoss on a Cluster promotes an instance although writes may
	// be lost: "<instance>@<epoch>", of the epoch in which nobody takes writes. Of a group
	// it counts together with AnnotationForceQuorum alone: the instance may go on although
	// it lacks what was seen in the group.
	AnnotationAcceptLoss = "cnmsql.cnmsql.co/accept-data-loss"
	// AnnotationAdoptVolumes on a Cluster that never had a primary has it go on with the
	// volumes that were kept of the deleted Cluster of this UID.
	AnnotationAdoptVolumes = "cnmsql.cnmsql.co/adopt-volumes"
	// AnnotationVerify on a Cluster asks for its backups to be tried now. Its value is any
	// text, by which the one who asked finds the answer in status.lastVerification.request.
	AnnotationVerify = "cnmsql.cnmsql.co/verify-backup"
	// AnnotationNewAuthority on a Cluster asks for another certificate authority, which the operator goes to
	// step by step. Its value is any text; the operator removes it once the other one is made.
	AnnotationNewAuthority = "cnmsql.cnmsql.co/new-authority"
	// AnnotationDeletionProtection on a Cluster has the API server refuse to delete
	// it, until the annotation is removed or "false".
	AnnotationDeletionProtection = "cnmsql.cnmsql.co/deletion-protection"
)

// Types of the conditions of a Cluster.
const (
	ConditionReady       = "Ready"
	ConditionProgressing = "Progressing"
	ConditionDegraded    = "Degraded"
	ConditionAvailable   = "Available"
	ConditionHealthy     = "Healthy"
	ConditionInitialized = "Initialized"
	// ConditionReconciling is True while the cluster is not yet as its spec says, and the operator works
	// on that; ConditionStalled while nothing can be done until something outside changes. Both are absent
	// otherwise: they have the meaning that kstatus gives them.
	ConditionReconciling = "Reconciling"
	ConditionStalled     = "Stalled"
	// ConditionSwitchoverReturned is True after a planned switchover that stopped
	// writes and was given up; absent otherwise.
	ConditionSwitchoverReturned = "SwitchoverReturned"
	// ConditionContinuousArchiving tells whether binary logs are archived in time; absent
	// unless it is enabled.
	ConditionContinuousArchiving = "ContinuousArchiving"
	// ConditionNewestRestored tells whether the Cluster begins with the newest backup that
	// suits; False if that one, or more, could not be used. Absent where nothing is restored.
	ConditionNewestRestored = "NewestBackupRestored"
	// ConditionArchiveStored of a Cluster that is deleted, and whose archive goes with it: Unknown
	// while that is waited for, or fails, and False at the end; it is absent otherwise.
	ConditionArchiveStored = "ArchiveStored"
	// ConditionDurable tells whether a commit now waits for as many
	// acknowledgements as the spec asks for.
	ConditionDurable = "Durable"
)

// ReasonCommitsHang is that of ConditionDurable while commits wait for more replicas than are
// attached: what was acknowledged is durable, and nothing more is acknowledged.
const ReasonCommitsHang = "CommitsHang"

// ReasonAsynchronous is why ConditionDurable is False where the spec asks for no
// acknowledgements: it was chosen, and nothing is wrong.
const ReasonAsynchronous = "Asynchronous"
