package async

import (
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

const (
	// promisePatience is how long a manager that answers is asked for its promise alone. A
	// demotion takes two seconds at most, for then mysqld is killed; who takes longer cannot
	// write its promise down.
	promisePatience = 5 * time.Second
	// newPodPatience is how long a new Pod may take to be heard.
	newPodPatience = 15 * time.Second
	// recoveryPatience is how long a primary of which mysqld was started again may take
	// to recover before another is promoted.
	recoveryPatience = 10 * time.Second
)

// failoverRow is a row of failoverTable. The first of which the condition holds is taken.
type failoverRow struct {
	// when is a question and changes nothing; nil always holds. where and does are the words of
	// both for people, in docs/failover.md.
	when  func(*failure) bool
	where string
	does  string
	do    func(*decision, *failure)
	// steps has status.operation.step afterwards; nil where it stays what it was.
	steps []core.Step
}

// failoverTable is all that is done about a primary that fails. Which row is taken is derived
// from what is observed, so that a restarted operator goes on where the last one stood.
var failoverTable = []failoverRow{
	{when: func(f *failure) bool { return f.name == core.PrimaryDataLost && f.best.refusal != "" },
		where: "the primary's volume is empty, and no other instance can take over",
		does:  "`Blocked`; nothing is initialised again", do: (*decision).blockNothingLeft},
	{when: func(f *failure) bool { return f.mayComeBack && f.isRecovering && f.now.Before(f.recoverBy) },
		where: "its mysqld was started again in its own epoch, and is recovering, or has recovered and is about to " +
			"take writes; this has lasted less than 10 s, or `failoverDelay` has not passed",
		does: "the operator waits: recovery commits transactions that waited for acknowledgements",
		do:   (*decision).awaitRecovery},
	{when: func(f *failure) bool { return !f.isProven && f.hasLost && f.nobody != "" },
		where: "no proof; its manager says that its storage has lost transactions that it had committed, and no " +
			"other instance can take over",
		does: "`Blocked`: `PrimaryLostTransactions`; the primary stays closed for writes",
		do:   (*decision).blockClosed},
	{when: func(f *failure) bool { return !f.isProven && f.isHung && f.nobody != "" && f.now.Before(f.answerBy) },
		where: "no proof; its mysqld does not answer its manager, and no other instance can take over; the primary " +
			"has been failing for less than a minute",
		does: "the operator waits: if mysqld were killed, its reads would end as well", do: (*decision).awaitAnswer},
	{when: func(f *failure) bool {
		return f.staysPrimary() && f.report.State == core.Stopped && !f.report.Terminating
	},
		where: "no proof; its manager answers and is not being stopped, and its mysqld is stopped. No other instance " +
			"can take over; or the best candidate lacks transactions that the primary held at its promotion or, " +
			"under `quorum`, has executed, and the primary has been failing for less than 10 s",
		does: "mysqld is started again in place (`RestartInPlace`). If mysqld ends again and again, or this has not " +
			"helped for 2 min, the Cluster is also `Blocked`: `RestartInPlaceFailed`", do: (*decision).restartInPlace},
	{when: func(f *failure) bool { return f.staysPrimary() && f.report.State == core.Failed },
		where: "the same, but its manager says `Failed`",
		does:  "`Blocked`, with the manager's reason", do: (*decision).blockFailed},
	{when: (*failure).staysPrimary,
		where: "the same, but its mysqld is coming back, or its Pod is being stopped",
		does:  "the operator waits", do: (*decision).awaitReturn},
	{when: func(f *failure) bool { return f.tooSoon != "" },
		where: "`minTimeBetweenFailovers` has not passed",
		does:  "`Blocked`: `TooSoonAfterLastFailover`", do: (*decision).blockTooSoon,
		steps: []core.Step{core.StepDelay}},
	{when: (*failure).isDelayed,
		where: "`failoverDelay` has not passed, and the primary has not promised to stay read-only",
		does: "the operator waits. If the primary's manager cannot be reached, the replicas stop vouching for it 8 s " +
			"before the delay ends",
		do: (*decision).delay, steps: []core.Step{core.StepDelay}},
	{when: func(f *failure) bool { return !f.isProven && f.canPromise && f.now.Before(f.promiseBy) },
		where: "no proof; its manager answers, can write a promise, and has been asked for it for less than 5 s",
		does:  "the manager is asked to make mysqld read-only, and to promise that it stays so",
		do:    (*decision).seekPromise, steps: []core.Step{core.StepProve}},
	{when: func(f *failure) bool { return !f.isProven && f.leaseProves },
		where: "no proof; so many replicas can stop vouching that the primary would isolate itself",
		does: "the replicas are asked to stop receiving and vouching; the operator waits until the Lease has run " +
			"out, and takes it",
		do: (*decision).seekLease, steps: []core.Step{core.StepProve}},
	{when: func(f *failure) bool { return !f.isProven && len(f.unasked) > 0 && f.now.Before(f.podBy) },
		where: "no proof; some replicas have not stopped receiving yet, and the primary has been failing for less " +
			"than `failoverDelay` plus 15 s",
		does: "these replicas are asked to stop receiving and vouching",
		do:   (*decision).seekQuorum, steps: []core.Step{core.StepProve}},
	{when: func(f *failure) bool { return !f.isProven },
		where: "no proof",
		does: "the same; the primary's manager is asked as well, a new Pod is waited for, and then `Blocked`: " +
			"`NoProof`",
		do: (*decision).seekAnything, steps: []core.Step{core.StepProve}},
	{where: "there is a proof",
		does: "all positions are read after the proof; the instance that holds all is promoted, or the Cluster is " +
			"`Blocked` with the refusal of the election",
		do: (*decision).holdElection, steps: []core.Step{core.StepElect, core.StepPromote}},
}

// failure is what the rows look at. It is made before any of them is tried.
type failure struct {
	now      time.Time
	name     core.Diagnosis
	next     int64
	proof    proven
	isProven bool
	// best is the election that would be held among the others, by what is known before
	// anything was done about it; nobody is why none of them may be promoted, "" when one may.
	best    election
	nobody  string
	tooSoon string
	manager
	deadlines
	// isPastDelay tells whether the delay was over before.
	isPastDelay bool
	// unasked are the replicas that can be asked to stop receiving, and have not yet;
	// leaseProves: when they have, the lease leads to a proof.
	unasked     []string
	leaseProves bool
}

// manager is what the primary's manager says, and what may be hoped for from it.
type manager struct {
	report core.Report
	// mayComeBack tells whether it may make its mysqld writable again in the present epoch. lacking
	// is why it is given the time to, though another could be promoted; "" when it is not.
	mayComeBack bool
	lacking     string
	// hasLost tells whether it stays closed, for it has lost what it had committed.
	hasLost bool
	// isRecovering, isHung: its mysqld is, and nobody has been asked to do without it.
	isRecovering, isHung bool
	// canPromise tells whether it can be asked for a promise that proves something.
	canPromise bool
}

// deadlines are until when a row may wait.
type deadlines struct{ recoverBy, answerBy, comeBackBy, delayedTo, promiseBy, podBy time.Time }

// staysPrimary reports whether the remedy is to start the primary's own mysqld again. Once the
// primary has promised to stay read-only it takes a new promotion instead.
func (f *failure) staysPrimary() bool {
	return !f.isProven && f.mayComeBack && (f.nobody != "" || f.lacking != "")
}

// whyItStays tells that nobody else is promoted, and why.
func (f *failure) whyItStays() string {
	if f.nobody != "" {
		return "no other instance can take over: " + f.nobody
	}
	return f.lacking
}

// isDelayed reports whether the primary still has time to come back, until spec.failoverDelay is
// over. One that promised to stay read-only will not come back by itself.
func (f *failure) isDelayed() bool {
	return !f.isPastDelay && f.proof.proof != core.ProofManagerFenced && f.now.Before(f.delayedTo)
}

// newFailure looks at all that the rows ask for.
func (d *decision) newFailure() *failure {
	f := &failure{now: d.Now, name: d.diagnosis.name, next: d.nextEpoch(),
		isPastDelay: d.Status.Operation.IsPastDelay()}
	f.proof, f.isProven = prove(d.Observation, f.next)
	f.best = d.ballot(d.Status.Promotion.Instance, "").elect()
	f.tooSoon = d.tooSoon()
	f.nobody = d.nobodyTakesOver(f.best, f.tooSoon)
	since, asking, recovering := d.Status.FailingSince, d.asking(f.next), d.recovering()
	f.deadlines = deadlines{answerBy: since.Add(core.HungLimit), comeBackBy: since.Add(recoveryPatience),
		podBy:     d.podPatience(),
		delayedTo: since.Add(d.Cluster.FailoverDelay), promiseBy: asking.At.Add(promisePatience)}
	f.recoverBy = latestOf(recovering.At.Add(recoveryPatience), f.delayedTo)
	f.manager = d.newManager(f)
	f.unasked = d.unasked(f.next)
	f.leaseProves = d.leaseProves(f.next)
	return f
}

// newManager looks at what the primary's manager says.
func (d *decision) newManager(f *failure) manager {
	r, known := d.holder().Report.Get()
	m := manager{report: r, mayComeBack: d.mayComeBack(), isRecovering: known && d.isRecovering(r)}
	m.isHung = known && f.name == core.PrimaryHung && r.Reason != core.InstanceDiskStalled && !d.isAnyWithheld()
	m.canPromise = d.canPromise()
	m.hasLost = known && hasLost(r, d.Status.Promotion)
	if r.State != core.Failed && f.now.Before(f.comeBackBy) {
		m.lacking = d.lackingOf(f.best)
	}
	return m
}

// canPromise reports whether the primary's manager can be asked for a promise that proves something. A Pod
// elsewhere that answers can promise nothing for the one that took writes, and a volume that stalls keeps no
// promise.
func (d *decision) canPromise() bool {
	return d.holder().Report.Is(func(r core.Report) bool {
		return d.Status.Promotion.IsOf(r.PodUID, r.Node) && r.Reason != core.InstanceDiskStalled
	})
}

// isRecovering reports whether mysqld was started again and recovers, by which it commits
// what nobody may have acknowledged. Once it has recovered, and until it takes writes, it is
// as it was while it did.
func (d *decision) isRecovering(r core.Report) bool {
	hasRecovered := d.Observation.Carried.Recovering.Epoch == d.Status.Promotion.Epoch
	return r.State == core.Recovering || r.State == core.Running && r.WritableEpoch == 0 && hasRecovered
}

// failOver replaces a primary that fails, by the first row of the table that applies.
func (d *decision) failOver() {
	d.beginFailover(d.diagnosis.says)
	f := d.newFailure()
	if f.mayComeBack && f.isRecovering {
		d.Plan.Carried.Recovering = d.recovering()
	}
	row := &failoverTable[slices.IndexFunc(failoverTable, func(r failoverRow) bool {
		return r.when == nil || r.when(f)
	})]
	d.took = append(d.took, row)
	row.do(d, f)
}

// beginFailover makes the operation a failover, unless it is one.
func (d *decision) beginFailover(why string) {
	if d.Status.FailingSince.IsZero() {
		d.Status.FailingSince = d.Now
	}
	if d.Status.Operation != nil && d.Status.Operation.Kind == core.OperationFailover {
		return
	}
	d.Status.Operation = &core.Operation{Kind: core.OperationFailover, Step: core.StepDelay,
		From:   d.Status.Promotion.Instance,
		Reason: core.Reason(d.diagnosis.name), StartedAt: d.Status.FailingSince, Witnesses: witnesses(d.Observation)}
	d.Warn(core.ReasonFailover, fmt.Sprintf("the primary %s is failing (%s): %s", d.Status.Promotion.Instance,
		d.diagnosis.name, why))
}

// asking is since when the primary's manager is asked for its promise, and recovering since when
// its mysqld recovers, if they are.
func (d *decision) asking(next int64) core.Since { return d.Observation.Carried.Asking.Or(next, d.Now) }

func (d *decision) recovering() core.Since {
	return d.Observation.Carried.Recovering.Or(d.Status.Promotion.Epoch, d.Now)
}

// nobodyTakesOver tells why no other instance may be promoted; "" when one may.
func (d *decision) nobodyTakesOver(best election, tooSoon string) string {
	why := best.why
	if best.refusal == "" {
		_, why = d.exceedsPolicy(best)
	}
	if why == "" {
		why = tooSoon
	}
	return why
}

// lackingOf tells that whoever would win is not promoted yet, for it lacks some of what the primary held when it was
// promoted, or had executed since, which its recovery may have committed without
// acknowledgement; "" when not. Another one would make it diverge.
func (d *decision) lackingOf(best election) string {
	p := d.Status.Promotion
	if best.refusal != "" {
		return ""
	}
	lacks, what := p.RequiredGTID.Subtract(best.holds), "held at its promotion"
	if lacks.IsEmpty() {
		lacks, what = d.committedAlone(best), "has executed"
	}
	if lacks.IsEmpty() {
		return ""
	}
	return fmt.Sprintf("%s is not promoted yet: it is the best candidate, but lacks transactions that %s %s (%s)",
		best.winner, p.Instance, what, lacks.Abbreviate(4))
}

// committedAlone is what the primary had executed and whoever would win lacks. Where each
// commit waits for replicas only a recovery commits such: as long as all of them were read
// later, for who was read before may hold it by now.
func (d *decision) committedAlone(best election) gtid.Set {
	had := d.holder().LastExecuted
	set, known := had.Get()
	if !known || d.Status.Promotion.RequiredAcks == 0 || !d.Cluster.Durability.Mode.IsOnReplicas() {
		return gtid.Set{}
	}
	others(d.Observation, d.holder().Name, func(in *core.Instance) {
		if _, serves := serving(in); serves && !core.ReadAfter(in.Report, had) {
			known = false
		}
	})
	if !known {
		return gtid.Set{}
	}
	return set.Subtract(best.holds)
}

// mayComeBack reports whether the primary's manager answers, has the data, and may make its mysqld
// writable again in the present epoch.
func (d *decision) mayComeBack() bool {
	r, known := d.holder().Report.Get()
	if cannotGetThere(d.Observation, d.Status.Operation) != "" {
		return false // it does not come back by itself: only another promotion helps
	}
	if !known || !mayGoOn(r, d.Status.Promotion) || r.State == core.Hung ||
		r.Data != core.DataPopulated && r.Data != core.DataUnknown {
		return false
	}
	l, seen := d.Cluster.Lease.Get()
	return !seen || l.Holder != "" || l.Epoch <= d.Status.Promotion.Epoch // else it was taken from it
}

// isReplacing reports whether a failover is past its delay, or replicas were asked in it to stop
// receiving. It goes on although the diagnosis may have changed to one that would not begin it: the
// old primary may have been demoted by now, and a replica that receives nothing on purpose does not
// tell that its source is lost.
func (d *decision) isReplacing() bool {
	op := d.Status.Operation
	if op == nil || op.Kind != core.OperationFailover || !op.IsPastDelay() && !d.isAnyWithheld() {
		return false
	}
	switch d.diagnosis.name {
	case core.PrimaryPromoting, core.PrimaryUnreachable:
		return true
	default:
		return false
	}
}

// isolationPatience is how long replicas may take to reach their primary again
// before it is replaced, which they can be asked about.
const isolationPatience = 5 * time.Second

// replaceIsolated replaces a primary that takes writes which nobody can acknowledge. One
// that was just promoted begins to fail now: what came before was its predecessor's.
func (d *decision) replaceIsolated() {
	since := d.Status.FailingSince
	switch op := d.Status.Operation; {
	case op == nil:
		d.settle()
	case op.Step == core.StepPromote:
		d.settle()
		since = time.Time{}
	}
	if since.IsZero() {
		since = d.Now
	}
	d.Status.FailingSince = since
	until := since.Add(d.patience())
	if d.Status.Operation == nil && d.Now.Before(until) {
		d.tellDamped(until)
		d.Doing("commits on " + d.Status.Promotion.Instance + " hang, because its replicas cannot reach it; " +
			"it is replaced if that lasts until " + clock(until))
		d.RecheckAt(until)
		return
	}
	d.failOver()
}

// mayGoOn reports whether the promoted instance may still come to take writes in its epoch, by its report. It is not
// agent's Permitted, by which the instance itself takes writes now: a report that is some seconds old does not tell
// whether the volume is locked by now and which epoch the instance sees, and who waits for either must not be given
// up. It is never a proof that the instance takes none. The part that both ask is core.Promotion.Permits.
func mayGoOn(r core.Report, p *core.Promotion) bool {
	return p.Permits(r.PodUID, r.Node, r.NoWritesBelow)
}
