package core

// Phase is the cluster's situation in one word.
type Phase string

// Phases of a cluster.
const (
	PhaseProvisioning Phase = "Provisioning"
	PhaseHealthy      Phase = "Healthy"
	PhaseDegraded     Phase = "Degraded"
	PhaseSwitchover   Phase = "Switchover"
	PhaseFailover     Phase = "Failover"
	PhaseScaling      Phase = "Scaling"
	PhaseUpdating     Phase = "Updating"
	// PhaseBlocked says that nothing can be done until something outside changes.
	PhaseBlocked Phase = "Blocked"
)

// ClusterState is the state of a cluster in MOCO's terms, published as the
// reason of the conditions Available, Healthy and Initialized.
type ClusterState string

// States of a cluster.
const (
	StateHealthy    ClusterState = "Healthy"
	StateDegraded   ClusterState = "Degraded"
	StateFailed     ClusterState = "Failed"
	StateLost       ClusterState = "Lost"
	StateIncomplete ClusterState = "Incomplete"
	// StateRestoring says that the cluster's first data are being made from a backup.
	StateRestoring ClusterState = "Restoring"
	// StateCloning says that the cluster's first data are being copied from a running server.
	StateCloning ClusterState = "Cloning"
)

// FirstState is a cluster's before it has data.
func (c *Cluster) FirstState() ClusterState {
	switch c.FirstData {
	case OriginRestored:
		return StateRestoring
	case OriginImported:
		return StateCloning
	default:
		return StateIncomplete
	}
}

// StateWithoutPrimary is a cluster's while nobody takes writes: so many of the others than the last
// primary can be seen to have its data.
func StateWithoutPrimary(withData, others int) ClusterState {
	if 2*withData > others || others == 0 {
		return StateFailed
	}
	return StateLost
}

// Proof names why a former primary cannot acknowledge another write.
type Proof string

// Proofs.
const (
	// ProofBootstrap says that there never was a primary.
	ProofBootstrap Proof = "Bootstrap"
	// ProofManagerFenced says that the primary's manager promised, at this epoch, that it is not
	// writable and will not be.
	ProofManagerFenced Proof = "ManagerFenced"
	// ProofPodTerminated says that the kubelet reported the primary's container terminated for
	// good, or that its node is out of service.
	ProofPodTerminated Proof = "PodTerminated"
	// ProofQuorumCut says that so many replicas stopped receiving that no commit of the primary's
	// own can be acknowledged any more.
	ProofQuorumCut Proof = "QuorumCut"
	// ProofLeaseExpired says that the primary's lease ran out and was seized, and so many instances
	// have withheld their vouch that it isolated itself.
	ProofLeaseExpired Proof = "LeaseExpired"
	// ProofAdopted says that the primary's Cluster was deleted, and all whose volumes
	// were kept are heard.
	ProofAdopted Proof = "Adopted"
	// ProofStatusRestored says that the status is of the past, all instances are heard, and the one
	// that takes writes is the primary of the last epoch that anybody has seen.
	ProofStatusRestored Proof = "StatusRestored"
	// ProofTakenOver says that the same instance followed an external server before, and so nobody took writes.
	ProofTakenOver Proof = "TakenOver"
	// ProofAcceptedLoss is none: a human accepted what may be lost.
	ProofAcceptedLoss Proof = "AcceptedDataLoss"
)

// OperationKind names a multi-step operation.
type OperationKind string

// Operations.
const (
	OperationSwitchover OperationKind = "Switchover"
	OperationFailover   OperationKind = "Failover"
	// OperationGiveData closes the primary while it gives its data to others.
	OperationGiveData OperationKind = "GiveData"
	// OperationQuorumRecovery goes on with those who are left of a group.
	OperationQuorumRecovery OperationKind = "QuorumRecovery"
)

// Step names where an operation stands.
type Step string

