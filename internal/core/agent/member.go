package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Membership is what a member needs to know of its group.
type Membership struct {
	Name string
	// Bootstrapped tells whether the group was made; then nobody makes it again.
	Bootstrapped bool
	// GoneOn tells whether the group has its quorum, and this instance, of which nobody knows
	// anything, is not in it.
	GoneOn bool
	// HasQuorum tells whether a majority was seen to agree on the group, in the view ViewID. Online are the
	// members that it saw online and that stay, and Outside the instances that it did not list, and that say
	// themselves that they are in no group.
	HasQuorum       bool
	ViewID          string
	Online, Outside []string
	// Addresses of the members: nobody else may speak with one. Whoever is excluded is not
	// among them.
	Addresses []string
	// Bootstrapper is the one instance that may make it.
	Bootstrapper string
	// Excluded tells whether the group went on without this instance, and it was not admitted
	// since. Held is what those held who went on.
	Excluded bool
	Held     gtid.Set
	// ExcludedOthers are the others of whom the same is true.
	ExcludedOthers []string
	// Recoveries of the group. Undecided: nobody knows yet whether the last has come about.
	Recoveries []core.GroupRecovery
	Undecided  bool
	// Rejoins tells whether mysqld tries by itself to join again when it was expelled, unless it is kept from it.
	Rejoins bool
}

// MemberFacts are what a member knows of itself, besides what any instance knows.
type MemberFacts struct {
	// Of is the group that this data was a member of when the operator knew that there
	// was one, and the last of its recoveries that the data went through.
	Of core.Lineage
	// ViewEpoch is the highest epoch that the Cluster's status was seen to have.
	ViewEpoch int64
	// RebootEpoch is the epoch of the last order to reboot the group from this
	// data.
	RebootEpoch int64
	// Bootstraps tells whether mysqld may still be set to make a group when it is told to join one.
	Bootstraps bool
	// TriedAt is when joining was last begun.
	TriedAt time.Time
	// Failed is why it did not succeed the last time, "" if it did.
	Failed string
	// HandingTo is the UUID of the server that the group was asked to make primary; "" when it
	// was asked for none, or has answered.
	HandingTo string
	// Admitted are the addresses that mysqld was told to admit, and AdmittedEpoch is the
	// epoch of an order that said so; 0 where it was the Cluster.
	Admitted      string
	AdmittedEpoch int64
	// RejoinHeld tells whether mysqld is kept from joining again by itself.
	RejoinHeld bool
	// WentOn tells whether this member saw its group go on with a minority of those who had been in it, without an
	// order to it, and the volume does not tell yet.
	WentOn bool
	// ExpelHeld tells whether the group is kept from expelling anybody on this member's word.
	ExpelHeld bool
	// QuorateSince is since when this member has had a majority in its view; zero while it has
	// not, or nobody knows.
	QuorateSince time.Time
	// ErrorSince is since when this member is in ERROR; zero while it is not.
	ErrorSince time.Time
	// ClosedSince is since when it IsClosed; zero while it is not.
	ClosedSince time.Time
	// ProtocolOf is the version of the servers for which the group's protocol was
	// last looked at.
	ProtocolOf string
	// Forgot is the last view of which the group forgot who was in it before.
	Forgot string
	// Settled is the role for which the sessions of another role were closed.
	Settled core.MemberRole
	// Last is the group as mysqld told it last, since it was started; nil before it has.
	Last *core.GroupView
}

// Timings of members.
const (
	// joinRetry is the pause before a member tries to join again.
	joinRetry = 3 * time.Second
	// groupRefresh is when a primary that was in no group, or lacked something, is asked
	// again, and lackingLimit how long it may lack what a member holds: it commits what the
	// group has received as soon as its volume lets it.
	groupRefresh = time.Second
	lackingLimit = 4 * time.Second
	// returnWait is how long after a majority has come back those who are not back yet are
	// waited for, and staleWait until nothing is under way any more of the time without it.
	returnWait = 5 * time.Second
	staleWait  = 15 * time.Second
	// ReliefWait is how long a primary that is being stopped waits to be
	// relieved before it leaves, and has the group elect another.
	ReliefWait = 5 * time.Second
)

