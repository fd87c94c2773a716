package agent

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TailWait is how long a crashed primary of which the log may end in transactions
// that were never acknowledged waits for one to be promoted and to become writable,
// before mysqld recovers and commits them.
const TailWait = 15 * time.Second

const (
	// comingWait is how long it waits for a successor of which the manager says that its
	// mysqld is about to take writes: crash recovery takes its time.
	comingWait = 5 * time.Minute
	// comingLife is how long that word counts: between two of them the API server may be
	// asked.
	comingLife = 10 * time.Second
)

// Coming is the word of a successor's manager: mysqld does not take writes yet, and may.
type Coming struct {
	Instance string
	Epoch    int64
	At       time.Time
}

// AskSuccessor asks the new primary what it holds, while mysqld does not run here.
type AskSuccessor struct {
	Instance string
	Epoch    int64
}

// CutTail takes the transactions that the successor lacks off the end of the last
// binary log, a copy kept, so that recovery rolls them back.
type CutTail struct{ Held gtid.Set }

func (AskSuccessor) action() {}

// isAnsweredBy reports whether the report is of the primary of that epoch, which takes
// writes, or took some and is closed until others have its data: it may be this very
// instance that it waits for.
func (a AskSuccessor) isAnsweredBy(r core.Report) bool {
	isClosed := r.Reason == core.InstanceGivesData && r.NoWritesBelow > a.Epoch
	return r.Server != nil && (r.WritableEpoch == a.Epoch || isClosed)
}

// Comes is what the report says of a successor that may still take writes in its epoch; nil
// if it does not say so.
func (a AskSuccessor) Comes(r core.Report, at time.Time) *Coming {
	isStarting := r.State == core.Starting || r.State == core.Stopped || r.State == core.Recovering ||
		r.State == core.Running
	if r.Instance != a.Instance || !isStarting || r.Data != core.DataPopulated || r.Terminating ||
		r.NoWritesBelow > a.Epoch {
		return nil
	}
	return &Coming{a.Instance, a.Epoch, at}
}

func (CutTail) action() {}

func (a AskSuccessor) String() string { return "ask the successor " + a.Instance + " what it holds" }
func (a CutTail) String() string {
	return "cut off what the successor lacks, beyond " + a.Held.Abbreviate(4)
}

// mayHaveTail reports whether the log may end in transactions that nobody acknowledged, and the
// history of another than this instance counts from now on.
func (f *Facts) mayHaveTail() bool {
	p := f.promotion()
	if f.TailEpoch == 0 || f.Data != core.DataPopulated || p == nil || f.Permitted() || p.LosslessSince == 0 ||
		f.TailEpoch < p.LosslessSince {
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
	return tell(core.Recovering, core.InstanceBreakingOffRecovery, "was started to go on as primary, and another "+
		"takes over: breaks its recovery off, which would commit what nobody acknowledged", Abort{})
}

// cutTail cuts the unacknowledged suffix off the log. It does so after mysqld ended while commits
// waited for acknowledgements that, under quorum, nobody can have read success without. If another
// instance has been promoted, no client was told that these transactions committed: recovering them
// would only make this instance diverge.
//
// Two things must be so. Every promotion since then was lossless: else less may have been asked of
// an election. And the successor has all that was executed before commits began to wait, which may
// have been acknowledged without. A successor that is writable is asked until it answers; one that
// is promoted and not writable yet, or that crashed itself, while it says that it comes. Only where
// none becomes writable, so that what this instance holds may be needed, recovery has its way, and
// the check of what was executed before anything is followed; and not without a word that it is so.
func cutTail(f *Facts) (Decision, bool) {
	if f.Mysqld.Up || !f.mayHaveTail() {
		return pass()
	}
	p, primary := f.promotion(), f.primary()
	isAnswered := f.Successor != nil && f.Successor.Instance == p.Instance && f.Successor.Epoch == p.Epoch
	mayNotCome := primary == "" || f.Cluster.FailoverFrom == primary
	switch {
	case !isAnswered && mayNotCome && f.isGivenUp() && !f.comes(p):
		return pass()
	case !isAnswered && primary == "":
		return tell(core.Stopped, core.InstanceAwaitingSuccessor, f.awaitsWhoFollows(p), f.askWhoFollows()...)
	case !isAnswered:
		return f.askSuccessor(p.Epoch, primary)
	}
	if !f.Successor.Executed.Contains(f.TailBase) {
		return pass()
	}
	return tell(core.Stopped, core.InstanceCuttingTail, "cuts off what was never acknowledged and "+p.Instance+" lacks",
		CutTail{f.Successor.Executed})
}

func (f *Facts) awaitsWhoFollows(p *core.Promotion) string {
	message := fmt.Sprintf("mysqld is not started before it is known who follows as primary: its log may end in "+
		"transactions that nobody acknowledged. After %s it is, if the API server says that nobody follows", TailWait)
	if f.comes(p) {
		message += fmt.Sprintf("; %s is promoted, says that it may take writes yet, and is waited for, up to %s",
			p.Instance, comingWait)
	}
	return message
}

// askWhoFollows asks the API server and, in turn, who is promoted already: it may be about to
// take writes, or take them, and reach the API server no more than this instance does.
func (f *Facts) askWhoFollows() []Action {
	p := f.promotion()
	if word := f.askWord(); len(word) > 0 || f.Asking || p.Instance == f.Me {
		return word
	}
	return []Action{AskSuccessor{p.Instance, p.Epoch}}
}

// isGivenUp reports whether nobody has become writable in time, by the word of who must know.
func (f *Facts) isGivenUp() bool {
	return f.hasWaited() && (f.Cluster.Instances < 2 || f.isTold())
}

// comes reports whether the manager of the granted primary has said a moment ago that it may still
// take writes. It is waited for no longer than comingWait.
func (f *Facts) comes(p *core.Promotion) bool {
	c := f.Coming
	return c != nil && c.Instance == p.Instance && c.Epoch == p.Epoch && f.Now.Sub(c.At) < comingLife &&
		f.waited() < comingWait
}

func (f *Facts) askSuccessor(epoch int64, primary string) (Decision, bool) {
	message := "asks " + primary + " what it holds before mysqld recovers, which would commit what nobody acknowledged"
	if f.AskFailed != "" {
		message += ": " + f.AskFailed
	}
	switch {
	case f.Asking:
		return tell(core.Stopped, core.InstanceAskingSuccessor, message)
	case f.Cluster.FailoverFrom == primary && f.hasWaited() && !f.isTold():
		// It may answer nobody any more: whether this instance is needed is to be known.
		return tell(core.Stopped, core.InstanceAskingSuccessor, message, AskWord{})
	}
	return tell(core.Stopped, core.InstanceAskingSuccessor, message, AskSuccessor{primary, epoch})
}
