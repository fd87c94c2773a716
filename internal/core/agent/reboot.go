package agent

import "cnmsql.co/internal/core"

// An order to reboot the group is carried out once, and is forgotten then. It holds in one epoch, which may
// last for as long as the group is well.

// SeeView takes note of what mysqld says of its group. The order to reboot it is over for a member that is in
// it: one that is expelled later, in the same epoch, would make a second group.
func (m *MemberFacts) SeeView(v *core.GroupView) {
	if v != nil && v.IsMember() {
		m.RebootEpoch, m.Failed = 0, ""
	}
}

// TakeReboot takes an order to reboot the group. What failed before a new one was something else.
func (m *MemberFacts) TakeReboot(epoch int64) {
	if m.RebootEpoch != epoch {
		m.RebootEpoch, m.Failed = epoch, ""
	}
}

// RefusesReboot tells why an order to reboot the group is not obeyed; nil when it is. It may come late: while
// what it asks for is under way, or is done.
func (f *Facts) RefusesReboot() *core.Problem {
	switch {
	case !f.Server.HasView():
		return &core.Problem{Reason: core.OrderInGroup, Message: "mysqld of this instance cannot be asked"}
	case f.Server.Group.IsMember():
		return &core.Problem{Reason: core.OrderInGroup,
			Message: "this instance is " + string(f.Server.Group.State) + " in a group"}
	case f.Activity == Bootstrapping:
		return &core.Problem{Reason: core.OrderInGroup, Message: "this instance makes the group at this moment"}
	}
	return nil
}

// isToReboot reports whether this instance is to reboot the group.
func (f *Facts) isToReboot() bool {
	return f.Member.RebootEpoch != 0 && f.Member.RebootEpoch == f.Cluster.Epoch && f.Cluster.Group.Bootstrapped
}

// breakOffJoin ends the search for a group of an instance that was told to reboot the group. mysqld
// looks for its group for a minute, and cannot be told to stop; and there is no group.
func breakOffJoin(f *Facts) (Decision, bool) {
	if f.Activity != Joining || !f.isToReboot() || isIn(f.view()) {
		return pass()
	}
	return tell(core.Running, core.MemberRebooting, "stops looking for the group, because it has to reboot the group",
		Abort{})
}

// makeGroup makes the group, or makes it again. After a failure there is a pause, as before a join: each
// attempt has the Cluster read anew.
func (f *Facts) makeGroup(a BootstrapGroup) (Decision, bool) {
	reason, doing := f.makesGroup(a.Reboot)
	if f.Member.Failed != "" && f.pausesToJoin() {
		return tell(core.Running, reason, doing)
	}
	return tell(core.Running, reason, doing, a)
}

// makesGroup is what making the group is told as. Why it has failed is told until it has succeeded.
func (f *Facts) makesGroup(again bool) (core.Reason, string) {
	failed := f.Member.Failed
	switch {
	case failed != "" && again:
		return core.MemberJoinFailed, "could not reboot the group, and tries again: " + failed
	case failed != "":
		return core.MemberJoinFailed, "could not make the group, and tries again: " + failed
	case again:
		return core.MemberRebooting, "reboots the group, as it was told to"
	}
	return core.MemberBootstrapping, "makes the group"
}

// pausesToJoin reports whether it was tried a moment ago to join the group, or to make it, or it was left.
func (f *Facts) pausesToJoin() bool { return f.Now.Sub(f.Member.TriedAt) < joinRetry }

// endBootstrap takes back that mysqld makes a group, where that has failed before: until then, whoever has it
// join one would have it make a second.
func endBootstrap(f *Facts) (Decision, bool) {
	if !f.Member.Bootstraps {
		return pass()
	}
	return tell(core.Running, "", "mysqld is still set to make a group, which is taken back", EndBootstrap{})
}