// memberRules are those of an instance that is a member of a group: who is primary,
// and who may write, is the group's to decide.
func memberRules() []rule {
	return []rule{
		mayNotTouch,
		terminateMember,
		fencedMember,
		breakOffJoin,
		breakOffStuck,
		letActivityGoOn,
		makeMemberData,
		startServer,
		endHung,
		endHungPrimary,
		restoreLogin,
		awaitServer,
		clone,
		endBootstrap,
		admitMembers,
		leaveOnWish,
		closeSecondary,
		openPrimary,
		inGroup,
		join,
	}
}

// view is the group as mysqld sees it; OFFLINE when it is not known.
func (f *Facts) view() core.GroupView {
	return f.Server.View()
}

// isIn reports whether mysqld is a member, or on its way: in any state but OFFLINE.
func isIn(v core.GroupView) bool { return v.State != core.MemberOffline }

// terminateMember has the member leave its group and stops mysqld when the Pod is being stopped.
// A primary waits a moment to be relieved. Every member leaves before mysqld ends, so that the
// group need not find out.
func terminateMember(f *Facts) (Decision, bool) {
	v := f.view()
	switch {
	case f.TerminatingSince.IsZero(), f.Activity == Stopping, f.Activity == Leaving:
		return pass()
	case f.Activity != NoActivity:
		return tell(core.Stopped, core.InstanceTerminating, "the Pod is being stopped", Abort{})
	case !f.Mysqld.Up:
		return leave(f)
	case !isIn(v) || !f.Mysqld.Answers:
		return tell(core.Running, core.InstanceTerminating, "the Pod is being stopped",
			StopServer{Why: "the Pod is being stopped"})
	case f.waitsForRelief(v):
		return tell(core.Running, core.InstanceTerminating,
			"the Pod is being stopped, when another member has become primary")
	}
	return tell(core.Running, core.InstanceTerminating, "leaves the group, because its Pod is being stopped",
		LeaveGroup{Why: "the Pod is being stopped"})
}

func (f *Facts) waitsForRelief(v core.GroupView) bool {
	online := 0
	for _, m := range v.Members {
		if m.State == core.MemberOnline {
			online++
		}
	}
	// The role moves before the election is over: whoever leaves meanwhile breaks it off,
	// and the group needs seconds to find its primary.
	relieved := v.Role != core.MemberPrimary && f.Member.HandingTo == "" && f.Cluster.CurrentPrimary != f.Me
	return v.State == core.MemberOnline && !relieved && online > 1 &&
		f.Now.Sub(f.TerminatingSince) < ReliefWait && !f.Cluster.Deleting
}

// fencedMember has the member leave its group when a human took this instance out of service. Its
// mysqld runs on, read-only, to be looked at.
func fencedMember(f *Facts) (Decision, bool) {
	switch {
	case !f.listedFenced() || f.Activity != NoActivity || !f.Mysqld.Answers || f.Data != core.DataPopulated:
		return pass()
	case isIn(f.view()):
		return tell(core.Running, core.InstanceFencing, "leaves the group, because this instance is fenced",
			LeaveGroup{Why: "the instance is fenced"})
	}
	d, _ := tell(core.Fenced, core.InstanceIsFenced, "it is fenced: out of the group and read-only, its mysqld runs; "+
		"kubectl cnmsql fence off brings it back")
	return f.compared(d), true
}

// makeMemberData fills an empty volume.
func makeMemberData(f *Facts) (Decision, bool) { return fillVolume(f, originOfMemberData) }

// originOfMemberData returns where a member without data gets its data from, or why it waits. Only
// the instance that is to make the group makes first data, and only while there never was a group.
func originOfMemberData(f *Facts) (from core.DataOrigin, reason core.Reason, why string) {
	g := f.Cluster.Group
	switch {
	case g.Name == "" || g.Bootstrapper == "" && !g.Bootstrapped:
		return core.OriginNone, "", "waiting for the operator to choose who makes the group"
	case g.Bootstrapper == f.Me && !g.Bootstrapped && !f.Cluster.Established:
		return f.Cluster.FirstData, "", ""
	}
	return core.OriginCloned, "", ""
}