// Steps of operations.
const (
	// StepCatchUp waits for the target to catch up while the old primary takes writes.
	StepCatchUp Step = "CatchUp"
	// StepDemote makes the old primary read-only.
	StepDemote Step = "Demote"
	// StepDelay waits for spec.failoverDelay.
	StepDelay Step = "Delay"
	// StepProve gets a proof that the old primary cannot write.
	StepProve Step = "Prove"
	// StepElect reads the candidates' positions.
	StepElect Step = "Elect"
	// StepPromote waits for the new primary, which was permitted and is on its way.
	StepPromote Step = "Promote"
	// StepCopy has the closed primary give its data.
	StepCopy Step = "Copy"
	// StepReturn goes back to the old primary.
	StepReturn Step = "Return"
)

// Reason is why something is done or refused; it is the reason of the event and
// a label of the metric.
type Reason string

// Reasons for doing something.
const (
	ReasonRequested          Reason = "SwitchoverRequested"
	ReasonPodTerminating     Reason = "PrimaryPodTerminating"
	ReasonDemoteRequested    Reason = "DemoteRequested"
	ReasonScaleDown          Reason = "ScaleDown"
	ReasonReturn             Reason = "SwitchoverReturned"
	ReasonGivenUp            Reason = "SwitchoverGivenUp"
	ReasonVolumeDeleting     Reason = "PrimaryVolumeDeleting"
	ReasonVolumeHeld         Reason = "VolumeHeld"
	ReasonPreferred          Reason = "PreferredPrimary"
	ReasonFenced             Reason = "InstanceFenced"
	ReasonUnfenced           Reason = "InstanceUnfenced"
	ReasonReinit             Reason = "InstanceReinitialized"
	ReasonOverride           Reason = "DataLossAccepted"
	ReasonRollout            Reason = "Rollout"
	ReasonFailover           Reason = "FailoverStarted"
	ReasonPromotionGranted   Reason = "PromotionGranted"
	ReasonPrimaryContinues   Reason = "PrimaryContinues"
	ReasonStatusRestored     Reason = "StatusRestored"
	ReasonPrimaryEstablished Reason = "PrimaryEstablished"
	ReasonPrimaryChanged     Reason = "PrimaryChanged"
	ReasonRestartInPlace     Reason = "RestartInPlace"
	ReasonGivesData          Reason = "PrimaryGivesData"
	ReasonCloneStarted       Reason = "CloneStarted"
	ReasonCloneFailed        Reason = "CloneFailed"
	ReasonInstanceCreated    Reason = "InstanceCreated"
	ReasonInstanceRemoved    Reason = "InstanceRemoved"
	ReasonInstanceRestarted  Reason = "InstanceRestarted"
	ReasonManagerReplaced    Reason = "ManagerReplaced"
	ReasonAdopted            Reason = "TransactionsAdopted"
	ReasonVolumesAdopted     Reason = "VolumesAdopted"
	ReasonAcksChanged        Reason = "AcknowledgementsChanged"
	ReasonDiverged           Reason = "InstanceDiverged"
	ReasonBroken             Reason = "ReplicationBroken"
	ReasonRecovered          Reason = "PrimaryRecovered"
	ReasonLost               Reason = "TransactionsLost"
	// The primary follows an external server no more, and takes writes; or it does not get what that has.
	ReasonTakesOver    Reason = "TakesOver"
	ReasonNotFollowing Reason = "ExternalServerNotFollowed"
	// Something carries the labels of an instance and is not the Cluster's.
	ReasonForeignPod    Reason = "ForeignPod"
	ReasonForeignObject Reason = "ForeignObject"
	// A server that is no instance acknowledges commits.
	ReasonForeignAcks Reason = "ForeignAcknowledgements"
	// An instance runs on a node that is said to be off.
	ReasonTaintLeft Reason = "OutOfServiceTaintLeft"
	// The API server does not know the token of an instance's manager.
	ReasonTokenRefused Reason = "TokenRefused"
	// Little of an instance's volume is free.
	ReasonNearlyFull Reason = "VolumeNearlyFull"
	// Kubernetes took a larger size of volumes, and they have not grown.
	ReasonNotGrown Reason = "VolumeNotGrown"
	// The primary's is full, and commits hang.
	ReasonFull Reason = "PrimaryFull"
	// Somebody wrote into the primary's Lease what only the operator hands out.
	ReasonLeaseSpoilt Reason = "LeaseSpoilt"
)

