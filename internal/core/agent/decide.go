package agent

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// rule decides, or passes.
type rule func(*Facts) (Decision, bool)

// rulesOf an instance, by the topology of its Cluster.
var rulesOf = map[core.Topology]func() []rule{
	core.TopologyAsync: replicaRules,
	core.TopologyGroup: memberRules,
}

// topology is the Cluster's; before that is known, no rule touches data, of whatever topology.
func (f *Facts) topology() core.Topology {
	if f.Cluster == nil {
		return core.TopologyAsync
	}
	return f.Cluster.Topology
}

// Decide tells what to do. The first rule that applies decides.
func Decide(f *Facts) Decision {
	for _, rule := range rulesOf[f.topology()]() {
		if d, applies := rule(f); applies {
			return unfencing(f, d)
		}
	}
	return unfencing(f, Decision{State: core.Running})
}

// replicaRules are those of an instance that is a primary or follows one.
func replicaRules() []rule {
	return []rule{
		mayNotTouch,
		terminate,
		isolateItself,
		refuseWrites,
		fenced,
		breakOffStuck,
		letActivityGoOn,
		makeData,
		breakOffRecovery,
		cutTail,
		startServer,
		restartHung,
		restoreLogin,
		awaitServer,
		clone,
		promote,
		follow,
	}
}

func tell(state core.State, reason core.Reason, message string, actions ...Action) (Decision, bool) {
	return Decision{State: state, Reason: reason, Message: message, Actions: actions}, true
}

func pass() (Decision, bool) { return Decision{}, false }

// mayNotTouch leaves data and mysqld alone while the volume is not ours, or not surely, and while
// nothing is known of the Cluster.
func mayNotTouch(f *Facts) (Decision, bool) {
	if d, waits := problem(f); waits && !f.Locked && f.TerminatingSince.IsZero() {
		return d, true
	}
	switch {
	case !f.Locked && f.TerminatingSince.IsZero():
		return tell(core.Starting, core.InstanceVolumeInUse, "waiting for the lock on the volume: another manager of "+
			"this instance is still running on this node, or the volume completes no write")
	case !f.Locked:
		return tell(core.Stopped, core.InstanceVolumeInUse, "stopped while waiting for the lock on the volume", Exit{})
	case f.Foreign && f.TerminatingSince.IsZero():
		return tell(core.Failed, core.InstanceForeignData, "the volume holds the data of another cluster or instance: "+
			"nothing was touched; attach the right volume, or delete this instance's PersistentVolumeClaim if its "+
			"data is not needed")
	case f.Cluster == nil && f.TerminatingSince.IsZero() && !f.Mysqld.Up:
		return tell(core.Starting, core.InstanceClusterUnknown,
			"waiting to read the Cluster from the API server")
	}
	return pass()
}

// refuseWrites makes mysqld read-only when it may take writes without permission. That is
// ended before all else.
func refuseWrites(f *Facts) (Decision, bool) {
	switch {
	case !f.Mysqld.Up || !f.Mysqld.MayWrite && f.WritableEpoch == 0:
		return pass()
	case f.Permitted() && f.WritableEpoch != 0:
		return pass()
	case f.WritableEpoch == 0 && f.Permitted():
		return tell(core.Running, core.InstanceDemoting, "mysqld may take writes, but not in the epoch of its "+
			"promotion: its sessions are closed, and it is promoted again", Demote{"it is promoted again after that"})
	case f.WritableEpoch == 0:
		return tell(core.Running, core.InstanceDemoting, "mysqld accepts writes although it was not promoted",
			Demote{"not promoted"})
	}
	return tell(core.Running, core.InstanceDemoting, "the promotion of this instance has ended",
		Demote{fmt.Sprintf("epoch %d has ended", f.WritableEpoch)})
}

// makeData fills an empty volume.
func makeData(f *Facts) (Decision, bool) { return fillVolume(f, originOfData) }

