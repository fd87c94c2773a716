package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Membership is what a member needs to know of its group.
type Membership struct {
	Name string
	// Bootstrapped: the group was made; nobody makes it again.
	Bootstrapped bool
	// Addresses of the members: nobody else may speak with one.
	Addresses []string
	// Bootstrapper is the one instance that may make it.
	Bootstrapper string
}

// MemberFacts are what a member knows of itself, besides what any instance knows.
type MemberFacts struct {
	// Of is the group that this data was a member of when the operator knew that there
	// was one; "" for none.
	Of string
	// RebootEpoch is the epoch of the last order to make the group anew from this
	// data.
	RebootEpoch int64
	// TriedAt is when joining was last begun.
	TriedAt time.Time
	// Failed is why it did not succeed, "" if it did.
	Failed string
	// HandingOver: the group was asked for another primary, and has not said that it is
	// done.
	HandingOver bool
	// Admitted are the addresses that mysqld was told to admit.
	Admitted string
	// ProtocolOf is the version of the servers for which the group's protocol was
	// last looked at.
	ProtocolOf string
	// Settled is the role for which the sessions of another role were closed.
	Settled core.MemberRole
}

// Timings of members.
const (
	// joinRetry is the pause before a member tries to join again.
	joinRetry = 3 * time.Second
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
		letActivityGoOn,
		makeMemberData,
		startServer,
		awaitServer,
		clone,
		admitMembers,
		leaveOnWish,
		inGroup,
		join,
	}
}

// view is the group as mysqld sees it; OFFLINE when it is not known.
func (f *Facts) view() core.GroupView {
	if f.Server == nil || f.Server.Group == nil {
		return core.GroupView{State: core.MemberOffline}
	}
	return *f.Server.Group
}

// isIn: mysqld is a member, or on its way.
func isIn(v core.GroupView) bool { return v.State != core.MemberOffline }

// terminateMember: a primary waits a moment to be relieved; everybody leaves before
// mysqld ends, so that the group need not find out.
func terminateMember(f *Facts) (Decision, bool) {
	v := f.view()
	switch {
	case f.TerminatingSince.IsZero(), f.Activity == Stopping, f.Activity == Leaving:
		return pass()
	case f.Activity != NoActivity:
		return say(core.Stopped, "Terminating", "the Pod is being stopped", Abort{})
	case !f.Mysqld.Up:
		return say(core.Stopped, "Terminating", "the Pod is being stopped", Exit{})
	case !isIn(v) || !f.Mysqld.Answers:
		return say(core.Running, "Terminating", "the Pod is being stopped", StopServer{Why: "the Pod is being stopped"})
	case f.waitsForRelief(v):
		return say(core.Running, "Terminating", "the Pod is being stopped, when another member has become primary")
	}
	return say(core.Running, "Terminating", "leaves the group, for the Pod is being stopped", LeaveGroup{Why: "the Pod is being stopped"})
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
	relieved := v.Role != core.MemberPrimary && !f.Member.HandingOver && f.Cluster.CurrentPrimary != f.Me
	return v.State == core.MemberOnline && !relieved && online > 1 &&
		f.Now.Sub(f.TerminatingSince) < ReliefWait && !f.Cluster.Deleting
}

// fencedMember: a human took this instance out of service. It leaves the group, and
// mysqld runs on, read-only, to be looked at.
func fencedMember(f *Facts) (Decision, bool) {
	switch {
	case !f.listedFenced() || f.Activity != NoActivity || !f.Mysqld.Answers || f.Data != core.DataPopulated:
		return pass()
	case isIn(f.view()):
		return say(core.Running, "Fencing", "leaves the group, for this instance is fenced", LeaveGroup{Why: "the instance is fenced"})
	}
	return say(core.Fenced, "Fenced", "it is fenced: out of the group and read-only, its mysqld runs; kubectl cnmsql fence off brings it back")
}

// makeMemberData: only the instance that is to make the group makes data from
// nothing, and only while there never was a group.
func makeMemberData(f *Facts) (Decision, bool) {
	if f.Data == core.DataPopulated || f.Data == core.DataScratch {
		return pass()
	}
	if d, waits := problem(f); waits {
		return d, true
	}
	g := f.Cluster.Group
	switch {
	case g.Name == "" || g.Bootstrapper == "":
		return say(core.Empty, "", "waiting for the operator to choose who makes the group")
	case g.Bootstrapper == f.Me && !g.Bootstrapped && !f.Cluster.Established:
		return say(core.Initializing, "", "making the cluster's first data", Initialize{Bootstrap: true})
	}
	return say(core.Initializing, "", "making scratch data to clone over", Initialize{})
}

// admitMembers: only members may speak with a member. Their certificates do not tell,
// for mysqld asks those who connect for none.
func admitMembers(f *Facts) (Decision, bool) {
	wanted := strings.Join(f.Cluster.Group.Addresses, ",")
	if wanted == "" || wanted == f.Member.Admitted {
		return pass()
	}
	return say(core.Running, "", "", AdmitMembers{wanted})
}