// ReasonActionFailed says that Kubernetes or an instance refused what was to be
// done. It is tried again.
const ReasonActionFailed Reason = "ActionFailed"

// ReasonUnreadable says that the spec or status of an object cannot be read, although
// the API server took it.
const ReasonUnreadable Reason = "Unreadable"

// Refusals: why something is not done.
const (
	RefusalNoCandidate          Reason = "NoCandidate"
	RefusalIncomparable         Reason = "IncomparableHistories"
	RefusalTooFewKnown          Reason = "TooFewPositionsKnown"
	RefusalNoProof              Reason = "NoProof"
	RefusalTargetUnknown        Reason = "TargetUnknown"
	RefusalTargetNotReady       Reason = "TargetNotReady"
	RefusalTargetDiverged       Reason = "TargetDiverged"
	RefusalTargetNotReplicating Reason = "TargetNotReplicating"
	RefusalTargetFull           Reason = "TargetFull"
	RefusalDeadline             Reason = "DeadlineExceeded"
	RefusalProblem              Reason = "Problem"
	RefusalAllDiverged          Reason = "AllCandidatesDiverged"
	RefusalLostTransactions     Reason = "PrimaryLostTransactions"
	RefusalPrimaryFenced        Reason = "PrimaryFenced"
	RefusalBehind               Reason = "TooManyTransactionsBehind"
	RefusalLag                  Reason = "ReplicationLagTooLarge"
	RefusalTooSoon              Reason = "TooSoonAfterLastFailover"
	RefusalReinitPrimary        Reason = "ReinitOfPrimaryRefused"
	RefusalReinitOutdated       Reason = "ReinitOutdated"
	RefusalReinitUnbound        Reason = "ReinitNotBound"
	RefusalOverride             Reason = "OverrideRefused"
	RefusalTakeOver             Reason = "TakeOverRefused"
	RefusalDataWithoutStatus    Reason = "DataWithoutStatus"
	// RefusalStatusRegressed says that instances have seen a later status than the present one.
	RefusalStatusRegressed Reason = "StatusRegressed"
	RefusalManager         Reason = "ManagerNotReplaced"
	// RefusalParameters says that mysqld refuses what the spec says, and runs with what it served with before.
	RefusalParameters Reason = "ParametersRefused"
	// RefusalVolumesKept says that there is data of a deleted Cluster, and nobody said what is to
	// become of it. RefusalAdoption says that somebody did, and it cannot be done.
	RefusalVolumesKept Reason = "VolumesKept"
	RefusalAdoption    Reason = "AdoptionRefused"
	// RefusalLineage says that nobody knows whether the group of a deleted Cluster went on without the data of some.
	RefusalLineage Reason = "LineageUnknown"
	// RefusalLogin says that the primary does not let replicas in.
	RefusalLogin Reason = "ReplicationLoginRefused"
	// RefusalUnreachable says that nobody can be asked whether the primary takes writes.
	RefusalUnreachable Reason = "PrimaryUnreachable"
	// RefusalRestart says that starting the only mysqld there is again and again does not help.
	RefusalRestart Reason = "RestartInPlaceFailed"
	// RefusalDamped says that to replace the primary did not help the last time.
	RefusalDamped Reason = "FailoverDamped"
	// RefusalCloneVersions says that MySQL copies data from no other series, and there is no image
	// of that of the others.
	RefusalCloneVersions Reason = "CloneVersionsDiffer"
)

// DurableState is the status of the condition Durable.
type DurableState string

// Durable states. "" means that no acknowledgements are wished.
const (
	DurableYes     DurableState = "True"
	DurableNo      DurableState = "False"
	DurableUnknown DurableState = "Unknown"
)

// PolicyRefusals are those of the bounds that the user set in spec.failoverPolicy.
func PolicyRefusals() []Reason { return []Reason{RefusalBehind, RefusalLag, RefusalTooSoon} }
