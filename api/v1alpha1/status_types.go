package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is what the operator knows and is doing.
type ClusterStatus struct {
	// Phase is the cluster's situation in one word.
	// +optional
	Phase string `json:"phase,omitempty"`
	// PhaseReason says in one sentence what the operator is doing or waiting for.
	// +optional
	PhaseReason string `json:"phaseReason,omitempty"`
	// Diagnosis names what is known of the primary, for example MysqldDown.
	// +optional
	Diagnosis string `json:"diagnosis,omitempty"`

	// CurrentPrimary is the instance that is accepted as primary.
	// +optional
	CurrentPrimary string `json:"currentPrimary,omitempty"`
	// +optional
	CurrentPrimaryTimestamp *metav1.MicroTime `json:"currentPrimaryTimestamp,omitempty"`
	// TargetPrimary is the wished primary. Setting it to a replica asks for a
	// planned switchover.
	// +optional
	TargetPrimary string `json:"targetPrimary,omitempty"`
	// +optional
	TargetPrimaryTimestamp *Moment `json:"targetPrimaryTimestamp,omitempty"`
	// PrimaryEpoch grows by one with every promotion. An instance that sees a
	// higher epoch that does not name it, demotes.
	// +optional
	PrimaryEpoch int64 `json:"primaryEpoch,omitempty"`
	// Promotion is the permission by which one instance may be writable.
	// +optional
	Promotion *PromotionStatus `json:"promotion,omitempty"`
	// Operation is the multi-step operation in progress.
	// +optional
	Operation *OperationStatus `json:"operation,omitempty"`
	// PrimaryFailingSince is when the primary was first seen failing.
	// +optional
	PrimaryFailingSince *metav1.MicroTime `json:"primaryFailingSince,omitempty"`
	// +optional
	LastFailoverTimestamp *metav1.MicroTime `json:"lastFailoverTimestamp,omitempty"`
	// EstablishedAt is when the cluster first had a primary. An established
	// cluster is never initialised again.
	// +optional
	EstablishedAt *metav1.MicroTime `json:"establishedAt,omitempty"`

	// AdoptedFrom is the UID of the deleted Cluster whose volumes this one goes on
	// with; empty when its data is its own.
	// +optional
	AdoptedFrom string `json:"adoptedFrom,omitempty"`

	// Blocked is the refusal that stands in the way of all: nothing is done until
	// something outside changes. Absent while nothing does.
	// +optional
	Blocked *Notice `json:"blocked,omitempty"`
	// Notices are what stands beside that, or without it: refusals that concern one
	// request or instance, and news. Each was an event when it began to stand.
	// +listType=atomic
	// +optional
	Notices []Notice `json:"notices,omitempty"`
	// LastOperations are the last ten switchovers, failovers and the like that
	// ended, newest last.
	// +listType=atomic
	// +optional
	LastOperations []PastOperation `json:"lastOperations,omitempty"`
	// SwitchoverReturn is the last planned switchover that the old primary came
	// back from; absent once another instance has become primary since.
	// +optional
	SwitchoverReturn *SwitchoverReturn `json:"switchoverReturn,omitempty"`

	// GroupReplication is the group, of a Cluster of that mode.
	// +optional
	GroupReplication *GroupReplicationStatus `json:"groupReplication,omitempty"`

	// ContinuousArchiving is how far binary logs are archived, of a Cluster that has it
	// enabled. It is at least a minute behind while all is well.
	// +optional
	ContinuousArchiving *ContinuousArchivingStatus `json:"continuousArchiving,omitempty"`

	// Restore is how far the restore is with which the Cluster begins, and what it was;
	// absent where it begins with none. While it goes on it is written with each percent.
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`
	// Cloned is true once the data of a running server were copied, with which the Cluster began.
	// +optional
	Cloned bool `json:"cloned,omitempty"`

	// LastRetentionRunTime is when it was last looked, after a backup, what has expired in
	// the object store.
	// +optional
	LastRetentionRunTime *metav1.Time `json:"lastRetentionRunTime,omitempty"`

	// LastVerification is what the last verification of the backups found, or how far the
	// present one is.
	// +optional
	LastVerification *VerificationStatus `json:"lastVerification,omitempty"`
	// VerificationSchedule is when verifications begin by themselves, of a Cluster with
	// spec.backup.verify.schedule.
	// +optional
	VerificationSchedule *VerificationScheduleStatus `json:"verificationSchedule,omitempty"`

	// Instances is the number of instances that exist.
	// +optional
	Instances int32 `json:"instances,omitempty"`
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// SyncedReplicas is the number of instances besides the primary that are ready and
	// have not diverged.
	// +optional
	SyncedReplicas int32 `json:"syncedReplicas,omitempty"`
	// ErrantReplicas is the number of divergedInstances.
	// +optional
	ErrantReplicas int32 `json:"errantReplicas,omitempty"`
	// +optional
	InstanceNames []string `json:"instanceNames,omitempty"`
	// Members are the instances that hold the cluster's data, or held it since they
	// exist: they acknowledge commits, vouch for the primary, and are counted in every
	// majority. One that is still being made or cloned is none. Not used in a group.
	// +optional
	Members []string `json:"members,omitempty"`
	// LatestGeneratedNode is the highest ordinal that was ever used.
	// +optional
	LatestGeneratedNode int32 `json:"latestGeneratedNode,omitempty"`
	// LabelSelector selects the cluster's Pods, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// DivergedInstances hold transactions that the primary does not have.
	// They are kept out of every Service and are never promoted.
	// +optional
	DivergedInstances []string `json:"divergedInstances,omitempty"`
	// ReplicationBrokenInstances are reachable replicas whose replication
	// stopped with an error, is delayed on purpose, or skips transactions.
	// +optional
	ReplicationBrokenInstances []string `json:"replicationBrokenInstances,omitempty"`
	// FencedInstances were taken out of service by an annotation of their Pod.
	// +optional
	FencedInstances []string `json:"fencedInstances,omitempty"`
	// GTIDExecutedByInstance is what each instance had executed when the status was
	// last written for another reason, so that it may be old. A set that is longer than
	// 1024 characters is abbreviated.
	// +optional
	GTIDExecutedByInstance map[string]string `json:"gtidExecutedByInstance,omitempty"`
	// GTIDExecutedUpdatedAt is when that was.
	// +optional
	GTIDExecutedUpdatedAt *metav1.MicroTime `json:"gtidExecutedUpdatedAt,omitempty"`
	// InstancesReported is what each instance last said of itself.
	// +optional
	// +listType=map
	// +listMapKey=name
	InstancesReported []InstanceStatus `json:"instancesReported,omitempty"`
	// Image that Pods are made from: spec.imageName, or the operator's default.
	// +optional
	Image string `json:"image,omitempty"`

	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ContinuousArchivingStatus is how far binary logs are archived.
type ContinuousArchivingStatus struct {
	Enabled bool `json:"enabled"`
	// Place is the store that it is archived to, once something is. When it becomes another one, or
	// the first one of a Cluster that ran before, a Backup is made there, as after a gap:
	// MissingSince is when that was found.
	// +optional
	Place string `json:"place,omitempty"`
	// LastArchivedBinlog is the binary log of the last part that was archived, LastArchivedGTID
	// what that part holds, and LastArchivedTime when it was.
	// +optional
	LastArchivedBinlog string `json:"lastArchivedBinlog,omitempty"`
	// +optional
	LastArchivedGTID string `json:"lastArchivedGTID,omitempty"`
	// +optional
	LastArchivedTime *metav1.Time `json:"lastArchivedTime,omitempty"`
	// LastFailureReason names why it could not be archived, and LastFailureMessage says it;
	// empty once it could again.
	// +optional
	LastFailureReason string `json:"lastFailureReason,omitempty"`
	// +optional
	LastFailureMessage string `json:"lastFailureMessage,omitempty"`
	// +optional
	LastFailureTime *metav1.Time `json:"lastFailureTime,omitempty"`
	// PendingFiles is the number of binary logs that are not archived as a whole, when that was
	// known last.
	// +optional
	PendingFiles int32 `json:"pendingFiles,omitempty"`
	// Missing was purged before it was archived: a restore cannot go past it, unless from
	// a later backup.
	// +optional
	Missing string `json:"missing,omitempty"`
	// MissingSince is when that was found, or that the archive has begun or moved. A Backup is made
	// then; the condition is False until one is complete that was begun later.
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`
	// CompleteSince is since when the archive lacks nothing: it has begun then, or its last gap
	// was found, or that it has moved. Any moment can be restored from a Backup on that was begun
	// later. It stays once a Backup has closed the gap. It is absent where archiving was enabled
	// under a release that did not note it.
	// +optional
	CompleteSince *metav1.Time `json:"completeSince,omitempty"`
}