// admitMembers has mysqld admit the addresses of the members and no others, for only members may
// speak with a member. Their certificates do not tell, for mysqld asks those who connect for none.
func admitMembers(f *Facts) (Decision, bool) {
	wanted := strings.Join(f.Cluster.Group.Addresses, ",")
	if wanted == "" || wanted == f.Member.Admitted || f.Cluster.Epoch < f.Member.AdmittedEpoch {
		return pass()
	}
	return tell(core.Running, "", "", AdmitMembers{wanted})
}

// leaveOnWish has the member leave the group and stay out when the operator asked for it, to
// remove or recreate it. The epoch in which it might come back stays begun where the status was set
// back: by that alone no member leaves.
func leaveOnWish(f *Facts) (Decision, bool) {
	below := f.NoReceivingBelow
	if below <= max(f.Cluster.Epoch, f.Member.ViewEpoch) {
		return pass()
	} else if isIn(f.view()) {
		return tell(core.Running, core.MemberLeaving, "leaves the group", LeaveGroup{Why: "the operator asked for it"})
	}
	d, _ := tell(core.Running, core.MemberLeft, fmt.Sprintf("stays out of the group below epoch %d", below))
	return f.compared(d), true
}

// compared has one that is kept out of the group say what it holds that the group lacks: it
// may be about to be removed.
func (f *Facts) compared(d Decision) Decision {
	if primary := f.Cluster.CurrentPrimary; primary != "" && primary != f.Me &&
		!f.Cluster.Group.Excluded && f.Server != nil {
		pos := f.memberPosition(primary)
		d.Errant, _ = pos.errant()
		d.Actions = f.askMember(primary, pos, positionRefresh)
	}
	return d
}

// inGroup decides for an instance that is in its group. Nothing is left to do for a member but to
// note what changed, and sessions of its former role do not survive a change of it.
func inGroup(f *Facts) (Decision, bool) {
	v, g := f.view(), f.Cluster.Group
	switch {
	case v.State == core.MemberOnline && g.Bootstrapped && f.Member.Of != f.lineage(v):
		return tell(core.Running, "", "", RememberGroup{f.lineage(v)})
	case v.State == core.MemberOnline && f.Unnoted: // the manager before was of a release that noted nothing
		return tell(core.Running, "", "", NoteReceiving{})
	case v.State == core.MemberOnline && v.HasQuorum() && f.MayLack: // the group has sent it what it lacked
		return tell(core.Running, "", "", BecomeWhole{})
	case v.State == core.MemberOnline && v.Role != f.Member.Settled:
		return tell(core.Running, "", "", SettleRole{v.Role})
	case v.State == core.MemberOnline && f.holdsRejoin(v) != f.Member.RejoinHeld:
		return tell(core.Running, "", "", HoldRejoin{!f.Member.RejoinHeld})
	case v.State == core.MemberOnline && f.holdsExpulsion(v) != f.Member.ExpelHeld:
		return tell(core.Running, "", "", HoldExpulsion{!f.Member.ExpelHeld})
	case v.IsSurvivor():
		return tell(core.Running, core.MemberNoQuorum,
			"has lost the majority of the group: transactions wait until it is back")
	case v.State == core.MemberOnline && v.Role == core.MemberPrimary && f.commonVersion(v) != f.Member.ProtocolOf &&
		f.commonVersion(v) != "":
		return tell(core.Running, "", "", RaiseProtocol{f.commonVersion(v)})
	case v.Role == core.MemberPrimary && allOnline(v) && v.ViewID != f.Member.Forgot && f.Member.HandingTo == "":
		return tell(core.Running, "", "", ForgetFormer{v.ViewID})
	case v.State == core.MemberOnline:
		return f.open()
	case v.State == core.MemberRecovering:
		return tell(core.Running, core.MemberIsRecovering, "receives from another member what it lacks")
	case v.State == core.MemberError:
		return inError(f)
	}
	return pass()
}

