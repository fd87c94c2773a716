package agent

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TailWait is how long a crashed primary of which the log may end in transactions that were never acknowledged waits
// for another to be promoted, before mysqld recovers and commits them.
const TailWait = 15 * time.Second

// CutTail takes the transactions that the next promotion does not require off the end of the last binary log, a copy
// kept, so that recovery rolls them back.
type CutTail struct{ Held gtid.Set }

func (CutTail) action() {}

func (a CutTail) String() string {
	return "cut off what the next promotion does not require, beyond " + a.Held.Abbreviate(4)
}

// mayHaveTail reports whether the log may end in transactions that nobody acknowledged, and the
// history of another than this instance counts from now on. That each commit since then waited for replicas is told
// by a later promotion: the present one may be about to say so.
func (f *Facts) mayHaveTail() bool {
	p := f.promotion()
	if f.TailEpoch == 0 || f.Data != core.DataPopulated || p == nil || f.Permitted() {
		return false
	}
	if p.Epoch > f.TailEpoch && (p.LosslessSince == 0 || f.TailEpoch < p.LosslessSince) {
		return false
	}
	// A promotion of this instance that it may not use says nothing: who promised not to be
	// writable in its epoch is about to be replaced.
	return !f.GivesData()
}

// StartsStill reports whether mysqld, of which the start was decided a while ago, is still to be started. It takes
// time to prepare that, in which another may be promoted: what nobody acknowledged is to be cut off first, then.
func (f *Facts) StartsStill() bool { return slices.Contains(Decide(f).Actions, Action(StartServer{})) }

// LaunchEndsTail reports whether a mysqld that is launched by these facts has no unacknowledged suffix any more:
// nobody breaks the recovery of one off that has no permission to go on, and it commits what there is.
func (f *Facts) LaunchEndsTail() bool { return !f.Permitted() }

// breakOffRecovery ends a mysqld that was started to go on in its own epoch when another is
// promoted before it has recovered. It would commit what nobody acknowledged: it is ended, for that
// to be cut off. What is started without permission has no unacknowledged suffix any more.
func breakOffRecovery(f *Facts) (Decision, bool) {
	if !f.Mysqld.Up || f.Mysqld.Accepted || !f.mayHaveTail() {
		return pass()
	}
	return tell(core.Recovering, core.InstanceBreakingOffRecovery, "was started as primary, but another instance "+
		"takes over: aborts its recovery, which would commit unacknowledged transactions", Abort{})
}

// cutTail cuts the unacknowledged suffix off the log. It does so after mysqld ended while commits waited for
// acknowledgements that, under quorum, nobody can have read success without. If another instance has been promoted,
// no client was told that these transactions committed: recovering them would only make this instance diverge.
//
// What was acknowledged is known without asking anybody: whoever was promoted next held it when it was
// elected, and the promotion requires what it held. Two things must be so. Every promotion since then was
// lossless: else less may have been asked of an election. And the promotion requires all that was executed
// before commits began to wait, which may have been acknowledged without. Where not, recovery has its way, and
// the check of what was executed before anything is followed. That is also so where nobody is promoted in time,
// by the word of who must know: what this instance holds may be needed.
func cutTail(f *Facts) (Decision, bool) {
	if f.Mysqld.Up || !f.mayHaveTail() {
		return pass()
	}
	p := f.promotion()
	switch isFollowed := p.Instance != f.Me && p.Epoch > f.TailEpoch; {
	case !isFollowed && f.isGivenUp():
		return pass()
	case !isFollowed:
		return tell(core.Stopped, core.InstanceAwaitingSuccessor, fmt.Sprintf("mysqld is stopped on purpose: its "+
			"binary log may end with transactions that too few replicas acknowledged. It starts when another instance "+
			"is promoted, or after %s if the API server confirms that none was", TailWait), f.askWord()...)
	case p.RequiredGTID.IsEmpty() || !p.RequiredGTID.Contains(f.TailBase):
		return pass()
	}
	return tell(core.Stopped, core.InstanceCuttingTail, "cuts unacknowledged transactions off its binary "+
		"log: "+p.Instance+
		" did not hold them when it was promoted", CutTail{p.RequiredGTID})
}

// isGivenUp reports whether nobody was promoted in time, by the word of who must know.
func (f *Facts) isGivenUp() bool {
	return f.hasWaited() && (f.Cluster.Instances < 2 || f.isTold())
}
