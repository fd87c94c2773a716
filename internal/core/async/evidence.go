package async

import (
	"slices"
)

// keepEvidence puts into the status what an operator that starts again could not
// hear again: which Pods may have become writable in the epoch, which of them have
// ended, and what the manager promised.
func (d *decision) keepEvidence() {
	p, holder := d.Status.Promotion, d.holder()
	if p == nil {
		return
	}
	open := stillOpen(holder, p)
	p.Pods = openable(holder, p)
	p.Ended = slices.DeleteFunc(slices.Clone(p.Pods), func(uid string) bool { return slices.Contains(open, uid) })
	word := lastWord(holder)
	if r, known := word.Get(); known && promises(word, p, p.Epoch+1) {
		p.NoWritesBelow = max(p.NoWritesBelow, r.NoWritesBelow)
	}
}

// keepSize keeps the smallest number of members of which the primary may count
// a majority: it grows when the primary says so, and shrinks before it can know.
func (d *decision) keepSize() {
	p := d.Status.Promotion
	if p == nil {
		return
	}
	if r, known := d.holder().Report.Get(); known && r.WritableEpoch == p.Epoch {
		p.Size = max(p.Size, r.ClusterSize)
	}
	p.Size = min(p.Size, d.members())
}

// keepLeased keeps whether the primary surely goes by its lease: one that cannot be asked
// may not have seen that the lease was switched on, and what it said before it knew the
// present spec may be from before the lease was switched off.
func (d *decision) keepLeased() {
	p := d.Status.Promotion
	if p == nil {
		return
	}
	if r, known := d.holder().Report.Get(); known && r.WritableEpoch == p.Epoch && r.Leased &&
		r.Generation >= d.Cluster.Generation {
		p.Leased = true
	}
	p.Leased = p.Leased && d.Cluster.PrimaryLease
}
