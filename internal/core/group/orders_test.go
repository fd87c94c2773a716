package group

import (
	"slices"
	"strings"

	"cnmsql.co/internal/core"
)

// order is an instance whose manager hears the operator, and has seen no later epoch.
func (w *world) order(name string, epoch int64) (*instance, bool) {
	in := w.get(name)
	if in == nil || !in.runs() || in.deaf || epoch < in.m.seen {
		return nil, false
	}
	in.m.seen = epoch
	return in, true
}

// forceMembers has a survivor go on with the named members, and admit nobody else; false if
// that does not come about. The members receive what any of them has.
func (w *world) forceMembers(e core.ForceMembers) bool {
	in, heard := w.order(e.Instance, e.Epoch)
	if !heard || !in.answers() {
		return false
	}
	if v := w.says(in); v.State != core.MemberOnline || v.HasQuorum() || v.ViewID != e.View {
		return false
	}
	members := strings.Split(e.Members, ",")
	if slices.ContainsFunc(members, func(name string) bool { return !w.reaches(in.name, name) }) {
		return false // mysqld waits for them, and gives up
	}
	var addresses []string
	for _, name := range members {
		addresses = append(addresses, w.get(name).pod.Address)
		in.take(w.get(name))
	}
	for _, name := range members {
		w.get(name).take(in)
	}
	in.m.member.Admitted, in.m.member.AdmittedEpoch = strings.Join(addresses, ","), e.Epoch
	w.remembered = nil
	if !w.mut.keepsLineage {
		in.of.Recovery, in.of.Doubted = e.Epoch, false
	}
	w.become(members)
	return true
}

// reboot has an instance reboot the group, when it is in none.
func (w *world) reboot(e core.RebootGroup) {
	in, heard := w.order(e.Instance, e.Epoch)
	if heard && w.facts(in).RefusesReboot() == nil {
		in.m.member.TakeReboot(e.Epoch)
	}
}
