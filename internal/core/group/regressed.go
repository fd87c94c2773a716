package group

import (
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// mendStatus acts when instances have seen a later epoch of the status than it has, and that stays
// so: it was set back, as when etcd is restored from a backup. The group goes on, for it elects by
// itself. But nobody joins, and no order is taken, in an epoch that has passed; and the status may
// have forgotten whom the group went on without. So it gets an epoch that nobody has seen, and
// nobody joins by what it holds alone who is outside of the group then. Nor does what was archived
// until then stand for what the group holds under the same numbers, unless a branch of the archive
// tells that it does. One that the group lists as unreachable may be outside, and is waited for: it is
// back in a moment, or expelled. Until then nothing else begins an epoch, for it would only hide that
// some were lost, and nobody is told to do anything: see isPast.
func (d *decision) mendStatus() {
	last := d.LastEpoch()
	if !d.g.Bootstrapped || !d.isPast() {
		return
	}
	switch {
	case d.AwaitStatus(last):
	case d.seen.agreed && d.seen.primary != "" && !d.seen.suspects():
		d.restoreStatus(last)
	default:
		d.Remark(core.RefusalStatusRegressed, "", fmt.Sprintf("the Cluster's status was set back, as when etcd is "+
			"restored from a backup: it is of epoch %d, and instances have seen epoch %d. The operator repairs it "+
			"when the group has a quorum, and no member is UNREACHABLE. The operator does not know which instances "+
			"were excluded since: recover the group only from an instance that was in it last", d.Status.Epoch, last))
	}
}

// isPast reports whether an instance saw a later epoch of the status than it has: it was set back, and
// is not mended yet.
func (d *decision) isPast() bool { return d.LastEpoch() > d.Status.Epoch }

// nextEpoch is one of which nobody has heard.
func (d *decision) nextEpoch() int64 { return max(d.Status.Epoch, d.LastEpoch()) + 1 }

// restoreStatus has the status follow the group that is seen. A wish of the past is no wish, and who
// was new then may have data by now.
func (d *decision) restoreStatus(last int64) {
	was := d.Status.Epoch
	for i := range d.Instances { // orders of an earlier epoch would be refused
		if r, known := d.Instances[i].Report.Get(); known {
			d.Status.Epoch = max(d.Status.Epoch, r.SeenEpoch, r.NoReceivingBelow)
		}
	}
	d.g.NoteForgotten(max(d.Status.Epoch, d.LastEpoch()))
	d.Status.Epoch = d.nextEpoch()
	d.Status.Operation, d.Status.Return = nil, nil
	d.Status.TargetPrimary, d.Status.TargetPrimaryAt = d.seen.primary, d.Now
	d.g.New = nil
	d.g.ViewMax = len(d.seen.members) // whoever else is left out has no say
	text := d.leaveUnknown()
	d.Announce(true, core.ReasonStatusRestored, "", fmt.Sprintf("the Cluster's status had been set back to epoch %d, "+
		"but instances have seen epoch %d: it now follows the group with the primary %s, in epoch %d; %s", was, last,
		d.seen.primary, d.Status.Epoch, text))
	d.Again = true
}

// leaveUnknown has everybody left out who may have data and is not in the group, as if those who went
// on had held nothing before: whatever it holds, its numbers may stand for other transactions by now. It
// returns who that is, in words.
func (d *decision) leaveUnknown() string {
	var names []string
	d.g.LeftOut = nil
	for i := range d.Instances {
		in := &d.Instances[i]
		if _, listed := d.seen.members[in.Name]; listed || in.SaysEmpty() {
			continue
		}
		d.g.LeftOut = append(d.g.LeftOut, core.LeftOut{Instance: in.Name, Held: gtid.Set{}})
		names = append(names, in.Name)
	}
	if len(names) == 0 {
		return "no instance is excluded"
	}
	return "excluded: " + strings.Join(names, ", ") + ", because it is not known what the group held without them"
}