// holdsExpulsion reports whether the group is to expel nobody on this member's word: without a
// quorum, and for some time after. Whoever has lost the majority has those expelled whom it does
// not reach as soon as the majority is back, a moment before they are back themselves; and so do
// the others. See docs/design/2026-11-22-returning-majority.md.
func (f *Facts) holdsExpulsion(v core.GroupView) bool {
	wait := staleWait
	if slices.ContainsFunc(v.Members, func(m core.ViewMember) bool { return m.State == core.MemberUnreachable }) {
		wait = returnWait
	}
	return !v.HasQuorum() || f.Member.ExpelHeld && f.Now.Sub(f.Member.QuorateSince) < wait
}

func allOnline(v core.GroupView) bool {
	return !slices.ContainsFunc(v.Members, func(m core.ViewMember) bool { return m.State != core.MemberOnline })
}

// commonVersion is the version that all members run, when all there should be are
// online; "" otherwise. The group may speak the protocol of that version then, and of
// no later one before.
func (f *Facts) commonVersion(v core.GroupView) string {
	if len(v.Members) != f.Cluster.Instances || !allOnline(v) {
		return ""
	}
	for _, m := range v.Members {
		if m.Version != v.Members[0].Version {
			return ""
		}
	}
	return v.Members[0].Version
}

// join has mysqld, which is no member, become one. The group is made by one instance, once. Every
// other instance, and at any later time each, joins the group there is.
func join(f *Facts) (Decision, bool) {
	g := f.Cluster.Group
	switch {
	case f.isToReboot():
		return f.makeGroup(BootstrapGroup{Reboot: true})
	case !g.Bootstrapped && g.Bootstrapper == f.Me && f.Member.Of.Group != "":
		return tell(core.Running, core.RefusalDataWithoutStatus, "this data belonged to a member of the group "+
			f.Member.Of.Group+", but the Cluster's status says that there never was a group: the instance makes "+
			"none; restore the Cluster's status, or start with an empty volume")
	case !g.Bootstrapped && g.Bootstrapper == f.Me:
		return f.makeGroup(BootstrapGroup{})
	case !g.Bootstrapped:
		return tell(core.Running, core.MemberAwaitingGroup, "waits until the group is made")
	}
	return joinExisting(f)
}

