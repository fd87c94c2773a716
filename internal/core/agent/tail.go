package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TailWait is how long a crashed primary of which the log may end in transactions
// that were never acknowledged waits for its successor before mysqld recovers and
// commits them.
const TailWait = 15 * time.Second

// AskSuccessor asks the new primary what it holds, while mysqld does not run here.
type AskSuccessor struct {
	Instance string
	Epoch    int64
}

// CutTail takes the transactions that the successor lacks off the end of the last
// binary log, a copy kept, so that recovery rolls them back.
type CutTail struct{ Held gtid.Set }

func (AskSuccessor) action() {}
func (CutTail) action()      {}

func (a AskSuccessor) String() string { return "ask the successor " + a.Instance + " what it holds" }
func (a CutTail) String() string {
	return "cut off what the successor lacks, beyond " + a.Held.Abbreviate(4)
}

// mayHaveTail: the log may end in transactions that nobody acknowledged, and the history of
// another than this instance counts from now on.
func (f *Facts) mayHaveTail() bool {
	p := f.promotion()
	if f.TailEpoch == 0 || f.Data != core.DataPopulated || p == nil || f.Permitted() || p.LosslessSince == 0 || f.TailEpoch < p.LosslessSince {
		return false
	}
	// Another Pod of this instance, or a promise in the way: its own history counts.
	return p.Instance != f.Me || p.Epoch <= f.TailEpoch
}

// breakOffRecovery: mysqld was started to go on in its own epoch, and another is promoted
// before it has recovered. It would commit what nobody acknowledged: it is ended, for that
// to be cut off. What is started without permission has no tail any more.
func breakOffRecovery(f *Facts) (Decision, bool) {
	if !f.Mysqld.Up || f.Mysqld.Accepted || !f.mayHaveTail() {
		return pass()
	}
	return say(core.Recovering, "BreakingOffRecovery", "was started to go on as primary, and another takes over: breaks its recovery off, which would commit what nobody acknowledged", Abort{})
}

// cutTail: mysqld ended while commits waited for acknowledgements that, under
// quorum, nobody can have read success without. If another instance is primary by
// now, they are on nobody's word: recovering them would only make this instance
// diverge. That is so only if every promotion since then was lossless: else less may have
// been asked of an election; and if the successor has all that was executed before commits
// began to wait, which may have been acknowledged without. Whatever cannot be settled in
// time is left to recovery, and to the check of what was executed before anything is
// followed.
func cutTail(f *Facts) (Decision, bool) {
	if f.Mysqld.Up || !f.mayHaveTail() || f.Now.Sub(f.Mysqld.DownSince) > TailWait {
		return pass()
	}
	p, primary := f.promotion(), f.primary()
	switch {
	case primary == "":
		return say(core.Stopped, "AwaitingSuccessor", fmt.Sprintf("mysqld is not started before it is known who follows as primary, at most %s: its log may end in transactions that nobody acknowledged", TailWait))
	case f.Successor == nil || f.Successor.Instance != primary || f.Successor.Epoch != p.Epoch:
		var ask []Action
		if !f.Asking {
			ask = append(ask, AskSuccessor{primary, p.Epoch})
		}
		return say(core.Stopped, "AskingSuccessor", "asks "+primary+" what it holds before mysqld recovers", ask...)
	}
	if !f.Successor.Executed.Contains(f.TailBase) {
		return pass()
	}
	return say(core.Stopped, "CuttingTail", "cuts off what was never acknowledged and "+primary+" lacks", CutTail{f.Successor.Executed})
}