// PromotionStatus permits one instance to be the primary in one epoch: to be writable,
// or to follow an external server.
type PromotionStatus struct {
	Epoch    int64  `json:"epoch"`
	Instance string `json:"instance"`
	// Proof names why the former primary cannot acknowledge another write.
	Proof string `json:"proof"`
	// Evidence is what the proof rests on, for people.
	// +optional
	Evidence string `json:"evidence,omitempty"`
	// From is the former primary.
	// +optional
	From string `json:"from,omitempty"`
	// RequiredGTID must be executed before the instance becomes writable.
	// +optional
	RequiredGTID string `json:"requiredGTID,omitempty"`
	// RequiredAcks is the number of acknowledgements that each commit must
	// wait for from the first write on.
	// +optional
	RequiredAcks int32 `json:"requiredAcks,omitempty"`
	// AcksOrder is the number of the last order to the primary to wait for
	// another number of acknowledgements, which is orderedAcks. The primary
	// obeys none with a lower number.
	// +optional
	AcksOrder int64 `json:"acksOrder,omitempty"`
	// +optional
	OrderedAcks int32 `json:"orderedAcks,omitempty"`
	// +optional
	GrantedAt *metav1.MicroTime `json:"grantedAt,omitempty"`
	// PodUID and Node are of the Pod that may become writable. Another Pod of
	// the same instance may not, unless it runs on that node and holds the
	// lock on the volume: the former may still be alive elsewhere.
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// +optional
	Node string `json:"node,omitempty"`
	// Follows names the external server, one of spec.externalClusters, from which
	// the primary replicates, read-only; absent where it takes writes.
	// +optional
	Follows string `json:"follows,omitempty"`
	// LosslessSince is the first epoch since when every acknowledged write is
	// known to be on requiredAcks replicas, or on the next primary.
	// +optional
	LosslessSince int64 `json:"losslessSince,omitempty"`
	// Size is the smallest number of instances of which the primary may count
	// a majority.
	// +optional
	Size int32 `json:"size,omitempty"`
	// Leased: the primary surely goes by its lease, so that one which ran out
	// proves something.
	// +optional
	Leased bool `json:"leased,omitempty"`
	// Isolations is how many primaries in a row, up to this promotion, were
	// replaced because their replicas could not reach them. The next one is
	// replaced the later the more there were. It ends when replicas reach one.
	// +optional
	Isolations int32 `json:"isolations,omitempty"`
	// Pods are the UIDs of the instance's Pods that may have become writable in
	// this epoch ("awaited-1": one that may have been made and was not seen yet,
	// "awaited-9+": several); EndedPods are those of which the kubelet reported the
	// end.
	// +optional
	Pods []string `json:"pods,omitempty"`
	// +optional
	EndedPods []string `json:"endedPods,omitempty"`
	// AwaitedPods is the last number that was given to a Pod that is awaited.
	// +optional
	AwaitedPods int32 `json:"awaitedPods,omitempty"`
	// NoWritesBelow is the epoch below which the instance's manager promised not
	// to be writable.
	// +optional
	NoWritesBelow int64 `json:"fencedBelow,omitempty"`
	// WritableSince is when the instance was first seen writable.
	// +optional
	WritableSince *metav1.MicroTime `json:"writableSince,omitempty"`
}

