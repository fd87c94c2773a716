package async

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
)

const (
	// receiveGrace is how long replicas may take to notice that a dead primary
	// sends nothing more, before their IO threads are stopped.
	receiveGrace = 300 * time.Millisecond
	// receiveLook is how often they are asked meanwhile.
	receiveLook = 20 * time.Millisecond
	// electionPatience is how long an election waits for the word of an instance
	// that was heard of; who has not answered by then counts as unknown.
	electionPatience = 10 * time.Second
	// withheldLook is how often it is looked whether vouches have run out.
	withheldLook = 500 * time.Millisecond
	// promisePatience is how long a manager that answers is asked for its promise alone.
	promisePatience = 5 * time.Second
	// newPodPatience is how long a new Pod may take to be heard.
	newPodPatience = 15 * time.Second
	// recoveryPatience is how long a primary of which mysqld was started again may take
	// to recover before another is promoted.
	recoveryPatience = 10 * time.Second
)

// isReplacing: a failover is past its delay, or replicas were asked in it to stop
// receiving. It goes on although the diagnosis may have changed to one that would
// not begin it: the old primary may have been demoted by now, and a replica that
// receives nothing on purpose does not tell that its source is lost.
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

// failOver replaces a primary that fails. Each step is derived from what is
// observed, so that a restarted operator goes on where the last one stood.
func (d *decision) failOver() {
	d.beginFailover(d.diagnosis.says)
	next := d.nextEpoch()
	proof, isProven := prove(d.Observation, next)
	switch {
	case d.isNothingLeft():
	case d.awaitsRecovery():
	case !isProven && d.awaitsAnswer():
	case !isProven && d.restartInPlace():
	case d.isTooSoon():
	case d.isDelayed(proof):
	case !isProven:
		d.seekProof(next)
	default:
		d.holdElection(next, proof)
	}
}

// beginFailover makes the operation a failover, unless it is one.
func (d *decision) beginFailover(why string) {
	if d.Status.FailingSince.IsZero() {
		d.Status.FailingSince = d.Now
	}
	if d.Status.Operation != nil && d.Status.Operation.Kind == core.OperationFailover {
		return
	}
	d.Status.Operation = &core.Operation{Kind: core.OperationFailover, Step: core.StepDelay, From: d.Status.Promotion.Instance,
		Reason: core.Reason(d.diagnosis.name), StartedAt: d.Status.FailingSince, Witnesses: witnesses(d.Observation)}
	d.Warn(core.ReasonFailover, fmt.Sprintf("the primary %s fails (%s): %s", d.Status.Promotion.Instance, d.diagnosis.name, why))
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
		d.Say("commits on " + d.Status.Promotion.Instance + " hang, because its replicas cannot reach it; it is replaced if that lasts until " + until.UTC().Format("15:04:05 MST"))
		d.RecheckAt(until)
		return
	}
	d.failOver()
}

// isDelayed: the primary has until spec.failoverDelay to come back. One that
// promised to stay read-only will not come back by itself.
func (d *decision) isDelayed(proof proven) bool {
	op := d.Status.Operation
	until := d.Status.FailingSince.Add(d.Cluster.FailoverDelay)
	if op.IsPastDelay() || proof.proof == core.ProofManagerFenced || !d.Now.Before(until) {
		return false
	}
	op.Step = core.StepDelay
	d.Say(fmt.Sprintf("the primary %s fails (%s); it is replaced if it is not back by %s (spec.failoverDelay)",
		d.Status.Promotion.Instance, d.diagnosis.name, until.UTC().Format("15:04:05 MST")))
	d.RecheckAt(until)
	d.withholdInTime(until)
	return true
}

// isAnyWithheld: some replica has been asked to stop receiving from the primary.
func (d *decision) isAnyWithheld() bool {
	silent, _ := withholders(d.Observation, d.Status.Promotion.Instance, d.nextEpoch(), 0)
	return len(silent) > 0
}

// withholdInTime has the replicas of a primary that nobody reaches stop vouching for
// it so early that nobody can have vouched for it when its time is over. They receive
// nothing anyway; should it come back, it stays the primary in the next epoch.
func (d *decision) withholdInTime(until time.Time) {
	begin := until.Add(-core.VouchWithheld)
	switch {
	case !goesByLease(d.Observation):
	case d.diagnosis.name != core.PrimaryUnreachableReplicasLost && d.diagnosis.name != core.PrimaryUnreachable:
	case d.Now.Before(begin):
		d.RecheckAt(begin)
	default:
		d.withhold(d.nextEpoch())
	}
}

