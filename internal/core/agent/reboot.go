package agent

import "cnmsql.co/internal/core"

// An order to reboot the group is carried out once, and is forgotten then. It holds in one epoch, which may
// last for as long as the group is well.

// SeeView takes note of what mysqld says of its group. The order to reboot it is over for a member that is in
// it: one that is expelled later, in the same epoch, would make a second group.
func (m *MemberFacts) SeeView(v *core.GroupView) {
	if v != nil && isMember(v) {
		m.RebootEpoch = 0
	}
}

// isMember reports whether mysqld is in a group that there is.
func isMember(v *core.GroupView) bool {
	return v.State == core.MemberOnline || v.State == core.MemberRecovering
}

// RefusesReboot tells why an order to reboot the group is not obeyed; nil when it is. It may come late: while
// what it asks for is under way, or is done.
func (f *Facts) RefusesReboot() *core.Problem {
	switch {
	case !f.Server.HasView():
		return &core.Problem{Reason: core.OrderInGroup, Message: "mysqld of this instance cannot be asked"}
	case isMember(f.Server.Group):
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
	return tell(core.Running, core.MemberRebooting, "breaks off its search for the group, which it is to reboot",
		Abort{})
}

// endBootstrap takes back that mysqld makes a group, where that has failed before: until then, whoever has it
// join one would have it make a second.
func endBootstrap(f *Facts) (Decision, bool) {
	if !f.Member.Bootstraps {
		return pass()
	}
	return tell(core.Running, "", "mysqld is still set to make a group, which is taken back", EndBootstrap{})
}
