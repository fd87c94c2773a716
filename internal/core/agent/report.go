package agent

import (
	"time"

	"cnmsql.co/internal/core"
)

const (
	// SteadyAfter is how long mysqld must have run for its end to be no failure to start:
	// one that served meanwhile is started again without a pause. One that accepted no connection
	// in all that time has failed, however long it took.
	SteadyAfter = 10 * time.Second
	// AnswerLimit is how long mysqld may take to answer the simplest of questions. One that
	// leaves UnansweredLimit of them in a row unanswered hangs.
	AnswerLimit     = 800 * time.Millisecond
	UnansweredLimit = 3
	// crashLoop is how many failures to start in a row are called a crash loop.
	crashLoop = 3
)

// Process is what is known of mysqld's process when a report is made.
type Process struct {
	Up, Accepted, Answers, MayWrite, Ended bool
	// Failures to start in a row, and how the process ended.
	Failures  int
	EndReason string
}

// Kept is what the volume remembers of promises.
type Kept struct {
	NoWritesBelow, NoReceivingBelow, LastWritable int64
}

// StillWithholds reports whether a promise to receive nothing below an epoch, which has been kept since a moment, is
// one still: the volume remembers it. 0 is none. One that was given for another Cluster is forgotten when the
// volume changes hands.
func (k Kept) StillWithholds(below int64) bool { return below > 0 && k.NoReceivingBelow >= below }

// BeginsToWithhold reports whether an instance that keeps a promise to receive nothing below an epoch, 0 for none,
// keeps another one from now on. One that says no more has been kept since the former.
func BeginsToWithhold(kept, below int64) bool { return kept < below }

// Begin writes into a report what was decided.
func (d Decision) Begin(r *core.Report) {
	r.State, r.Reason, r.Message = d.State, d.Reason, d.Message
	r.Errant, r.ErrantEpoch, r.NeedsReclone = d.Errant, d.ErrantEpoch, d.NeedsReclone
	if r.State == "" {
		r.State = core.Starting
	}
}

// TellPromises tells what was promised once it is kept: a promise to take no writes is not
// told while mysqld may accept one.
func (p Process) TellPromises(r *core.Report, k Kept) {
	r.NoReceivingBelow, r.LastWritable = k.NoReceivingBelow, k.LastWritable
	if !(p.MayWrite && p.Up) {
		r.NoWritesBelow = k.NoWritesBelow
	}
}

// Correct has what is known of the process outrank a decision that was made before it
// changed. What the server said last is told only while it answers.
func (p Process) Correct(r *core.Report, server *core.Server) {
	switch {
	case p.Up && p.Answers:
		r.Server = server
	case !p.Up && (r.State == core.Running || r.State == core.Hung || r.State == core.Recovering):
		r.State, r.Reason, r.Message = core.Stopped, "", ""
	}
	if p.Up && !p.Accepted && r.State == core.Running {
		r.State, r.Reason, r.Message = core.Recovering, "", ""
	}
	if !p.Up && p.Ended && r.State == core.Stopped {
		p.tellEnd(r)
	}
}

// tellEnd tells in a report how mysqld ended. Where what is waited for since then has a name, the
// report keeps that name, and the end stands beside it.
func (p Process) tellEnd(r *core.Report) {
	if waits := r.Reason != "" && r.Reason != core.InstanceMysqldCrashed; waits {
		if p.EndReason != "" {
			r.Message += " (mysqld ended: " + p.EndReason + ")"
		}
		return
	}
	r.Reason = core.InstanceMysqldCrashed
	if p.Failures >= crashLoop {
		r.Reason = core.InstanceCrashLoop
	}
	if p.EndReason != "" {
		r.Message = p.EndReason
	}
}

// TellTrouble tells what was tried and failed, beside the reason of the decision.
func TellTrouble(r *core.Report, failed string) {
	r.Message = failed
	if r.Reason == "" {
		r.Reason = core.ReasonActionFailed
	}
}

// TellView tells how the manager sees its Cluster.
func (c *Cluster) TellView(r *core.Report) {
	r.ClusterSize, r.Leased, r.Generation = c.Size(), c.Leased(), c.Generation
}
