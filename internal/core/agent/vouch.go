package agent

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"cnmsql.co/internal/core"
)

// Vouch answers a primary that asks whether this instance still counts on it: nil,
// or why not. An instance that withholds its vouch has promised never to give it
// again below an epoch.
func Vouch(f *Facts, primary string, epoch int64) *core.Problem {
	p := f.promotion()
	switch {
	case !f.Locked || f.Foreign:
		return &core.Problem{Reason: core.InstanceVolumeInUse,
			Message: "it cannot be told here what was promised on the volume"}
	case p == nil || p.Instance != primary || p.Epoch != epoch || f.Cluster.Epoch != epoch:
		return &core.Problem{Reason: core.VouchOtherPrimary, Message: fmt.Sprintf("%s is not the primary of epoch %d "+
			"as far as is known here", primary, epoch)}
	case !f.Cluster.IsMember(f.Me):
		return &core.Problem{Reason: core.VouchNotAMember, Message: "it is not counted yet, as far as is known here"}
	case f.IsFrozen():
		return &core.Problem{Reason: core.VouchWithheldReason,
			Message: fmt.Sprintf("vouches for nobody below epoch %d", f.NoReceivingBelow)}
	}
	return nil
}

// MayStayWritable tells whether a primary may take writes by lease and vouches: its
// lease was renewed lately, or itself and the peers that vouch for it are a
// majority of the members. A cluster of one does without.
func (f *Facts) MayStayWritable() bool {
	if f.Cluster == nil || !f.Cluster.Leased() || f.Cluster.Size() < 2 {
		return true
	}
	if f.leaseLeft() >= 0 {
		return true
	}
	with := map[string]bool{f.Me: true}
	for _, v := range f.Vouches {
		if f.Cluster.IsMember(v.Instance) && f.Now.Sub(v.At) <= core.VouchLife {
			with[v.Instance] = true
		}
	}
	return len(with) >= core.Majority(f.Cluster.Size())
}

// leaseLeft is how long the lease counts; less than zero when it does not.
func (f *Facts) leaseLeft() time.Duration {
	if f.LeaseEpoch == 0 {
		return -1
	}
	return f.LeaseRenewed.Add(core.LeaseGrace).Sub(f.Now)
}

// UntilIsolationLook is how long this instance need not look whether it must isolate itself. A lease that
// counts is enough, whatever the view and the vouches become, so that nothing is to be looked for before the
// moment in which it does not: by time, for which this is the wait, or because it is gone, of which whoever
// waits must be told, as of being opened for writes.
func (f *Facts) UntilIsolationLook() time.Duration {
	switch left := f.leaseLeft(); {
	case !f.Mysqld.MayWrite:
		return core.IsolationRest
	case left >= 0:
		return min(left+1, core.IsolationRest)
	}
	return core.IsolationLook
}

// MustIsolateItself reports whether somebody else may be made primary without this instance being
// asked, so that it must not take another write. While it is being opened it takes writes already, and
// is not said to be the primary yet: that is not waited for.
func (f *Facts) MustIsolateItself() bool {
	return f.Mysqld.Up && f.Mysqld.MayWrite && (f.WritableEpoch != 0 || f.Permitted()) && !f.MayStayWritable()
}

// isolateItself makes the primary read-only when neither the API server nor a majority of the
// cluster can be reached.
func isolateItself(f *Facts) (Decision, bool) {
	if !f.MustIsolateItself() {
		return pass()
	}
	return tell(core.Running, core.InstanceIsolated, "the Lease was not renewed, and no majority vouches for this "+
		"primary: it takes no writes until one of these changes",
		Demote{"isolated"})
}

// Given is a vouch: which peer gave it, and when it was asked for.
type Given struct {
	Instance string
	At       time.Time
}

// Vouches are the last that peers gave, for one epoch.
type Vouches struct {
	Epoch int64
	Last  map[string]time.Time
}

// Note takes a vouch that an instance gave. One for another epoch ends all others.
func (v *Vouches) Note(epoch int64, instance string, asked time.Time) {
	if v.Epoch != epoch || v.Last == nil {
		*v = Vouches{Epoch: epoch, Last: map[string]time.Time{}}
	}
	v.Last[instance] = asked
}

// Of lists those for the epoch of a Cluster's promotion, by the instances' names.
func (v *Vouches) Of(c *Cluster) []Given {
	if c == nil || c.Promotion == nil || c.Promotion.Epoch != v.Epoch {
		return nil
	}
	var out []Given
	for _, name := range slices.Sorted(maps.Keys(v.Last)) {
		out = append(out, Given{Instance: name, At: v.Last[name]})
	}
	return out
}
