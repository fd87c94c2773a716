package draft

import (
	"fmt"
	"strings"

	"cnmsql.co/internal/core"
)

// Recipients are the instances that stay, and wait for a donor to copy data from.
func (d *Draft) Recipients() []*core.Instance {
	var out []*core.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		if known && r.State == core.AwaitingClone && r.Data == core.DataScratch && !isPausing(r) && !d.IsSurplus(in) &&
			!d.IsEnding(in.Name) {
			out = append(out, in)
		}
	}
	return out
}

// LastClone tells why a clone is begun again; "" of the first.
func LastClone(in *core.Instance) string {
	r, known := in.Report.Get()
	if !known || r.Clone == nil || r.Clone.Error == "" {
		return ""
	}
	return " (the last attempt failed: " + r.Clone.Error + ")"
}

// FirstOf returns the first of the donors, but for the one from which the last copy to the instance failed, which
// comes behind the others: the fault may be its own. It returns "" of none.
func FirstOf(donors []string, recipient *core.Instance) string {
	for _, donor := range donors {
		if !recipient.Report.Is(func(r core.Report) bool { return r.HasFailedFrom(donor) }) {
			return donor
		}
	}
	if len(donors) == 0 {
		return ""
	}
	return donors[0]
}

// isPausing reports whether the instance's last attempts failed, and it is left alone for a while.
func isPausing(r core.Report) bool { return r.Clone != nil && r.Clone.Pausing }

// BusyDonors are those from which data is being copied, by an instance or a backup: one
// recipient a donor.
func (d *Draft) BusyDonors() map[string]bool {
	busy := map[string]bool{}
	for i := range d.Instances {
		if d.Instances[i].BackedUp {
			busy[d.Instances[i].Name] = true
		}
		r, known := d.Instances[i].Report.Get()
		if !known || r.State != core.Cloning || r.Clone == nil {
			continue
		}
		for j := range d.Instances {
			if name := d.Instances[j].Name; core.IsHostOf(r.Clone.Donor, name) {
				busy[name] = true
			}
		}
	}
	return busy
}

// TellClones tells which copies are begun, which are being made, and who waits for a
// donor.
func (d *Draft) TellClones(begun, waiting []string) {
	if len(begun) > 0 {
		d.Announce(false, core.ReasonCloneStarted, strings.Join(begun, ", "), "copying data: "+
			strings.Join(begun, ", "))
	}
	d.tellProgress()
	d.tellFailures()
	if len(waiting) > 0 {
		d.Doing(strings.Join(waiting, ", ") + ": waiting for a donor to copy data from")
	}
}

// failuresTold is after how many failures in a row it is told that a copy fails: the first may be that of a
// donor that has just been started again.
const failuresTold = 2

// tellFailures tells who cannot copy, in the server's words, also while it tries once more. It is not
// given up.
func (d *Draft) tellFailures() {
	for i := range d.Instances {
		in := &d.Instances[i]
		r, known := in.Report.Get()
		if !known || d.IsSurplus(in) {
			continue
		}
		if failsToCopy(r) {
			d.Remark(core.ReasonCloneFailed, in.Name, in.Name+" could not copy data, and tries it again within a "+
				"minute: "+r.Clone.Error)
		}
	}
}

// failsToCopy reports whether copy after copy of data to the instance has failed.
func failsToCopy(r core.Report) bool {
	copies := r.State == core.AwaitingClone || r.State == core.Cloning
	return copies && r.Clone != nil && (r.Clone.Failures >= failuresTold || r.Clone.Pausing) // some do not count
}

// tellProgress tells it in tenths, so that the status does not change with every page
// that is copied.
func (d *Draft) tellProgress() {
	var progress []string
	for i := range d.Instances {
		r, known := d.Instances[i].Report.Get()
		if known && r.State == core.Cloning && r.Clone != nil {
			progress = append(progress, strings.TrimSpace(fmt.Sprintf("%s %s %d%%", d.Instances[i].Name,
				strings.ToLower(r.Clone.Stage), r.Clone.Percent/10*10)))
		}
	}
	if len(progress) > 0 {
		d.Doing("copying data: " + strings.Join(progress, ", "))
	}
}