// fillVolume makes the data of an instance that has none, from where they have to come.
func fillVolume(f *Facts, origin func(*Facts) (core.DataOrigin, core.Reason, string)) (Decision, bool) {
	if f.Data == core.DataPopulated || f.Data == core.DataScratch {
		return pass()
	}
	if d, waits := problem(f); waits {
		return d, true
	}
	switch from, reason, why := origin(f); from {
	case core.OriginInitialized:
		return tell(core.Initializing, "", "making the cluster's first data", MakeData{from})
	case core.OriginRestored:
		return tell(core.Restoring, "", restoringBackup, MakeData{from})
	case core.OriginImported:
		return tell(core.Restoring, "", copyingServer, MakeData{from})
	case core.OriginCloned:
		return tell(core.Initializing, "", "making scratch data to clone over", MakeData{from})
	default:
		return tell(core.Empty, reason, why)
	}
}

// originOfData returns where an instance without data gets its data from, or why it waits. Only the
// very first data of a cluster that never had a primary are made from nothing or from a backup.
// Whoever else has none must be given them.
func originOfData(f *Facts) (from core.DataOrigin, reason core.Reason, why string) {
	p := f.promotion()
	switch {
	case p == nil && !f.Cluster.Established:
		return core.OriginNone, "", "waiting for the operator to choose the first primary"
	case p != nil && p.Instance == f.Me && f.mayBootstrap(p):
		return f.Cluster.FirstData, "", ""
	case p != nil && p.Instance == f.Me:
		return core.OriginNone, core.InstanceDataMissing, "this instance is the primary and its volume is empty; " +
			"an established cluster is never initialised again: promote a replica or restore a backup"
	}
	return core.OriginCloned, "", ""
}

func (f *Facts) mayBootstrap(p *core.Promotion) bool {
	return f.Permitted() && p.Proof == core.ProofBootstrap && p.Epoch == 1 && !f.Cluster.Established
}

// problem tells what hindered the last start, until that may have gone.
func problem(f *Facts) (Decision, bool) {
	if p := f.Problem; p != nil && f.Now.Before(p.RetryAt) &&
		(f.Cluster == nil || p.Generation == f.Cluster.Generation) {
		return tell(core.Failed, p.Reason, p.Message)
	}
	return pass()
}

// startServer starts mysqld when it does not run. Every instance starts at once, but not a primary
// that may be replaced: whether its last writes stay is for the operator to say, or for somebody
// who knows whether it was replaced.
func startServer(f *Facts) (Decision, bool) {
	if f.Mysqld.Up {
		return pass()
	}
	if d, waits := problem(f); waits {
		return d, true
	}
	reason := core.Reason("")
	if f.Mysqld.Ended {
		reason = core.InstanceMysqldCrashed
	}
	down := f.Now.Sub(f.Mysqld.DownSince)
	if f.mayBeReplaced() && down < VerdictWait {
		return tell(core.Stopped, reason, "waiting for the operator to decide whether another instance takes over",
			f.askHeld()...)
	}
	if f.Data == core.DataScratch && f.Mysqld.Failures >= scratchAttempts {
		return tell(core.Initializing, reason,
			"recreating scratch data: mysqld does not start on the data that a clone left behind",
			MakeData{core.OriginCloned})
	}
	if f.Data == core.DataPopulated && f.Mysqld.DataRemoved && f.Cluster != nil && f.Cluster.Group.hasGoneOn() {
		// What it held before is in the group: mysqld takes a copy of no member that lacks some of it.
		return tell(core.Stopped, core.MemberDataRemoved, dataRemoved, ForgetData{})
	}
	if down < backoff(f.Mysqld.Failures) {
		return tell(core.Stopped, reason, fmt.Sprintf("mysqld is started again %s after it ended",
			backoff(f.Mysqld.Failures)))
	}
	if d, waits := f.awaitWord(); waits {
		return d, true
	}
	return tell(core.Stopped, reason, "", append(f.askHeld(), StartServer{})...)
}

// mayBeReplaced reports whether this instance was the primary of this epoch, there are
// other instances, and the operator has not said that nobody else will be promoted. One
// that was fenced is not.
func (f *Facts) mayBeReplaced() bool {
	p := f.promotion()
	return f.Permitted() && f.WasPrimaryEpoch == p.Epoch && f.Cluster.Instances > 1 &&
		f.RestartEpoch < p.Epoch && !f.WasFenced
}

// scratchAttempts to start on scratch data, which a clone that broke off may have
// left unusable. Nothing is lost with it.
const scratchAttempts = 3

