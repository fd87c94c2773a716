package core

// Attention is who ends a notice.
type Attention string

// Who ends notices.
const (
	// AwaitsHuman is of those that stand until a human acts, and that neither the phase nor an alert of
	// their own tells: the alert CnmsqlNotice is of these.
	AwaitsHuman Attention = "a human, and only CnmsqlNotice wakes one"
	// IsTold is of those that a human ends, whom another alert wakes.
	IsTold Attention = "a human, whom another alert wakes"
	// EndsByItself is of those that tell what is going on.
	EndsByItself Attention = "nobody"
)

// notices are the reasons that notices have.
var notices = map[Reason]Attention{
	ReasonMembersSevered:    AwaitsHuman,
	ReasonMembersToRejoin:   AwaitsHuman,
	ReasonForeignPod:        AwaitsHuman,
	ReasonForeignObject:     AwaitsHuman,
	ReasonForeignAcks:       AwaitsHuman,
	ReasonVolumeHeld:        AwaitsHuman,
	ReasonNotGrown:          AwaitsHuman,
	ReasonActionFailed:      AwaitsHuman,
	ReasonTaintLeft:         AwaitsHuman, // it proves an end when the instance is not heard the next time
	ReasonTokenRefused:      AwaitsHuman,
	ReasonLeaseSpoilt:       AwaitsHuman, // what the operator sets back is over in the life of a Lease
	ReasonUnreadable:        AwaitsHuman, // as a notice: of a Backup, a Node or a StorageClass
	RefusalStatusRegressed:  AwaitsHuman, // as a notice: of a group, which goes on
	RefusalAdoption:         AwaitsHuman,
	RefusalParameters:       AwaitsHuman,
	RefusalManager:          AwaitsHuman,
	ProblemSecretIncomplete: AwaitsHuman,
	ReasonNotFollowing:      AwaitsHuman,
	BackupStoreSecret:       AwaitsHuman, // as a notice: the instances archive as they were told last
	ProblemAuthorityAwaits:  AwaitsHuman,
	ProblemPodMonitor:       AwaitsHuman,

	ProblemAuthorityEnds: IsTold, // CnmsqlAuthorityEnds
	ReasonNearlyFull:     IsTold, // CnmsqlVolumeNearlyFull
	ReasonFull:           IsTold, // CnmsqlPrimaryFull
	ReasonCloneFailed:    IsTold, // CnmsqlDoesNotEnd, CnmsqlDegraded
	RefusalLogin:         IsTold, // CnmsqlDegraded, CnmsqlNotDurable
	RefusalDamped:        IsTold, // CnmsqlNotWritable
	RefusalDeadline:      IsTold, // CnmsqlGroupHasNoQuorum: of a quorum that was forced in vain

	ReasonWithoutEffect:  EndsByItself, // it hinders nothing, and may be wished
	ReasonGivenUp:        EndsByItself,
	ReasonCloneStarted:   EndsByItself,
	ReasonRestartInPlace: EndsByItself,
	ReasonGivesData:      EndsByItself,
	ReasonReinit:         EndsByItself,
	ReasonAdopted:        EndsByItself,
	ReasonAcksChanged:    EndsByItself,
	ReasonStatusRestored: EndsByItself,
	ReasonQuorumForced:   EndsByItself,
	ReasonGroupAlone:     EndsByItself,

	ReasonInstanceRestarted: EndsByItself,

	ProblemAuthorityRestored: EndsByItself, // after some minutes
	ProblemAuthorityChanges:  EndsByItself,
}

// Attention returns who ends a notice of that name; "" is one that is of no notice, as the
// reason of an instance's state.
func (e Entry) Attention() Attention {
	if e.Kind == KindInstance {
		return ""
	}
	return notices[Reason(e.Name)]
}