// isNothingLeft: the primary's data is gone, and nobody can take over.
func (d *decision) isNothingLeft() bool {
	e := d.ballot(d.Status.Promotion.Instance, "").elect()
	if d.diagnosis.name != core.PrimaryDataLost || e.refusal == "" {
		return false
	}
	d.Block(e.refusal, fmt.Sprintf("the volume of the primary %s is empty, and nobody can take over: %s. Nothing is initialised again: bring a replica back, or restore a backup into a new Cluster",
		d.Status.Promotion.Instance, e.why))
	return true
}

// awaitsRecovery: mysqld of the primary was started again, in its own epoch. Recovery
// commits what waited for acknowledgements, so that it would have diverged if another
// took over meanwhile.
func (d *decision) awaitsRecovery() bool {
	r, may := d.mayComeBack()
	if !may || r.State != core.Recovering {
		return false
	}
	d.Plan.Memory.Recovering = d.Observation.Memory.Recovering.Or(d.Status.Promotion.Epoch, d.Now)
	until := d.Plan.Memory.Recovering.At.Add(recoveryPatience)
	if delayed := d.Status.FailingSince.Add(d.Cluster.FailoverDelay); until.Before(delayed) {
		until = delayed
	}
	if !d.Now.Before(until) {
		return false
	}
	d.Say(fmt.Sprintf("mysqld of %s was started again and recovers; another is promoted if it is not back by %s", r.Instance, until.UTC().Format("15:04:05 MST")))
	d.RecheckAt(until)
	return true
}

// awaitsAnswer: mysqld does not answer its manager, and nobody can take over. To have it
// killed would only take its reads away as well; but one that has not answered for as long
// as no server needs is started again, as a replica's is.
func (d *decision) awaitsAnswer() bool {
	r, known := d.holder().Report.Get()
	if d.diagnosis.name != core.PrimaryHung || !known || r.Reason == core.InstanceDiskStalled || d.isAnyWithheld() {
		return false
	}
	why, until := d.nobodyTakesOver(), d.Status.FailingSince.Add(core.HungLimit)
	if why == "" || !d.Now.Before(until) {
		return false
	}
	d.Say(fmt.Sprintf("mysqld of %s does not answer, and nobody can take over: %s; it is killed and started again if it does not answer by %s", r.Instance, why, until.UTC().Format("15:04:05 MST")))
	d.RecheckAt(until)
	return true
}

// restartInPlace: when nobody may be promoted, starting the crashed mysqld again
// is the remedy. Once the primary has promised to stay read-only it takes a new
// promotion instead.
func (d *decision) restartInPlace() bool {
	r, may := d.mayComeBack()
	if !may {
		return false
	}
	why := d.nobodyTakesOver()
	if why == "" && r.State != core.Failed {
		why = d.nobodyHasCaughtUp()
	}
	if why == "" {
		return false
	}
	switch r.State {
	case core.Stopped:
		d.startInPlace(r, why)
	case core.Failed:
		d.Block(r.Reason, fmt.Sprintf("%s: %s; and nobody can take over: %s", r.Instance, r.Problem().String(), why))
	default:
		d.Say(fmt.Sprintf("%s comes back by itself (%s); nobody can take over: %s", r.Instance, r.State, why))
	}
	return true
}

func (d *decision) startInPlace(r core.Report, why string) {
	d.Do(core.RestartInPlace{Instance: r.Instance, Epoch: d.Status.Promotion.Epoch})
	d.Announce(true, core.ReasonRestartInPlace, r.Instance, "mysqld of "+r.Instance+" is started again in place, for nobody can take over: "+why)
}

// mayComeBack: the primary's manager answers, has the data, and may make its mysqld
// writable again in the present epoch.
func (d *decision) mayComeBack() (core.Report, bool) {
	r, known := d.holder().Report.Get()
	if cannotGetThere(d.Observation, d.Status.Operation) != "" {
		return r, false // it does not come back by itself: only another promotion helps
	}
	if !known || !mayGoOn(r, d.Status.Promotion) || r.State == core.Hung || r.Data != core.DataPopulated && r.Data != core.DataUnknown {
		return r, false
	}
	l, seen := d.Cluster.Lease.Get()
	return r, !seen || l.Holder != "" || l.Epoch <= d.Status.Promotion.Epoch // else it was taken from it
}

// nobodyTakesOver tells why no other instance may be promoted, by what is known
// before anything was done about it; "" when one may.
func (d *decision) nobodyTakesOver() string {
	e := d.ballot(d.Status.Promotion.Instance, "").elect()
	if e.refusal == "" {
		_, e.why = d.exceedsPolicy(e)
	}
	if e.why == "" {
		e.why = d.tooSoon()
	}
	return e.why
}