func joinExisting(f *Facts) (Decision, bool) {
	if f.Cluster.Group.Excluded {
		return excluded(f)
	}
	if seen := f.Member.ViewEpoch; seen > f.Cluster.Epoch { // whom the group went on without since is not in it
		return tell(core.Running, core.MemberAwaitingGroup, fmt.Sprintf("waits until the operator has repaired the "+
			"Cluster's status: it was set back to epoch %d, after epoch %d was seen", f.Cluster.Epoch, seen))
	}
	primary := f.Cluster.CurrentPrimary
	if primary == "" || primary == f.Me {
		return tell(core.Running, core.MemberAwaitingGroup, "waits until the group has elected a primary that can be "+
			"asked for its position")
	}
	pos := f.memberPosition(primary)
	if pos == nil {
		message := "asks " + primary + " for its position before joining"
		switch p := f.Primary; {
		case f.AskFailed != "":
			message += ": " + f.AskFailed
		case p != nil && p.Instance == primary && p.SeenEpoch > f.Cluster.Epoch:
			message += fmt.Sprintf(": it has seen epoch %d, and here only %d is known", p.SeenEpoch, f.Cluster.Epoch)
		}
		return tell(core.Running, core.InstanceAskingPrimary, message, f.askMember(primary, nil, 0)...)
	}
	if why := f.hasNoPlace(pos); why != "" {
		d, _ := tell(core.Running, core.MemberAwaitingGroup, why)
		d.Actions = f.askMember(primary, pos, groupRefresh)
		return d, true
	}
	switch errant, lacks := pos.errant(); {
	case lacks && errant.IsEmpty():
		return tell(core.Running, core.InstanceAskingPrimary, "holds transactions that "+primary+" does not, and asks "+
			"again: it may get them in a moment", f.askMember(primary, pos, groupRefresh)...)
	case lacks:
		d, _ := tell(core.Running, core.InstanceIsDiverged, fmt.Sprintf("holds transactions that the group lacks: %s; "+
			"it is kept out of the group and of every Service, and its data is kept", errant.Abbreviate(4)))
		d.Errant, d.Actions = errant, f.askMember(primary, pos, positionRefresh)
		return d, true
	}
	if slices.Contains(f.Cluster.Diverged, f.Me) {
		// What it says now has to be heard before it is believed to be healed.
		return tell(core.Running, core.InstanceAskingPrimary, "holds nothing any more that the group lacks",
			f.askMember(primary, pos, groupRefresh)...)
	}
	if f.Server.DataRemoved { // the group holds all that it has executed: nothing is lost with what is left
		return tell(core.Running, core.MemberDataRemoved, dataRemoved, ForgetData{})
	}
	if f.pausesToJoin() {
		return tell(core.Running, core.MemberJoinFailed, "could not join the group, and tries again: "+
			cmp.Or(f.Member.Failed, "it was a member until a moment ago"))
	}
	if f.Member.ExpelHeld { // of a membership that has ended
		return tell(core.Running, core.MemberJoining, "", HoldExpulsion{false})
	}
	return tell(core.Running, core.MemberJoining, "joins the group", JoinGroup{})
}

// excluded keeps an instance out when a group went on without it. The primary's position tells
// nothing of what it got beside those who went on: the group has given the same numbers to others.
// The operator judges, for it knows whether it came to that.
func excluded(f *Facts) (Decision, bool) {
	errant := f.Server.Holds().Subtract(f.Cluster.Group.Held)
	if errant.IsEmpty() || !slices.Contains(f.Cluster.Diverged, f.Me) {
		return tell(core.Running, core.MemberLeftOut, "was excluded from the group; waits until the operator has "+
			"compared what it holds")
	}
	d, _ := tell(core.Running, core.InstanceIsDiverged, fmt.Sprintf("was excluded from the group, and holds "+
		"transactions that the group may lack: %s; it is kept out of the group and of every Service, and its data is "+
		"kept",
		errant.Abbreviate(4)))
	d.Errant = errant
	return d, true
}

// askMember asks the primary for its position, if the one that is known is old.
func (f *Facts) askMember(primary string, known *Position, old time.Duration) []Action {
	if f.Asking || known != nil && f.Now.Sub(known.At) < old {
		return nil
	}
	if p := f.Primary; p != nil && p.SeenEpoch > f.Cluster.Epoch && f.Now.Sub(p.At) < groupRefresh {
		return nil // the Cluster has to be heard of first
	}
	return []Action{AskPrimary{Instance: primary, Epoch: f.Cluster.Epoch}}
}

// errant is what the primary lacks for good, as far as one can tell, of what this instance
// holds; lacks is whether it lacks anything at this moment.
func (p *Position) errant() (errant gtid.Set, lacks bool) {
	if p == nil || !p.InGroup || p.Executed.Contains(p.Mine) {
		return gtid.Set{}, false
	}
	if p.LackingSince.IsZero() || p.At.Sub(p.LackingSince) < lackingLimit {
		return gtid.Set{}, true
	}
	return p.Mine.Subtract(p.Executed), true
}

// memberPosition is what the primary holds, if it is known well enough.
func (f *Facts) memberPosition(primary string) *Position {
	p := f.Primary
	if p == nil || p.Instance != primary || p.Epoch != f.Cluster.Epoch || f.Now.Sub(p.At) > positionLife ||
		!p.Mine.Contains(f.Server.Executed) {
		return nil
	}
	if p.SeenEpoch > f.Cluster.Epoch { // what is known of the Cluster here is old: this one may be excluded by now
		return nil
	}
	return p
}
