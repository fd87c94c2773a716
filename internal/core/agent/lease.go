package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// LeaseDuty is what has to be done about the lease at this moment.
type LeaseDuty int

// Duties.
const (
	LeaveLease LeaseDuty = iota
	RenewLease
	ReleaseLease
)

// leaseAnswer is how long ago mysqld may have answered last for the lease to be renewed: a
// hung server must lose it.
const leaseAnswer = 2 * time.Second

// Leased reports whether a primary goes by its lease: as the spec says, and when it was
// switched off, until the promotion says so. Before that an operator may take a lease that
// ran out for a proof.
func (c *Cluster) Leased() bool {
	return c.Lease || c.Promotion != nil && c.Promotion.Leased
}

// LeaseDuty tells what a manager has to do about the lease. It is renewed while mysqld is
// writable and answers, and given back once nothing can be written any more.
func (f *Facts) LeaseDuty() LeaseDuty {
	isStopping := !f.Mysqld.Up && (!f.TerminatingSince.IsZero() || f.WasFenced)
	switch {
	case f.LeaseEpoch != 0 && !f.Mysqld.MayWrite && (!f.Permitted() || isStopping):
		return ReleaseLease
	case f.Cluster == nil || !f.Cluster.Leased() || f.WritableEpoch == 0 || f.LeaseEpoch < f.WritableEpoch:
		return LeaveLease
	case f.Now.Sub(f.LeaseRenewed) >= core.LeaseRenewal && f.canWrite():
		return RenewLease
	}
	return LeaveLease
}

// canWrite reports whether mysqld has answered lately, and its volume completes writes.
func (f *Facts) canWrite() bool {
	return f.Mysqld.Up && !f.Mysqld.DiskStalled && f.Now.Sub(f.Mysqld.AnsweredAt) <= leaseAnswer
}

// LeaseRefused tells why the record, which holder has at an epoch, may not be taken for
// another; "" when it may. One of a lower epoch may be: the promotion carries the proof that
// its holder cannot write any more.
func LeaseRefused(me string, epoch int64, holder string, at int64) string {
	switch {
	case holder != "" && holder != me && at > epoch:
		return fmt.Sprintf("%s holds it at epoch %d, which is later; waiting for the promotion of that epoch, or "+
			"until the operator sets the record back, if there is none", holder, at)
	case holder != "" && holder != me && at == epoch:
		return fmt.Sprintf("%s holds it at epoch %d; waiting until it is released", holder, at)
	case at > epoch:
		return fmt.Sprintf("it was taken away for epoch %d", at)
	}
	return ""
}

// IsLeaseLost reports whether the record is not this instance's any more, so that it cannot
// be renewed for an epoch. One of nobody and of no epoch was deleted, and the operator has
// made it again: it was taken for nobody else.
func IsLeaseLost(me string, epoch int64, holder string, at int64) bool {
	return holder != me && !IsLeaseFree(holder, at) || at > epoch
}

// TakesLease reports whether an instance that notes the lease at an epoch, 0 for none, notes it for another for which
// it was taken or renewed. What was asked for an earlier epoch, and is answered after it was taken for a later one,
// changes nothing.
func TakesLease(noted, epoch int64) bool { return epoch >= noted }

// EndsLease reports whether an instance that notes the lease at an epoch holds it no more when it is lost or given back
// for another. One that was taken for a later epoch since is still held.
func EndsLease(noted, epoch int64) bool { return noted <= epoch }

// IsLeaseFree reports whether the record is as the operator makes it, and as it is after a
// release: nobody's, and of no epoch. One that was taken away for an epoch is not.
func IsLeaseFree(holder string, at int64) bool {
	return holder == "" && at == 0
}

// MayRelease reports whether an instance that held the record for an epoch leaves it to nobody. One
// that it has taken again for a later epoch, while the release was on its way, stays.
func MayRelease(me string, epoch int64, holder string, at int64) bool {
	return holder == me && at <= epoch
}