// nobodyHasCaughtUp tells that whoever would win lacks some of what the primary held when it
// was promoted, which its recovery may have committed without acknowledgement; "" when not,
// or when the primary had the time to come back. Another one would make it diverge.
func (d *decision) nobodyHasCaughtUp() string {
	p, until := d.Status.Promotion, d.Status.FailingSince.Add(recoveryPatience)
	e := d.ballot(p.Instance, "").elect()
	if e.refusal != "" || e.holds.Contains(p.RequiredGTID) || !d.Now.Before(until) {
		return ""
	}
	d.RecheckAt(until)
	return fmt.Sprintf("%s, which holds the most of the others, lacks what %s held when it was promoted (%s)",
		e.winner, p.Instance, p.RequiredGTID.Subtract(e.holds).Abbreviate(4))
}

// mayGoOn: the manager may make its mysqld writable in the present epoch.
func mayGoOn(r core.Report, p *core.Promotion) bool {
	return r.FencedBelow <= p.Epoch && (r.PodUID == p.PodUID || p.Node != "" && r.Node == p.Node)
}

// seekProof asks the old primary's manager for its word, if it can be asked and can
// keep a promise; if not, whoever keeps it going is asked to stop.
func (d *decision) seekProof(next int64) {
	d.Status.Operation.Step, d.Status.Operation.Deadline = core.StepProve, time.Time{}
	// A Pod elsewhere that answers can promise nothing for the one that took writes.
	r, known := d.holder().Report.Get()
	if known && mayGoOn(core.Report{PodUID: r.PodUID, Node: r.Node}, d.Status.Promotion) && r.Reason != core.InstanceDiskStalled && d.mayYetPromise(next) {
		d.askToDemote(next)
		return
	}
	asked := d.withhold(next)
	switch {
	case d.awaitLease(next):
	case asked && d.Now.Before(d.podPatience()):
		d.Say(fmt.Sprintf("the primary %s %s (%s); the replicas are asked to stop receiving from it", d.Status.Promotion.Instance, d.cannotPromise(), d.diagnosis.name))
		d.RecheckAt(d.podPatience())
	default:
		d.askToDemote(next)
	}
}

// mayYetPromise: the manager has not been asked for long. A demotion takes two seconds
// at most, for then mysqld is killed; who takes longer cannot write its promise down.
func (d *decision) mayYetPromise(next int64) bool {
	d.Plan.Memory.Asking = d.Observation.Memory.Asking.Or(next, d.Now)
	until := d.Plan.Memory.Asking.At.Add(promisePatience)
	if d.Now.Before(until) {
		d.RecheckAt(until)
		return true
	}
	return false
}

// cannotPromise is why the word of the primary's manager is not waited for.
func (d *decision) cannotPromise() string {
	if d.holder().Report.Known() {
		return "cannot be asked for a promise"
	}
	return "cannot be reached"
}

// withhold has every replica that can be asked stop receiving and vouching; it
// tells whether any has not yet.
func (d *decision) withhold(next int64) (asked bool) {
	others(d.Observation, d.Status.Promotion.Instance, func(in *core.Instance) {
		r, known := in.Report.Get()
		if known && r.VolumeLocked && (r.Withheld == nil || r.Withheld.Below < next) {
			asked = true
			d.again(core.FreezeIO{Instance: in.Name, Epoch: next})
		}
	})
	return asked
}

// awaitLease waits until the primary's lease has run out and enough instances
// have withheld their vouch, and takes the lease record from it; false when that
// cannot lead to a proof.
func (d *decision) awaitLease(next int64) bool {
	holder := d.holder()
	_, may := withholders(d.Observation, holder.Name, next, 0)
	l, known := d.Cluster.Lease.Get()
	if !known || !isMinority(d.Observation, 1+len(may)) {
		return false
	}
	expires := l.UnchangedSince.Add(core.LeaseTTL)
	switch {
	case l.Epoch >= next && l.Holder == "":
	case d.Now.Before(expires):
		d.Say(fmt.Sprintf("the primary %s %s (%s); waiting until its lease has run out at %s, if it does not renew it",
			holder.Name, d.cannotPromise(), d.diagnosis.name, expires.UTC().Format("15:04:05 MST")))
		d.RecheckAt(expires)
		return true
	case vouchesExpired(d.Observation, holder, next):
		// Until its effect is seen it is repeated, in vain.
		d.Do(core.SeizeLease{Epoch: next, Version: l.Version})
		d.RecheckAt(d.Now.Add(receiveLook))
	}
	d.Say(fmt.Sprintf("the primary %s %s (%s), and its lease has run out; waiting until nobody can have vouched for it any more", holder.Name, d.cannotPromise(), d.diagnosis.name))
	d.RecheckAt(d.Now.Add(withheldLook))
	return true
}

