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
		if known && r.State == core.AwaitingClone && r.Data == core.DataScratch && !isPausing(r) && !d.IsSurplus(in) {
			out = append(out, in)
		}
	}
	return out
}

// isPausing: its last attempts failed, and it is left alone for a while.
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

// SayClones tells which copies are begun, which are being made, and who waits for a
// donor.
func (d *Draft) SayClones(begun, waiting []string) {
	if len(begun) > 0 {
		d.Announce(false, core.ReasonCloneStarted, strings.Join(begun, ", "), "copying data: "+
			strings.Join(begun, ", "))
	}
	d.sayProgress()
	d.sayPauses()
	if len(waiting) > 0 {
		d.Say(strings.Join(waiting, ", ") + ": waiting for a donor to copy data from")
	}
}

// sayPauses tells who could not copy, and that it is not given up.
func (d *Draft) sayPauses() {
	for i := range d.Instances {
		if r, known := d.Instances[i].Report.Get(); known && r.State == core.AwaitingClone && isPausing(r) {
			d.Say(d.Instances[i].Name + " could not copy data, and tries it again within a minute: " + r.Clone.Error)
		}
	}
}

// sayProgress tells it in tenths, so that the status does not change with every page
// that is copied.
func (d *Draft) sayProgress() {
	var progress []string
	for i := range d.Instances {
		r, known := d.Instances[i].Report.Get()
		if known && r.State == core.Cloning && r.Clone != nil {
			progress = append(progress, strings.TrimSpace(fmt.Sprintf("%s %s %d%%", d.Instances[i].Name,
				strings.ToLower(r.Clone.Stage), r.Clone.Percent/10*10)))
		}
	}
	if len(progress) > 0 {
		d.Say("copying data: " + strings.Join(progress, ", "))
	}
}