// OperationStatus is the step that a multi-step operation stands at.
type OperationStatus struct {
	Kind string `json:"kind"`
	Step string `json:"step"`
	// +optional
	From string `json:"from,omitempty"`
	// +optional
	To string `json:"to,omitempty"`
	// +optional
	Reason    string            `json:"reason,omitempty"`
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	Deadline  *metav1.MicroTime `json:"deadline,omitempty"`
	// PausedAt is when a switchover began to stop writes.
	// +optional
	PausedAt *metav1.MicroTime `json:"pausedAt,omitempty"`
	// Witnesses of a failover, as instance/podUID/node: the Pods that may have
	// vouched for the primary, or acknowledged its writes, when it began.
	// +optional
	Witnesses []string `json:"witnesses,omitempty"`
}

// PastOperation is an operation that has ended.
type PastOperation struct {
	// Kind is Switchover, Failover, GiveData or QuorumRecovery.
	Kind string `json:"kind"`
	// Reason names why it began.
	// +optional
	Reason string `json:"reason,omitempty"`
	// From is the primary before.
	// +optional
	From string `json:"from,omitempty"`
	// To is the wished primary, if one was named.
	// +optional
	To string `json:"to,omitempty"`
	// Primary that takes writes since it ended, in the epoch; empty when nobody did,
	// as when a switchover became a failover.
	// +optional
	Primary string `json:"primary,omitempty"`
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Proof names why the former primary could take no writes any more.
	// +optional
	Proof string `json:"proof,omitempty"`
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// StoppedAt is when writes stopped, as far as the operator saw it.
	// +optional
	StoppedAt *metav1.MicroTime `json:"stoppedAt,omitempty"`
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`
}

// Notice is a refusal or a piece of news, for as long as it stands.
type Notice struct {
	// Reason is its name, as that of the event by which it was told.
	Reason string `json:"reason"`
	// Subject tells notices of one reason apart: whom it is about.
	// +optional
	Subject string `json:"subject,omitempty"`
	// Message is for people, and may change while it stands.
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// SwitchoverReturn is a switchover that stopped writes and was given up.
type SwitchoverReturn struct {
	// Target did not become primary.
	Target string `json:"target"`
	// Reason tells why.
	Reason string            `json:"reason"`
	At     *metav1.MicroTime `json:"at"`
	// Times is how many came one soon after the other, with this one.
	// +optional
	Times int32 `json:"times,omitempty"`
}

// InstanceStatus is what is known of one instance. It changes only when the
// instance's situation does, not with every transaction.
type InstanceStatus struct {
	Name string `json:"name"`
	// State is the manager's word, or Unknown.
	State string `json:"state"`
	// Reason names why it is in that state; a Pod that does not run has Kubernetes' own.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	Role string `json:"role,omitempty"`
	// +optional
	Ready bool `json:"ready,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Node string `json:"node,omitempty"`
}
