package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// LagSeconds is how old the oldest transaction of another member is that is being
	// applied; 0 when none is. By the clocks of both.
	LagSeconds float64 `json:"lagSeconds,omitempty"`
	// Certificates is how those with which it joined compare with those that it has been given since.
	Certificates MemberCertificates `json:"certificates,omitempty"`
}

// MemberCertificates is how the certificates that a member joined its group with, and shows in it until
// it joins again, compare with those in its files.
type MemberCertificates string

// How they compare. The first also says that it is not known.
const (
	CertificatesInTime MemberCertificates = ""
	// CertificatesEnding says that they end within 30 days, and their successors later.
	CertificatesEnding MemberCertificates = "Ending"
	// CertificatesFormer says that another authority signs or is trusted, and that a member which goes by
	// these and one that goes by the others admit each other.
	CertificatesFormer MemberCertificates = "Former"
	// CertificatesSevered says that they do not.
	CertificatesSevered MemberCertificates = "Severed"
)

// ViewMember is one line of a view.
type ViewMember struct {
	Host  string      `json:"host"`
	UUID  string      `json:"uuid"`
	State MemberState `json:"state"`
	Role  MemberRole  `json:"role,omitempty"`
	// Version of the member's server, as the group tells it.
	Version string `json:"version,omitempty"`
}

// IsLaterView reports whether the view a is of the same group as b, and came after it. A view is
// named by the group's beginning and by its number since: "17123:5". Views of groups that began at
// different times are not compared.
func IsLaterView(a, b string) bool {
	began, n, isView := strings.Cut(a, ":")
	other, m, isOther := strings.Cut(b, ":")
	later, err := strconv.ParseUint(n, 10, 64)
	earlier, err2 := strconv.ParseUint(m, 10, 64)
	return isView && isOther && began == other && err == nil && err2 == nil && later > earlier
}

// HasQuorum reports whether more than half of the members in the view are reached by this one.
func (v *GroupView) HasQuorum() bool {
	reached := 0
	for _, m := range v.Members {
		if m.State != MemberUnreachable {
			reached++
		}
	}
	return 2*reached > len(v.Members)
}

// IsMember reports whether the server is in a group that there is, online or on its way to that.
func (v *GroupView) IsMember() bool { return v.State == MemberOnline || v.State == MemberRecovering }

// IsQuorate reports whether the server is an online member of a group that has its
// quorum, as it says itself.
func (v *GroupView) IsQuorate() bool { return v.State == MemberOnline && v.HasQuorum() }

// IsSurvivor reports whether the server is an online member of a group that has lost its
// quorum, by its own word.
func (v *GroupView) IsSurvivor() bool { return v.State == MemberOnline && !v.HasQuorum() }

// Group is the wish for a group, and what was decided before about it.
type Group struct {
	// WishedName is the user's name for the group, or one that was made for this
	// cluster and no other.
	WishedName string
	// NotTaken is the user's name for it where the Cluster is restored, and takes none of his.
	NotTaken string
	// ForceQuorum is a human's word to go on with those who are left. It was given in the view
	// ForceView of the group, and is not carried out in another; "" is any view.
	ForceQuorum bool
	ForceView   string
	// RecoverOutage tells whether the operator reboots the group without a human's word when all
	// members were lost, and all are back.
	RecoverOutage bool
	// ExpelTimeout is how long the group waits for a member that it suspects.
	ExpelTimeout time.Duration
	// WithoutEffect are fields of the spec that are set, and say nothing in a group.
	WithoutEffect []string
}

// GroupStatus is the group as was decided; see v1alpha1.GroupReplicationStatus.
type GroupStatus struct {
	Name string
	// Bootstrapper is who may make the group, and nobody else. It is chosen when no instance holds data.
	Bootstrapper string
	Bootstrapped bool
	Primary      string
	HasQuorum    bool
	ViewID       string
	// ViewMax is the largest size of the group that was seen: a majority is
	// counted of it. OnlineMax is how many members were online at most.
	ViewMax, OnlineMax int
	// LeftOut are those whom a recovery had the group go on without: they have no say
	// until the group has taken them back.
	LeftOut []LeftOut
	// Recoveries are the last of them, the oldest first.
	Recoveries []GroupRecovery
	// New are instances that the operator made and had given no data yet: they were never members.
	// Whoever is to have data is taken off before that is ordered.
	New []string
	// OutageTried is who was told without a human's word to reboot the group; "" again
	// once it has its quorum.
	OutageTried string
	// Recorded is what the instances had executed when the status was last written, as far
	// as it was short enough to be written. It is read and never decided.
	Recorded gtid.Set
	Members  []GroupMember
}