const dataRemoved = "a clone began to replace the data of this instance, but did not finish: its data is gone, " +
	"whatever gtid_executed says, and is cloned again"

// backoff is the pause before mysqld is started again after so many failures in
// a row: none after the first.
func backoff(failures int) time.Duration {
	if failures <= 1 {
		return 0
	}
	return min(time.Second<<min(failures-2, 5), 30*time.Second)
}

// restartHung kills mysqld of a replica that has answered nobody for long, and would answer nobody
// for ever. What the replica holds is on its volume, and another instance is writable.
func restartHung(f *Facts) (Decision, bool) {
	if !f.hangs() || f.primary() == "" || f.Now.Sub(f.Mysqld.AnsweredAt) < core.HungLimit {
		return pass()
	}
	return tell(core.Hung, core.InstanceNoAnswer, fmt.Sprintf("mysqld runs and has not answered for %s: it is killed, "+
		"and started again", core.HungLimit),
		StopServer{Kill: true, Why: "it does not answer"})
}

// loginPatience is how long mysqld must have run before it is started again for the sake
// of the manager's account: a start that did not restore it is not repeated at once.
const loginPatience = time.Minute

// restoreLogin kills mysqld when it lets its manager in no more. It restores the account when it
// starts, and only then can it do so read-only. A writable mysqld is helped while it runs.
func restoreLogin(f *Facts) (Decision, bool) {
	m := f.Mysqld
	if !m.LoginRefused || m.MayWrite || f.Data != core.DataPopulated || f.Now.Sub(m.StartedAt) < loginPatience {
		return pass()
	}
	return tell(core.Failed, core.InstanceLoginRefused, "mysqld refuses the instance manager's account: it is killed, "+
		"and restores the account when it is started again",
		StopServer{Kill: true, Why: "it refuses its manager"})
}

// awaitServer waits for mysqld when it runs and does not answer. Recovery may take hours, and only
// maxStartDelay ends it.
func awaitServer(f *Facts) (Decision, bool) {
	m := f.Mysqld
	switch {
	case f.Server != nil && m.Answers:
		return pass()
	case m.LoginRefused:
		return tell(core.Failed, core.InstanceLoginRefused, loginRefusedText(m))
	case m.DiskStalled:
		return tell(core.Hung, core.InstanceDiskStalled, "the volume completes no write; mysqld can commit nothing "+
			"until it does")
	case m.Ending:
		return tell(core.Hung, core.InstanceEnding, "mysqld shuts down")
	case m.Accepted:
		return tell(core.Hung, core.InstanceNoAnswer, "mysqld runs and does not answer")
	case f.Cluster != nil && f.Now.Sub(m.StartedAt) > f.Cluster.MaxStart:
		return tell(core.Recovering, core.InstanceStartTimedOut, fmt.Sprintf("mysqld does not accept connections %s "+
			"after its start; raise spec.maxStartDelay if crash recovery needs longer", f.Cluster.MaxStart),
			StopServer{Kill: true, Why: "start timed out"})
	}
	return tell(core.Recovering, "", "mysqld was started and does not accept connections yet", f.askHeld()...)
}

func loginRefusedText(m Mysqld) string {
	const refuses = "mysqld refuses the instance manager's account. "
	if m.MayWrite {
		return refuses +
			"root@localhost with the password of the root Secret could not restore it either: delete this instance's " +
			"Pod, because a start of mysqld restores it; other instances are restored in the same way"
	}
	return refuses +
		"mysqld is started again a minute after its last start, which restores it; if that does not help, its log " +
		"says which statement failed"
}

// clone copies the data of a donor to an instance with scratch data. Without a donor the
// instance waits for one.
func clone(f *Facts) (Decision, bool) {
	if f.Data != core.DataScratch {
		return pass()
	}
	if f.Donor != "" {
		return tell(core.Cloning, "", "copying the data of "+f.Donor, CloneFrom{f.Donor})
	}
	if f.CloneError != "" {
		return tell(core.AwaitingClone, core.ReasonCloneFailed, "waiting for a donor; the last copy of data failed: "+
			f.CloneError)
	}
	return tell(core.AwaitingClone, "", "waiting for a donor")
}
