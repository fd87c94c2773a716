package draft

import (
	"slices"

	"cnmsql.co/internal/core"
)

// CountReady counts who is ready and stays so.
func (d *Draft) CountReady() {
	d.Status.Ready = 0
	for i := range d.Instances {
		if pod, known := d.Instances[i].Pod.Get(); known && pod.Exists && pod.Ready && !pod.Terminating {
			d.Status.Ready++
		}
	}
}

// IsJoining: an instance is on its way to its first data.
func (d *Draft) IsJoining() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		r, known := in.Report.Get()
		return known && r.Data != core.DataPopulated && r.State != core.Failed
	})
}

// IsOutdated: a Pod was not made from the present spec, or a manager is to be replaced.
func (d *Draft) IsOutdated() bool {
	return slices.ContainsFunc(d.Instances, func(in core.Instance) bool {
		pod, known := in.Pod.Get()
		return known && pod.Exists && !pod.Current || d.hasOldManager(&in)
	})
}
