package async

import (
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

// join gives every instance without data a donor: a replica if one is free, so
// that the primary is spared; one recipient a donor.
func (d *decision) join() {
	if !d.mayGive() {
		return
	}
	busy := d.BusyDonors()
	var begun, waiting []string
	givers := d.givers()
	for _, in := range d.Recipients() {
		if d.stopsReceiving(in.Name) {
			continue
		}
		if draft.IsUnsuited(in, givers) {
			d.Suit(in, givers)
			continue
		}
		donor := d.donor(busy, in.Name)
		if donor == "" {
			waiting = append(waiting, in.Name)
			continue
		}
		busy[donor] = true
		d.Do(core.CloneFrom{Instance: in.Name, Donor: donor, Epoch: d.Status.Promotion.Epoch})
		begun = append(begun, in.Name+" from "+donor+draft.LastClone(in))
	}
	d.TellClones(begun, waiting)
}

// stopsReceiving reports whether this plan orders an instance to receive nothing: it would refuse a copy, or begin
// one that is thrown away.
func (d *decision) stopsReceiving(name string) bool {
	return slices.ContainsFunc(d.Effects, func(e core.Effect) bool {
		stops, is := e.(core.ReceivePromise)
		return is && stops.Instance == name
	})
}

// givers are the primary, which is the first, and the replicas that have its data, whether or not
// they may give it at this moment; none while the primary could not.
func (d *decision) givers() []*core.Instance {
	if d.Status.Promotion == nil || !d.mayGive() {
		return nil
	}
	out := []*core.Instance{d.holder()}
	others(d.Observation, out[0].Name, func(in *core.Instance) {
		r, ok := serving(in)
		if ok && streams(r, out[0].Name) && !slices.Contains(d.Status.Diverged, in.Name) {
			out = append(out, in)
		}
	})
	return out
}

// donor is a replica if there is one that is free, and else the primary; but not one of
// which commits wait for ever, for the copy would wait for them.
func (d *decision) donor(busy map[string]bool, recipient string) string {
	donors := d.replicaDonors(busy, recipient)
	primary := d.Status.Promotion.Instance
	if !busy[primary] && !d.starving && d.holder().CanCloneTo(d.Instance(recipient)) {
		donors = append(donors, primary)
	}
	return draft.FirstOf(donors, d.Instance(recipient))
}

func (d *decision) replicaDonors(busy map[string]bool, recipient string) (names []string) {
	primary := d.Status.Promotion.Instance
	for i := range d.Instances {
		in := &d.Instances[i]
		r, ok := serving(in)
		if ok && in.Name != primary && in.Name != recipient && !busy[in.Name] && !r.Terminating &&
			streams(r, primary) && !slices.Contains(d.Status.Diverged, in.Name) && d.mayDonate(in, r) &&
			in.CanCloneTo(d.Instance(recipient)) {
			names = append(names, in.Name)
		}
	}
	return names
}

// mayDonate reports whether an instance that serves, and says r, may be a donor. Under quorum an
// instance without data may have acknowledged what a lagging replica does not hold: cloned from
// that replica, it would count as known without it. The primary may keep that acknowledgement until
// another comes, so that all that is in its binary log counts.
func (d *decision) mayDonate(in *core.Instance, r core.Report) bool {
	if d.mayLack(r) {
		return false
	}
	return !d.Cluster.Durability.Mode.IsOnReplicas() ||
		d.hasAllOf(in, r.Server.Executed, d.holder(), catchUpAge, (*core.Server).Logged)
}
