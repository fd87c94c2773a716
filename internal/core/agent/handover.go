package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

// handoverLease is how old the primary's lease may be: a binary that is loaded from a busy
// disk needs its time until it looks at the lease, of which this leaves four seconds.
const handoverLease = core.LeaseRenewal + time.Second

// MayNotHandOver tells what the instance has in hand that another process could not go on with;
// "" when there is nothing.
func (f *Facts) MayNotHandOver() string {
	switch {
	case !f.Locked || f.Foreign || f.Cluster == nil:
		return "it has not yet locked its own volume and read the Cluster"
	case !f.TerminatingSince.IsZero():
		return "the Pod is being stopped"
	case f.Activity != "":
		return string(f.Activity) + " is under way"
	case f.Member.HandingTo != "":
		return "the role of primary is being handed over"
	case f.Member.ExpelHeld:
		return "it has lost the majority of its group, or regained it only seconds ago"
	case f.Mysqld.Up && !f.Mysqld.Answers:
		return "mysqld does not answer"
	case f.Cluster.Leased() && f.WritableEpoch != 0 && f.Now.Sub(f.LeaseRenewed) > handoverLease:
		return "the primary's Lease was not renewed recently"
	}
	return ""
}