// GroupRecovery is when a group went on without some of its members.
type GroupRecovery struct {
	// Epoch in which it did.
	Epoch int64 `json:"epoch"`
	// Held is what those held who went on, empty where nobody knows that. Transactions beyond it have
	// numbers that may have stood for others before.
	Held gtid.Set `json:"held"`
	// Pending tells whether the group was not seen since it was ordered, and had nobody left out
	// before: if it is seen as it was, the recovery came to nothing, and is forgotten.
	Pending bool `json:"pending,omitempty"`
}

// WasMade reports whether the group was made; false where there is none.
func (g *GroupStatus) WasMade() bool { return g != nil && g.Bootstrapped }

// IsUndecided reports whether a recovery was ordered, and the group was not seen since.
// Nobody knows whether it went on as it was told to, or goes on as it was: which
// transactions are the Cluster's.
func (g *GroupStatus) IsUndecided() bool { return g != nil && g.ViewID == "" && len(g.Recoveries) > 0 }

// maxRecoveries are remembered.
const maxRecoveries = 8

// NoteForgotten remembers that the group may have gone on without some of its members until an epoch, and that
// nobody knows what those held who did: the status that told it is lost, or of the past.
func (g *GroupStatus) NoteForgotten(until int64) { g.NoteRecovery(GroupRecovery{Epoch: until}) }

// NoteRecovery remembers one. Of too many the two oldest become one that says less.
func (g *GroupStatus) NoteRecovery(r GroupRecovery) {
	g.Recoveries = append(slices.Clone(g.Recoveries), r)
	if n := len(g.Recoveries); n > maxRecoveries {
		g.Recoveries[1].Held = g.Recoveries[1].Held.Intersect(g.Recoveries[0].Held)
		g.Recoveries = g.Recoveries[1:]
	}
}

// SettleRecovery notes that the group was seen. A recovery that is void is forgotten.
func (g *GroupStatus) SettleRecovery(void bool) {
	n := len(g.Recoveries)
	switch {
	case n == 0:
	case void:
		g.Recoveries = slices.Clone(g.Recoveries[:n-1])
	case g.Recoveries[n-1].Pending:
		g.Recoveries = slices.Clone(g.Recoveries)
		g.Recoveries[n-1].Pending = false
	}
}

// IsPending reports whether the last recovery is pending: the group was not seen since it was
// ordered, and had nobody left out before.
func (g *GroupStatus) IsPending() bool {
	return g.IsUndecided() && g.Recoveries[len(g.Recoveries)-1].Pending
}

// LeftOut is an instance that the group went on without when it was recovered. It may have
// received transactions that the others had not, and these gave their numbers to other
// transactions afterwards: what it holds of later ones cannot be told by its position.
type LeftOut struct {
	Instance string
	// Held is what those who went on held at that moment. What the instance holds of it
	// is the same as theirs.
	Held gtid.Set
	// Together is what any of those held who went on, Held included. Who holds more has
	// received it since.
	Together gtid.Set
	// Admitted tells whether it was heard since, in no group, and holds nothing beyond Held, or has
	// no data any more. Then it may join again.
	Admitted bool
}

// Excess is what a server holds that those did not who went on without it; nothing once
// it was admitted.
func (l LeftOut) Excess(s *Server) gtid.Set {
	if l.Admitted || s == nil {
		return gtid.Set{}
	}
	return s.Holds().Subtract(l.Held)
}

// LeftOutOf finds an instance among those that the group goes on without.
func (g *GroupStatus) LeftOutOf(instance string) (LeftOut, bool) {
	for _, l := range g.LeftOut {
		if l.Instance == instance {
			return l, true
		}
	}
	return LeftOut{}, false
}

// WentOnWithout tells whether a recovery had the group go on without the instance, and the
// group has not taken it back.
func (g *GroupStatus) WentOnWithout(instance string) bool {
	_, is := g.LeftOutOf(instance)
	return is
}

// Excludes tells whether the instance may not join the group: it was left out, and was not
// found since to hold nothing else than the group.
func (g *GroupStatus) Excludes(instance string) bool {
	l, is := g.LeftOutOf(instance)
	return is && !l.Admitted
}

// IsNew tells whether the instance was never given data, so that it never was a member, and holds
// nothing of the group. A status of an earlier operator names nobody; then nobody is known to be new.
func (g *GroupStatus) IsNew(instance string) bool { return slices.Contains(g.New, instance) }

