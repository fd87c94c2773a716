package async

import (
	"fmt"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// harmless are those of an instance's own transactions that changed no data, by what its
// manager has read in its binary log. An ordinary user can make them on a server that is
// read-only: ANALYZE TABLE … UPDATE HISTOGRAM, REPAIR TABLE, FLUSH. What the primary's own
// server once wrote and does not have any more is not among them.
func harmless(r core.Report, primary *core.Instance) gtid.Set {
	p, known := primary.Report.Get()
	if !known || p.Server == nil {
		return gtid.Set{}
	}
	return r.Maintenance.Without(p.Server.UUID)
}

// adopt has the primary commit empty transactions in their stead, so that all histories are
// equal again; acks are attached, so that no commit waits for ever.
func (d *decision) adopt(primary core.Report) {
	if d.Status.Operation != nil || d.followsServer() {
		return
	}
	holder := d.holder()
	others(d.Observation, holder.Name, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || d.isLeftOut(in.Name) {
			return
		}
		set := harmless(r, holder).Subtract(primary.Server.Executed)
		if set.IsEmpty() {
			return
		}
		d.Do(core.AdoptTransactions{Instance: holder.Name, Epoch: d.Status.Promotion.Epoch, Set: set.String()})
		d.Announce(false, core.ReasonAdopted, in.Name, fmt.Sprintf("somebody ran statements of maintenance on %s "+
			"while it was read-only (ANALYZE, REPAIR or FLUSH). They changed no data. %s commits empty transactions "+
			"of the same numbers: %s",
			in.Name, holder.Name, set.Abbreviate(10)))
	})
}
