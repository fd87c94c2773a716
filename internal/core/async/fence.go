package async

import "cnmsql.co/internal/core"

// fence keeps the list of instances that a human takes out of service.
func (d *decision) fence() {
	for _, in := range d.FencingChanged() {
		if d.IsFenced(in.Name) {
			d.Unfence(in.Name, "its mysqld is started")
		} else {
			d.Fence(in.Name, "its mysqld is stopped, its data is kept")
		}
	}
	d.TidyFenced()
}

// reinit makes the data of instances again on a human's word, one after another.
// What it throws away must be held by others, unless it is what has diverged.
func (d *decision) reinit() {
	primary := ""
	if holder := d.holder(); holder != nil {
		primary = holder.Name
	}
	for _, asked := range d.SettleReinits(primary) {
		name := asked.Instance
		in := d.Instance(name)
		switch {
		case d.diagnosis.name != core.PrimaryClosed &&
			(d.diagnosis.name != core.PrimaryHealthy || d.Status.Operation != nil):
			d.Doing("the data of " + name + " is recreated when the primary is healthy")
			return
		case !d.enoughWithout(in, d.Status.Promotion.RequiredAcks):
			d.Doing("the data of " + name +
				" is recreated when enough other replicas are attached to acknowledge commits")
			return
		case d.clearReinit(asked, in):
			d.MakeAnew(in)
			return
		default:
			return
		}
	}
}

// enoughWithout reports whether commits that wait for so many acknowledgements get them while the
// instance is away. What acknowledges nothing is not missed: it tells so itself, or the primary
// says that it has no more replicas attached than the others.
func (d *decision) enoughWithout(gone *core.Instance, acks int) bool {
	others := d.receiveBeside(gone)
	if r, ok := serving(gone); ok && !streams(r, d.Status.Promotion.Instance) {
		return true
	} else if n, known := d.clients(); !ok && known && n <= others {
		return true
	}
	return others >= acks
}

// clients returns how many replicas the primary says are attached to it, heard here or not, and
// whether it says that. One whose commits wait for nobody counts none.
func (d *decision) clients() (n int, known bool) {
	r, ok := serving(d.holder())
	if !ok || !r.Server.SemiSync.SourceEnabled {
		return 0, false
	}
	return r.Server.SemiSync.Clients, true
}

// receiveBeside counts the replicas that receive from the primary and go on to, without this one.
func (d *decision) receiveBeside(gone *core.Instance) (n int) {
	primary := d.Status.Promotion.Instance
	otherMembers(d.Observation, primary, func(in *core.Instance) {
		if r, ok := serving(in); ok && in.Name != gone.Name && streams(r, primary) &&
			!in.IsStopping() && !d.IsEnding(in.Name) {
			n++
		}
	})
	return n
}

// clearReinit has an instance stop acknowledging, and reports whether its data may be thrown
// away: it acknowledges nothing any more, and nothing is lost with it but
// what a human wants to lose. One that could not be asked when
// that was asked for was a human's to judge. One that has no data has nothing to tell; but a copy
// that it makes at this moment would begin to acknowledge.
func (d *decision) clearReinit(asked core.ReinitRequest, in *core.Instance) bool {
	r, known := in.Report.Get()
	_, serves := serving(in)
	holder := d.holder()
	switch {
	case !known, !serves && (asked.Unheard || !in.SaysEmpty()):
		return d.LetGoUnheard(asked)
	case !r.Withholds(d.Status.Promotion.Epoch + 1):
		d.again(core.ReceivePromise{Instance: in.Name, Epoch: d.Status.Promotion.Epoch + 1})
		d.Doing("recreating the data of " + in.Name + ": it stops receiving")
		return false
	case !serves, d.MayGiveUp(asked):
		return true
	case receives(r): // what it holds is final once it does not, and it may have promised a moment before
		d.again(core.Refresh{Instance: in.Name})
		d.Doing("recreating the data of " + in.Name + ": it stops receiving")
		return false
	case !holder.Report.ReadAfter(in.Report):
		d.again(core.Refresh{Instance: holder.Name})
		d.Doing("recreating the data of " + in.Name + ": comparing what it holds with what " + holder.Name + " holds")
		return false
	}
	why := d.notHeldElsewhere(r, in, holder)
	d.doingUnless(why)
	return why == ""
}