// askToDemote asks the holder's manager to promise that it is not writable below
// epoch next; without a manager to ask there is nothing to do but to wait.
func (d *decision) askToDemote(next int64) {
	holder, p := d.holder(), d.Status.Promotion
	r, known := holder.Report.Get()
	switch {
	case known && r.FencedBelow < next:
		d.again(core.Demote{Instance: holder.Name, Epoch: next})
		d.Say("asking the manager of " + holder.Name + " to make mysqld read-only and to promise that it stays so")
	case known && mayGoOn(core.Report{PodUID: r.PodUID, Node: r.Node}, p) && r.Data == core.DataPopulated:
		d.Do(core.Demote{Instance: holder.Name, Epoch: next})
		d.Say(fmt.Sprintf("waiting for %s to become read-only: %s", holder.Name, demotionProgress(r)))
	case !known && d.diagnosis.name == core.PodGone && d.Now.Before(d.podPatience()):
		d.Say("waiting for the new Pod of " + holder.Name + ", whose manager may promise that the former does not take writes any more")
		d.RecheckAt(d.podPatience())
	default:
		d.Block(core.RefusalNoProof, d.noProof(known))
	}
}

// podPatience is until when a new Pod of a primary whose Pod is gone is waited for
// before it is called a problem.
func (d *decision) podPatience() time.Time {
	return d.Status.FailingSince.Add(d.Cluster.FailoverDelay + newPodPatience)
}

func demotionProgress(r core.Report) string {
	switch {
	case !r.VolumeLocked:
		return "its manager waits for the lock on the volume"
	case r.ClientSessions > 0:
		return fmt.Sprintf("%d client sessions are still open", r.ClientSessions)
	default:
		return string(r.State)
	}
}

func (d *decision) noProof(answers bool) string {
	f, p := d.diagnosis, d.Status.Promotion
	why := "its manager does not answer and its kubelet has not reported its end"
	if answers {
		why = "the Pod that answers is not the one that took writes, and nobody has reported the end of that one"
	}
	node := p.Node
	if node == "" {
		node = "NODE"
	}
	otherMembers(d.Observation, p.Instance, func(in *core.Instance) {
		pod, _ := in.Pod.Get()
		if gone := draft.Without(unspokenFor(d.Observation, in), pod.UID); len(gone) > 0 {
			why += fmt.Sprintf("; %s was recreated since, and its former Pod %s may live on beside the primary and vouch for it", in.Name, strings.Join(gone, ", "))
		}
	})
	return fmt.Sprintf("the primary %s fails (%s: %s), and there is no proof yet that it cannot take writes: %s%s. Nobody is promoted meanwhile. "+
		"If its node is dead for good, taint it: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute; to promote another and lose what it does not hold: kubectl cnmsql failover %s --to INSTANCE --accept-data-loss", p.Instance, f.name, f.says, why, d.withoutLease(), node, d.Cluster.Name)
}

// withoutLease tells that the lease proves nothing, and that switching it on is no remedy.
func (d *decision) withoutLease() string {
	switch {
	case goesByLease(d.Observation) || d.Status.Promotion.Size < 2:
		return ""
	case d.Cluster.PrimaryLease:
		return "; it has not said that it goes by spec.enablePrimaryLease, so that a lease which runs out proves nothing"
	}
	return "; switching spec.enablePrimaryLease on now does not help, for it would not hear of that"
}

// holdElection reads the candidates' positions after the proof, and promotes one.
func (d *decision) holdElection(next int64, proof proven) {
	begun := d.electingSince(next)
	d.Status.Operation.Step, d.Status.Operation.Deadline = core.StepElect, begun.Add(electionPatience)
	// A proof by Kubernetes' word is as old as the word is repeated: what was read
	// since this operator first had it was certainly read after it.
	since := begun.Add(time.Nanosecond)
	if proof.since.Before(since) {
		since = proof.since
	}
	if !d.positionsStable(next, since, begun.Add(electionPatience)) {
		return
	}
	d.electSuccessor(proof, since)
}

// electingSince is since when this very operator has had a proof for the next
// epoch. One that has just started has only just got it: what another one's clock
// said in the status is not held against what is read now.
func (d *decision) electingSince(next int64) time.Time {
	d.Plan.Memory.Proven = d.Observation.Memory.Proven.Or(next, d.Now)
	return d.Plan.Memory.Proven.At
}

