package core

import (
	"fmt"
	"time"

	"cnmsql.co/internal/gtid"
)

// MemberState is a member's state in its group, in MySQL's words.
type MemberState string

// States of a member. MemberUnknown is ours: nobody could be asked.
const (
	MemberOnline      MemberState = "ONLINE"
	MemberRecovering  MemberState = "RECOVERING"
	MemberOffline     MemberState = "OFFLINE"
	MemberError       MemberState = "ERROR"
	MemberUnreachable MemberState = "UNREACHABLE"
	MemberUnknown     MemberState = "UNKNOWN"
)

// MemberRole is a member's role in its group, in MySQL's words.
type MemberRole string

// Roles of a member.
const (
	MemberPrimary   MemberRole = "PRIMARY"
	MemberSecondary MemberRole = "SECONDARY"
)

// GroupView is what one server says of its group. A server that is in no group says
// that it is OFFLINE.
type GroupView struct {
	State MemberState `json:"state"`
	Role  MemberRole  `json:"role,omitempty"`
	// ViewID changes with every change of the membership.
	ViewID string `json:"viewID,omitempty"`
	// Members as this server sees them, itself included, by host.
	Members []ViewMember `json:"members,omitempty"`
	// Received is what was received from the group, whether or not it is applied.
	Received gtid.Set `json:"received,omitzero"`
}

// ViewMember is one line of a view.
type ViewMember struct {
	Host  string      `json:"host"`
	UUID  string      `json:"uuid"`
	State MemberState `json:"state"`
	Role  MemberRole  `json:"role,omitempty"`
	// Version of the member's server, as the group tells it.
	Version string `json:"version,omitempty"`
}

// HasQuorum: of the members in the view, more than half are reached by this one.
func (v *GroupView) HasQuorum() bool {
	reached := 0
	for _, m := range v.Members {
		if m.State != MemberUnreachable {
			reached++
		}
	}
	return 2*reached > len(v.Members)
}

// Group is the wish for a group, and what was decided before about it.
type Group struct {
	// WishedName is the user's name for the group, or one that was made for this
	// cluster and no other.
	WishedName string
	// ForceQuorum: a human's word to go on with those who are left.
	ForceQuorum bool
	// ExpelTimeout is how long the group waits for a member that it suspects.
	ExpelTimeout time.Duration
}

// GroupStatus is the group as was decided; see v1alpha1.GroupReplicationStatus.
type GroupStatus struct {
	Name         string
	Bootstrapped bool
	Primary      string
	HasQuorum    bool
	ViewID       string
	// ViewMax is the largest size of the group that was seen: a majority is
	// counted of it. OnlineMax is how many members were online at most.
	ViewMax, OnlineMax int
	// LeftOut are those whom a human had the group go on without: they have no say
	// until the group has taken them back.
	LeftOut []string
	Members []GroupMember
}

// GroupMember is an instance as the group sees it.
type GroupMember struct {
	Instance string
	State    MemberState
	Role     MemberRole
	// Address of its Pod.
	Address string
	// Reachable: its manager is heard.
	Reachable bool
}

// Diagnoses of a group.
const (
	// GroupElecting: the group has a quorum, and no primary yet.
	GroupElecting Diagnosis = "GroupElecting"
	// GroupQuorumLost: members say that they have lost the majority, or none of
	// those who can be asked is online.
	GroupQuorumLost Diagnosis = "GroupQuorumLost"
	// GroupUnknown: too few members can be asked to tell.
	GroupUnknown Diagnosis = "GroupUnknown"
)

// Steps of a group's operations.
const (
	// StepSetPrimary: the group was asked to make another member primary.
	StepSetPrimary Step = "SetPrimary"
	// StepForce: a survivor was told to go on with those who are left.
	StepForce Step = "Force"
	// StepReboot: one that holds everything was told to make the group anew.
	StepReboot Step = "Reboot"
)

// Reasons of group replication.
const (
	ReasonGroupBootstrap    Reason = "GroupBootstrap"
	ReasonGroupBootstrapped Reason = "GroupBootstrapped"
	ReasonFailoverObserved  Reason = "FailoverObserved"
	ReasonQuorumRestored    Reason = "QuorumRestored"
	ReasonQuorumForced      Reason = "QuorumRecoveryForced"
	ReasonMemberRejoined    Reason = "MemberOnline"
	ReasonEvenSize          Reason = "EvenGroupSize"
	ReasonGroupAlone        Reason = "OnlyMemberRestarted"
)

// Refusals of group replication.
const (
	RefusalQuorumLost       Reason = "QuorumLost"
	RefusalFenceQuorum      Reason = "FenceWouldLoseQuorum"
	RefusalScaleQuorum      Reason = "ScaleDownWouldLoseQuorum"
	RefusalQuorumPresent    Reason = "QuorumPresent"
	RefusalNoSafeSurvivor   Reason = "NoSafeSurvivor"
	RefusalMembersUnknown   Reason = "MembersUnknown"
	RefusalTargetNotOnline  Reason = "TargetNotOnline"
	RefusalGroupWithoutData Reason = "GroupDataMissing"
	RefusalSplitBrain       Reason = "SplitBrain"
)

// SetGroupPrimary asks the group, through one of its members, to make another
// member primary.
type SetGroupPrimary struct {
	Instance, Primary string
	// UUID of the new primary's server.
	UUID  string
	Epoch int64
}

// ForceMembers has a survivor go on with the named members alone.
type ForceMembers struct {
	Instance string
	// Members are those who are left, comma-separated, the survivor included.
	Members string
	Epoch   int64
}

// RebootGroup has an instance make the group anew from its data, when no member is
// left and this one holds all that any of them holds.
type RebootGroup struct {
	Instance string
	Epoch    int64
}

// ClearForceQuorum removes a human's word to force a quorum: it was carried out, or refused.
type ClearForceQuorum struct{}

func (SetGroupPrimary) effect()  {}
func (ForceMembers) effect()     {}
func (RebootGroup) effect()      {}
func (ClearForceQuorum) effect() {}

func (e SetGroupPrimary) String() string {
	return fmt.Sprintf("ask %s to make %s primary", e.Instance, e.Primary)
}
func (e ForceMembers) String() string {
	return fmt.Sprintf("have %s go on with %s", e.Instance, e.Members)
}
func (e RebootGroup) String() string    { return "make the group anew from " + e.Instance }
func (ClearForceQuorum) String() string { return "clear the word to force a quorum" }
