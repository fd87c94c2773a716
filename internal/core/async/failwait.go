package async

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

func (d *decision) blockNothingLeft(f *failure) {
	d.Block(f.best.refusal, fmt.Sprintf("the volume of the primary %s is empty, and no other instance can take over: "+
		"%s. The operator never initialises an established cluster again: bring a replica back%s. If none has the "+
		"data, restore a backup into a new Cluster",
		d.Status.Promotion.Instance, f.best.why, d.wayOut(f.best.refusal)))
}

// awaitRecovery waits for a primary whose mysqld was started again, but only for so long. Recovery
// commits what waited for acknowledgements, so that the primary would have diverged if another
// took over meanwhile.
func (d *decision) awaitRecovery(f *failure) {
	what := "recovers"
	if f.report.State == core.Running {
		what = "is about to take writes"
	}
	d.Doing(fmt.Sprintf("mysqld of %s was started again and %s; if it is not back by %s, the operator promotes a "+
		"replica",
		f.report.Instance, what, clock(f.recoverBy)))
	d.RecheckAt(f.recoverBy)
}

// awaitAnswer waits for a mysqld that does not answer while nobody can take over. To have it killed
// would only take its reads away as well. But one that has not answered for as long as no server
// needs is started again, as a replica's is.
func (d *decision) awaitAnswer(f *failure) {
	d.Doing(fmt.Sprintf("mysqld of %s does not answer, and no other instance can take over: %s; if it does not "+
		"answer by %s, the operator restarts it",
		f.report.Instance, f.nobody, clock(f.answerBy)))
	d.RecheckAt(f.answerBy)
}

func (d *decision) restartInPlace(f *failure) {
	d.recheckLacking(f)
	if f.nobody != "" {
		d.blockRestarts(f.report)
	}
	d.startInPlace(f.report, f.whyItStays())
}

func (d *decision) blockFailed(f *failure) {
	d.Block(f.report.Reason, fmt.Sprintf("%s: %s; and %s",
		f.report.Instance, f.report.Problem().String(), f.whyItStays()))
}

// blockClosed leaves a primary closed that has lost what it had committed. In a new epoch it would give the
// numbers again all the same.
func (d *decision) blockClosed(f *failure) {
	d.Block(core.RefusalLostTransactions, fmt.Sprintf("%s %s; and %s. Bring back the instance that holds them. Only "+
		"if it is gone for good: kubectl cnmsql failover %s --to %[1]s --accept-data-loss",
		f.report.Instance, f.report.Message, f.whyItStays(), d.Cluster.Name))
}

func (d *decision) awaitReturn(f *failure) {
	d.recheckLacking(f)
	if f.report.Terminating {
		d.Doing(fmt.Sprintf("%s is being stopped, and continues in its next Pod; %s",
			f.report.Instance, f.whyItStays()))
		return
	}
	d.Doing(fmt.Sprintf("%s comes back by itself (%s); %s",
		f.report.Instance, f.report.State, f.whyItStays()))
}

// recheckLacking sees to it that the primary is waited for only so long, if
// another could be promoted.
func (d *decision) recheckLacking(f *failure) {
	if f.nobody == "" {
		d.RecheckAt(f.comeBackBy)
	}
}

// startInPlace has mysqld of the primary started again. why tells that nobody else is promoted, and why.
func (d *decision) startInPlace(r core.Report, why string) {
	d.Do(core.RestartInPlace{Instance: r.Instance, Epoch: d.Status.Promotion.Epoch})
	d.Announce(true, core.ReasonRestartInPlace, r.Instance,
		"mysqld of "+r.Instance+" is restarted in place, because "+why)
}

// blockTooSoon refuses a failover because the user wants some time between failovers.
func (d *decision) blockTooSoon(f *failure) {
	d.Status.Operation.Step = core.StepDelay
	d.Block(core.RefusalTooSoon, fmt.Sprintf("the primary %s is failing (%s), but the operator does not replace it "+
		"yet: %s",
		d.Status.Promotion.Instance, f.name, f.tooSoon))
	d.RecheckAt(d.Status.LastFailover.Add(d.Cluster.Policy.MinTimeBetweenFailover))
}

func (d *decision) delay(f *failure) {
	d.Status.Operation.Step = core.StepDelay
	d.Doing(fmt.Sprintf("the primary %s is failing (%s); it is replaced if it is not back by %s (spec.failoverDelay)",
		d.Status.Promotion.Instance, f.name, clock(f.delayedTo)))
	d.RecheckAt(f.delayedTo)
	d.askReceivePromisesInTime(f.delayedTo)
}

// clock tells a moment to people.
func clock(t time.Time) string { return t.UTC().Format("15:04:05 MST") }

// askReceivePromisesInTime has the replicas of a primary that nobody reaches stop vouching for
// it so early that nobody can have vouched for it when its time is over. They receive
// nothing anyway; should it come back, it stays the primary in the next epoch.
func (d *decision) askReceivePromisesInTime(until time.Time) {
	begin := until.Add(-core.VouchWithheld)
	switch {
	case !goesByLease(d.Observation):
	case d.diagnosis.name != core.PrimaryUnreachableReplicasLost && d.diagnosis.name != core.PrimaryUnreachable:
	case d.Now.Before(begin):
		d.RecheckAt(begin)
	default:
		d.askReceivePromises(d.nextEpoch())
	}
}