// positionsStable: every instance that is heard of was asked after the proof, and
// none still receives what a dead primary sent. Those that go on receiving have
// their IO threads stopped. A demoted primary that answers sends on what it
// holds, and is asked itself.
func (d *decision) positionsStable(next int64, since, patience time.Time) bool {
	stable := true
	_, sends := serving(d.holder())
	for i := range d.Instances {
		in := &d.Instances[i]
		if in.Name == d.Status.Promotion.Instance && !sends {
			continue
		}
		if d.Now.Before(patience) && !d.fresh(in, since) {
			stable = false
			continue
		}
		if r, ok := serving(in); ok && !sends && receives(r) && r.FrozenBelow < next {
			stable = false
			d.stopReceiving(in.Name, next, since)
		}
	}
	if !stable {
		d.Say("reading what the replicas hold")
		d.RecheckAt(patience)
	}
	return stable
}

func (d *decision) stopReceiving(name string, next int64, since time.Time) {
	if d.Now.Before(since.Add(receiveGrace)) {
		d.Do(core.Refresh{Instance: name})
		d.RecheckAt(d.Now.Add(receiveLook))
		return
	}
	d.again(core.FreezeIO{Instance: name, Epoch: next})
}

// electSuccessor promotes who holds the most: a replica, or the demoted primary
// itself once its mysqld can be asked. When no replica may be promoted, that is
// waited for.
func (d *decision) electSuccessor(proof proven, since time.Time) {
	holder := d.holder()
	b := d.ballot("", d.Status.Operation.To)
	b.since = since
	r, serves := serving(holder)
	if !serves {
		b.exclude = holder.Name
	}
	e := d.electWithin(b)
	switch {
	case e.refusal == "":
		d.grant(e, proof, d.promotionAcks())
		d.Say("promoting " + e.winner)
	case serves && r.Terminating:
		d.Say(fmt.Sprintf("waiting until a replica holds all that %s holds, which is being stopped", holder.Name))
	case d.comesBack(holder):
		// It waits for a word before it recovers, and others may wait for what it holds. It is
		// started to say that, also where it may not open any more, for its lease was taken.
		if back, known := holder.Report.Get(); known && back.State == core.Stopped && mayGoOn(back, d.Status.Promotion) {
			d.startInPlace(back, e.why)
		}
		d.Say(fmt.Sprintf("waiting for %s to say what it holds; nobody else can be promoted: %s", holder.Name, e.why))
	default:
		d.Block(e.refusal, fmt.Sprintf("the primary %s fails (%s: %s), and nobody is promoted: %s%s", holder.Name, d.diagnosis.name, d.diagnosis.says, e.why, d.wayOut(e.refusal)))
	}
}

// wayOut tells what a human may do who would rather lose something than wait.
func (d *decision) wayOut(refusal core.Reason) string {
	switch refusal {
	case core.RefusalTooFewKnown, core.RefusalIncomparable, core.RefusalAllDiverged:
		return ". To promote one all the same and lose what it does not hold: kubectl cnmsql failover " + d.Cluster.Name + " --to INSTANCE --accept-data-loss"
	default:
		return ""
	}
}

// electWithin holds an election within the bounds that the user set. If they
// forbid the winner, the demoted primary itself may be as good.
func (d *decision) electWithin(b ballot) election {
	e := b.elect()
	if e.refusal != "" {
		return e
	}
	refusal, why := d.exceedsPolicy(e)
	if refusal == "" {
		return e
	}
	b.prefer = d.Status.Promotion.Instance
	if again := b.elect(); again.refusal == "" && again.winner == b.prefer {
		return again
	}
	return election{refusal: refusal, why: why}
}

// comesBack: the old primary's manager answers and starts mysqld by itself, or
// its new Pod is on its way.
func (d *decision) comesBack(holder *core.Instance) bool {
	r, known := holder.Report.Get()
	if !known {
		pod, podKnown := holder.Pod.Get()
		return podKnown && d.diagnosis.name == core.PodGone && (!pod.Exists || pod.NeverStarted)
	}
	_, serves := serving(holder)
	return !serves && r.State != core.Failed && r.State != core.Fenced && !r.Terminating &&
		(r.Data == core.DataPopulated || r.Data == core.DataUnknown)
}

func (d *decision) ballot(exclude, prefer string) ballot {
	return ballot{o: d.Observation, exclude: exclude, prefer: prefer, diverged: d.Status.Diverged}
}