// Voters are those of the instances who count where a majority is counted: they may hold data of the group, and it
// did not go on without them.
func (g *GroupStatus) Voters(instances []string) []string {
	return slices.DeleteFunc(slices.Clone(instances), func(name string) bool {
		return g.IsNew(name) || g.WentOnWithout(name)
	})
}

// Size is of how many members a majority is counted in a Cluster of these instances.
func (g *GroupStatus) Size(instances []string) int { return max(len(g.Voters(instances)), g.ViewMax) }

// GroupMember is an instance as the group sees it.
type GroupMember struct {
	Instance string
	State    MemberState
	Role     MemberRole
	// Address of its Pod.
	Address string
	// Reachable tells whether its manager is heard.
	Reachable bool
	// Leaving tells whether it is on its way out, or is about to be told to leave: nobody counts on it.
	Leaving bool
}

// Steps of a group's operations.
const (
	// StepSetPrimary has asked the group to make another member primary.
	StepSetPrimary Step = "SetPrimary"
	// StepForce has told a survivor to go on with those who are left.
	StepForce Step = "Force"
	// StepReboot has told one that holds everything to reboot the group.
	StepReboot Step = "Reboot"
)

// Reasons of group replication.
const (
	ReasonGroupBootstrap    Reason = "GroupBootstrap"
	ReasonGroupBootstrapped Reason = "GroupBootstrapped"
	ReasonFailoverObserved  Reason = "FailoverObserved"
	ReasonQuorumRestored    Reason = "QuorumRestored"
	ReasonQuorumForced      Reason = "QuorumRecoveryForced"
	ReasonRecoveryVoid      Reason = "QuorumRecoveryVoid"
	ReasonTotalOutage       Reason = "TotalOutageRecovery"
	ReasonEvenSize          Reason = "EvenGroupSize"
	ReasonGroupAlone        Reason = "OnlyMemberRestarted"
	ReasonWithoutEffect     Reason = "FieldsWithoutEffect"
	ReasonMembersToRejoin   Reason = "MembersToRejoin"
	ReasonMembersSevered    Reason = "MembersSevered"
)

// Refusals of group replication.
const (
	RefusalQuorumLost       Reason = "QuorumLost"
	RefusalGroupUnknown     Reason = "GroupUnknown"
	RefusalFenceQuorum      Reason = "FenceWouldLoseQuorum"
	RefusalScaleQuorum      Reason = "ScaleDownWouldLoseQuorum"
	RefusalReinitQuorum     Reason = "ReinitWouldLoseQuorum"
	RefusalQuorumPresent    Reason = "QuorumPresent"
	RefusalNoSafeSurvivor   Reason = "NoSafeSurvivor"
	RefusalMembersUnknown   Reason = "MembersUnknown"
	RefusalTargetNotOnline  Reason = "TargetNotOnline"
	RefusalTargetNewer      Reason = "TargetNewer"
	RefusalGroupWithoutData Reason = "GroupDataMissing"
	RefusalSplitBrain       Reason = "SplitBrain"
	RefusalSurvivorFenced   Reason = "SurvivorFenced"
	RefusalViewChanged      Reason = "ViewChanged"
)

// RecoveryRefusals are those of the recovery of a quorum.
func RecoveryRefusals() []Reason {
	return []Reason{RefusalQuorumPresent, RefusalSplitBrain, RefusalNoSafeSurvivor, RefusalMembersUnknown,
		RefusalSurvivorFenced, RefusalViewChanged}
}

// SetGroupPrimary asks the group, through one of its members, to make another
// member primary.
type SetGroupPrimary struct {
	Instance, Primary string
	// UUID of the new primary's server.
	UUID string
	// Within is how long transactions that are in progress may take; then their sessions are
	// closed. Zero waits for them.
	Within time.Duration
	Epoch  int64
}

// ForceMembers has a survivor go on with the named members alone, out of the view that it
// was seen in, and no other.
type ForceMembers struct {
	Instance string
	// Members are those who are left, comma-separated, the survivor included.
	Members string
	View    string
	Epoch   int64
}

// RebootGroup has an instance reboot the group from its data, when no member is
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
	return fmt.Sprintf("have %s force the quorum with %s", e.Instance, e.Members)
}
func (e RebootGroup) String() string    { return "reboot the group from " + e.Instance }
func (ClearForceQuorum) String() string { return "remove the request to force the quorum" }
