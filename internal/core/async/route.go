package async

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// route points writes at the primary by its name, and labels the Pods by role.
// The label of an instance that cannot be asked is left as it is.
func (d *decision) route() {
	p := d.Status.Promotion
	if p == nil {
		return
	}
	takesWrites := d.takesWrites()
	resting := d.labelsRestUntil()
	if !resting.IsZero() {
		d.RecheckAt(resting)
	}
	mayLabel := takesWrites && resting.IsZero()
	if routed, known := d.Cluster.Routed.Get(); known && takesWrites && routed != p.Instance {
		d.Do(core.RouteWrites{Instance: p.Instance})
	}
	for i := range d.Instances {
		in := &d.Instances[i]
		pod, podKnown := in.Pod.Get()
		r, known := in.Report.Get()
		fenced := d.IsFenced(in.Name)
		if !podKnown || !pod.Exists || pod.Terminating || !known && !fenced || d.IsEnding(in.Name) {
			continue
		}
		if pod.DemoteRequested && takesWrites && in.Name != p.Instance {
			d.Do(core.ClearDemote{Instance: in.Name})
		}
		// Labels move endpoints, and kube-proxy holds a second change back for
		// a second: until -rw leads to the one who takes writes, the next change is -rw's.
		if !mayLabel && !slices.Contains(d.Status.Diverged, in.Name) && !fenced &&
			!d.mustReadHere(in, pod, r) {
			continue
		}
		role := core.LabelPod{Instance: in.Name, Role: "replica"}
		switch {
		case in.Name == p.Instance && takesWrites:
			role.Role = "primary"
		case !takesWrites: // it is what it was until another is writable
			role.Role = pod.Role
		}
		role.Routable = !fenced && d.isRoutable(in, r)
		if !fenced && d.lagsTooFar(in, r) {
			d.TellLags(in.Name)
		}
		if role.Role != "" && (pod.Role != role.Role || pod.Routable != role.Routable) {
			d.Do(role)
		}
	}
}

// labelsRestUntil is until when labels wait, for -rw has just been led to a new primary; zero when
// they do not.
func (d *decision) labelsRestUntil() time.Time {
	p := d.Status.Promotion
	if !d.takesWrites() || p.From == "" {
		return time.Time{}
	}
	return d.LabelsRestUntil(p.WritableSince)
}

// isReadable reports whether an instance serves reads that are not of another history.
func (d *decision) isReadable(in *core.Instance) bool {
	_, serves := serving(in)
	return serves && !slices.Contains(d.Status.Diverged, in.Name)
}

// lagsTooFar reports whether a replica takes no reads for it lags, while others take them.
func (d *decision) lagsTooFar(in *core.Instance, r core.Report) bool {
	return d.isReadable(in) && in.Name != d.Status.Promotion.Instance && r.Lagging && !d.lastReader(in.Name)
}

// isRoutable reports whether an instance takes reads.
func (d *decision) isRoutable(in *core.Instance, r core.Report) bool {
	return d.isReadable(in) && !d.lagsTooFar(in, r) &&
		(in.Name == d.Status.Promotion.Instance || r.Server.Replication != nil)
}

// mustReadHere reports whether a replica that was left out because it lags is the best there is.
func (d *decision) mustReadHere(in *core.Instance, pod core.Pod, r core.Report) bool {
	return r.Lagging && !pod.Routable && d.lastReader(in.Name)
}

// lastReader reports whether no other instance serves reads that are fresh enough.
func (d *decision) lastReader(name string) bool {
	last := true
	others(d.Observation, name, func(in *core.Instance) {
		r, ok := serving(in)
		isPrimary := in.Name == d.Status.Promotion.Instance && d.takesWrites()
		if ok && !slices.Contains(d.Status.Diverged, in.Name) &&
			(isPrimary || r.Server.Replication != nil && !r.Lagging) {
			last = false
		}
	})
	return last
}