// leaveOnWish: the operator has the member stay out, to be removed or made anew.
func leaveOnWish(f *Facts) (Decision, bool) {
	switch {
	case f.FrozenBelow <= f.Cluster.Epoch:
		return pass()
	case isIn(f.view()):
		return say(core.Running, "Leaving", "leaves the group", LeaveGroup{Why: "the operator asked for it"})
	}
	return say(core.Running, "Left", fmt.Sprintf("stays out of the group below epoch %d", f.FrozenBelow))
}

// inGroup: nothing is left to do for a member, but that sessions of its former role
// do not survive a change of it.
func inGroup(f *Facts) (Decision, bool) {
	v, g := f.view(), f.Cluster.Group
	switch {
	case v.State == core.MemberOnline && g.Bootstrapped && f.Member.Of != g.Name:
		return say(core.Running, "", "", RememberGroup{g.Name})
	case v.State == core.MemberOnline && v.Role != f.Member.Settled:
		return say(core.Running, "", "", SettleRole{v.Role})
	case v.State == core.MemberOnline && !v.HasQuorum():
		return say(core.Running, "NoQuorum", "has lost the majority of the group: transactions wait until it is back")
	case v.State == core.MemberOnline && v.Role == core.MemberPrimary && f.commonVersion(v) != f.Member.ProtocolOf && f.commonVersion(v) != "":
		return say(core.Running, "", "", RaiseProtocol{f.commonVersion(v)})
	case v.State == core.MemberOnline:
		return say(core.Running, "", "")
	case v.State == core.MemberRecovering:
		return say(core.Running, "Recovering", "receives from another member what it lacks")
	case v.State == core.MemberError:
		return say(core.Running, "MemberError", "was expelled from the group, or could not go on in it; leaves it, to join anew", LeaveGroup{Why: "the member is in ERROR"})
	}
	return pass()
}

// commonVersion is the version that all members run, when all there should be are
// online; "" otherwise. The group may speak the protocol of that version then, and of
// no later one before.
func (f *Facts) commonVersion(v core.GroupView) string {
	if len(v.Members) != f.Cluster.Instances {
		return ""
	}
	for _, m := range v.Members {
		if m.State != core.MemberOnline || m.Version != v.Members[0].Version {
			return ""
		}
	}
	return v.Members[0].Version
}

// join: mysqld is no member. The group is made by one instance, once; everybody else,
// and at any later time, joins the one there is.
func join(f *Facts) (Decision, bool) {
	g := f.Cluster.Group
	switch {
	case f.Member.RebootEpoch != 0 && f.Member.RebootEpoch == f.Cluster.Epoch && g.Bootstrapped:
		return say(core.Running, "Rebooting", "makes the group anew, as a human asked for", BootstrapGroup{Reboot: true})
	case !g.Bootstrapped && g.Bootstrapper == f.Me && f.Member.Of != "":
		return say(core.Running, "DataWithoutStatus", "this data was a member of the group "+f.Member.Of+", and the Cluster says that there never was a group: nothing is made; restore the Cluster's status, or start with an empty volume")
	case !g.Bootstrapped && g.Bootstrapper == f.Me:
		return say(core.Running, "Bootstrapping", "makes the group", BootstrapGroup{})
	case !g.Bootstrapped:
		return say(core.Running, "AwaitingGroup", "waits until the group is made")
	}
	return joinExisting(f)
}

func joinExisting(f *Facts) (Decision, bool) {
	primary := f.Cluster.CurrentPrimary
	if primary == "" || primary == f.Me {
		return say(core.Running, "AwaitingGroup", "waits until the group has elected a primary that can be asked for its position")
	}
	pos := f.memberPosition(primary)
	var ask []Action
	if !f.Asking {
		ask = []Action{AskPrimary{Instance: primary, Epoch: f.Cluster.Epoch}}
	}
	if pos == nil {
		message := "asks " + primary + " for its position before joining"
		if f.AskFailed != "" {
			message += ": " + f.AskFailed
		}
		return say(core.Running, "AskingPrimary", message, ask...)
	}
	if errant := pos.Mine.Subtract(pos.Executed); !errant.IsEmpty() {
		d, _ := say(core.Running, "Diverged", fmt.Sprintf("holds transactions that the group lacks: %s; it is kept out of the group and of every Service, and its data is kept", errant.Abbreviate(4)))
		d.Errant = errant
		if f.Now.Sub(pos.At) > positionRefresh {
			d.Actions = ask
		}
		return d, true
	}
	if slices.Contains(f.Cluster.Diverged, f.Me) {
		// What it says now has to be heard before it is believed to be healed.
		return say(core.Running, "AskingPrimary", "holds nothing any more that the group lacks", ask...)
	}
	if f.Now.Sub(f.Member.TriedAt) < joinRetry {
		return say(core.Running, "JoinFailed", "could not join the group, and tries again: "+cmp.Or(f.Member.Failed, "it was a member until a moment ago"))
	}
	return say(core.Running, "Joining", "joins the group", JoinGroup{})
}

// memberPosition is what the primary holds, if it is known well enough.
func (f *Facts) memberPosition(primary string) *Position {
	p := f.Primary
	if p == nil || p.Instance != primary || p.Epoch != f.Cluster.Epoch || f.Now.Sub(p.At) > positionLife || !p.Mine.Contains(f.Server.Executed) {
		return nil
	}
	return p
}
