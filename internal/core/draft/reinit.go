package draft

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// SettleReinits drops each request to recreate data that cannot be carried out, binds those that are
// seen first, and returns the others: they were made in this epoch, and for the volume that is there.
func (d *Draft) SettleReinits(primary string) []core.ReinitRequest {
	var out []core.ReinitRequest
	for _, r := range d.Cluster.Reinit {
		switch reason, why := d.reinitRefusal(r, primary); {
		case reason != "":
			d.Warn(reason, why)
			d.Do(core.ClearReinit{Instance: r.Instance})
		case !d.Instance(r.Instance).Volume.Known():
			d.Doing("the data of " + r.Instance + " is recreated when the operator can read its volume")
		case !r.IsBound():
			d.bindReinit(r.Instance)
		default:
			out = append(out, r)
		}
	}
	return out
}

// bindReinit binds a request to what was before this decision: a promotion that is decided now came after
// the human's word.
func (d *Draft) bindReinit(name string) {
	vol, known := d.Instance(name).Volume.Get()
	if !known {
		return
	}
	bound := core.ReinitRequest{Instance: name, Epoch: d.Cluster.Status.Epoch, Volume: vol.UID}
	d.Do(core.BindReinit{Request: bound.Marked(slices.Contains(d.Cluster.Status.Diverged, name),
		!canBeAsked(d.Instance(name)))})
	d.Doing("the data of " + name + " is to be recreated: the request is bound to its volume")
}

// reinitRefusal tells why a request is dropped; "" when it is not.
func (d *Draft) reinitRefusal(r core.ReinitRequest, primary string) (core.Reason, string) {
	in := d.Instance(r.Instance)
	if in == nil {
		return core.RefusalTargetUnknown, "the cluster has no instance " + r.Instance + " whose data could be recreated"
	}
	vol, known := in.Volume.Get()
	kept := fmt.Sprintf("the request to recreate the data of %s is dropped: %%s. See what it holds, and ask again: "+
		"kubectl cnmsql reinit %s %s", r.Instance, d.Cluster.Name, r.Instance)
	switch {
	case r.Instance == primary:
		return core.RefusalReinitPrimary, "the data of " + r.Instance +
			" is not recreated, because it is the primary: switch over first"
	case r.Epoch < 0:
		return core.RefusalReinitUnbound, fmt.Sprintf(kept, "its epoch and volume cannot be read")
	case !r.IsBound() && known && (!vol.Exists || vol.Deleting):
		return core.RefusalReinitUnbound, fmt.Sprintf(kept, "the instance has no volume, or one that is being "+
			"deleted, and gets a new one anyway")
	case !r.IsBound():
		return "", ""
	case r.Epoch != d.Status.Epoch:
		return core.RefusalReinitOutdated, fmt.Sprintf(kept, fmt.Sprintf("it was made in epoch %d, but the epoch is "+
			"now %d: the data is kept, because it may be needed now", r.Epoch, d.Status.Epoch))
	case known && vol.UID != r.Volume:
		return core.RefusalReinitOutdated, fmt.Sprintf(kept, "it was made for a former volume of the instance")
	case !r.Diverged && slices.Contains(d.Status.Diverged, r.Instance):
		return core.RefusalReinitOutdated, fmt.Sprintf(kept, "since it was "+
			"made, "+r.Instance+" was found to hold transactions that others lack: its data is kept")
	}
	return "", ""
}

// IsToBeReinitialized reports whether a human asked for the instance's data to be recreated, and
// nobody was promoted since. Of a request for a volume it is so when that is known to be the present one.
func (d *Draft) IsToBeReinitialized(name string) bool {
	return d.isReinitAsked(name, func(volume core.Fact[core.Volume], asked string) bool {
		return volume.Is(func(v core.Volume) bool { return v.UID == asked })
	})
}

// MayBeReinitialized reports whether that is so or may be: it is not known which volume the instance has.
func (d *Draft) MayBeReinitialized(name string) bool {
	return d.isReinitAsked(name, func(volume core.Fact[core.Volume], asked string) bool {
		return !volume.IsNot(func(v core.Volume) bool { return v.UID == asked })
	})
}

func (d *Draft) isReinitAsked(name string, isFor func(core.Fact[core.Volume], string) bool) bool {
	var volume core.Fact[core.Volume]
	if in := d.Instance(name); in != nil {
		volume = in.Volume
	}
	return slices.ContainsFunc(d.Cluster.Reinit, func(r core.ReinitRequest) bool {
		made := r.Epoch
		if !r.IsBound() && made == 0 {
			made = d.Cluster.Status.Epoch
		}
		return r.Instance == name && made == d.Status.Epoch && (!r.IsBound() || isFor(volume, r.Volume))
	})
}

// canBeAsked reports whether the instance's manager tells what its mysqld holds.
func canBeAsked(in *core.Instance) bool {
	return in.Report.Is(func(r core.Report) bool { return r.Server != nil })
}

// LetGoUnheard reports whether the data of an instance that does not tell what it holds may be thrown
// away: it told nothing when a human asked for that either. One that has fallen silent since may hold
// what nobody else does; whether it goes all the same is asked again.
func (d *Draft) LetGoUnheard(r core.ReinitRequest) bool {
	if !r.Unheard {
		d.Doing(fmt.Sprintf("the data of %s is recreated when it reports again what it holds, as it did when the "+
			"request was made. If it is gone for good, repeat the request: kubectl cnmsql reinit %s %s", r.Instance,
			d.Cluster.Name, r.Instance))
	}
	return r.Unheard
}

// MayGiveUp reports whether what the instance alone holds may go with its data: it is listed as diverged,
// and the human who asked was told.
func (d *Draft) MayGiveUp(r core.ReinitRequest) bool {
	return r.Diverged && slices.Contains(d.Status.Diverged, r.Instance)
}

// MakeAnew throws away the data of an instance, for which a human has asked.
func (d *Draft) MakeAnew(in *core.Instance) {
	d.Do(core.ReinitInstance{Instance: in.Name, Owned: in.Owned()}, core.ClearReinit{Instance: in.Name})
	d.Status.Diverged = Without(d.Status.Diverged, in.Name)
	d.Announce(false, core.ReasonReinit, in.Name, "the data of "+in.Name+" is deleted and recreated, as was asked for")
}
