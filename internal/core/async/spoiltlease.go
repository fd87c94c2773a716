package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
)

// mendLease sets a record back that says what nobody was ever promoted to: whoever may edit Leases
// wrote it, or put an old one back. The epochs are the operator's to hand out, and an instance
// gives way to a later one for ever.
//
// The record may be right and the status of the past, so that a primary of that epoch lives. It
// renews its lease: nothing is touched that was changed in a lease's life, nor while the instance
// that it names may be that primary. No proof comes of it: what was set back is of the present
// epoch, and has to run out like any other.
func (d *decision) mendLease() {
	p := d.Cluster.Status.Promotion
	l, known := d.Cluster.Lease.Get()
	if p == nil || !known || !d.Cluster.PrimaryLease || p.Epoch != d.Status.Promotion.Epoch || !d.isSpoilt(l) ||
		d.isSeized() {
		return
	}
	said := fmt.Sprintf("the Lease of the primary names %s at epoch %d, but no such promotion exists: %s is the "+
		"primary in epoch %d, and cannot take the Lease. Neither the operator nor an instance wrote it (kubectl get "+
		"lease %s-primary -o yaml --show-managed-fields)", nobody(l.Holder), l.Epoch, p.Instance, p.Epoch,
		d.Cluster.Name)
	expires := l.UnchangedSince.Add(core.LeaseTTL)
	switch {
	case d.mayHold(l):
		said += fmt.Sprintf("; %s may hold it, so the operator leaves it alone: if that instance is gone for good, "+
			"delete the Lease, and the operator makes it again", l.Holder)
	case d.Now.Before(expires):
		said += fmt.Sprintf("; the operator sets it back at %s, if nobody renews it", clock(expires))
		d.RecheckAt(expires)
	default:
		said += "; the operator sets it back"
		d.Do(core.ResetLease{Epoch: p.Epoch, Version: l.Version})
		d.RecheckAt(d.Now.Add(receiveLook))
	}
	d.Remark(core.ReasonLeaseSpoilt, "", said)
}

// isSpoilt reports whether the lease record is as neither a primary writes it nor an operator that
// takes it away. One that is nobody's and of a later epoch was taken away for a promotion.
func (d *decision) isSpoilt(l core.Lease) bool {
	p := d.Cluster.Status.Promotion
	if l.Holder == "" {
		return l.Epoch > d.nextEpoch()
	}
	return l.Epoch > p.Epoch || l.Epoch == p.Epoch && l.Holder != p.Instance
}

// mayHold reports whether the record's holder is an instance, and has not said that it is not the
// primary of that epoch.
func (d *decision) mayHold(l core.Lease) bool {
	in := d.Instance(l.Holder)
	if l.Holder == "" || in == nil {
		return false
	}
	r, known := in.Report.Get()
	return !known || !isOf(r, in) || r.WritableEpoch >= l.Epoch || r.ViewEpoch >= l.Epoch
}

// isSeized reports whether this very plan takes the record away, whatever is in it.
func (d *decision) isSeized() bool {
	return slices.ContainsFunc(d.Effects, func(e core.Effect) bool { _, is := e.(core.SeizeLease); return is })
}

func nobody(name string) string {
	if name == "" {
		return "nobody"
	}
	return name
}
