package async

import (
	"fmt"
	"slices"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// finding is a diagnosis with what it rests on.
type finding struct {
	name core.Diagnosis
	says string
}

// primaryView is what the rules of diagnosis look at.
type primaryView struct {
	o         *core.Observation
	p         *core.Promotion
	holder    *core.Instance
	pod       core.Pod
	podKnown  bool
	report    core.Report
	reachable bool
}

// rule is one line of the table of diagnoses. where is when in words; docs/failover.md has the table.
type rule struct {
	name  core.Diagnosis
	where string
	when  func(*primaryView) bool
	says  func(*primaryView) string
}

func constant(text string) func(*primaryView) string {
	return func(*primaryView) string { return text }
}

// rules in the order in which they are tried; the first that holds is the
// diagnosis. Those with reachable rest on the manager's own word.
var rules = []rule{
	{core.DiagnosisNone, "no primary was chosen yet",
		func(s *primaryView) bool { return s.p == nil }, constant("no primary was chosen yet")},
	{core.PrimaryFenced, "a human fenced it", fenced, constant("it is fenced")},
	{core.PrimaryPromoting, "it was seen writable, but its latest report is older than its promotion",
		isBeforePromotion, constant("its latest report is older than its promotion")},
	{core.PrimaryDataLost, "its volume is empty", dataLost, constant("its volume is empty")},
	{core.PrimaryFailed, "its manager says `Failed`, with a reason",
		func(s *primaryView) bool { return s.reachable && s.report.State == core.Failed },
		func(s *primaryView) string { return s.report.Problem().String() }},
	{core.PrimaryHung,
		"its mysqld runs but does not answer its own manager, or its volume has completed no write for 6 s",
		func(s *primaryView) bool { return s.reachable && s.report.State == core.Hung }, hungText},
	{core.PrimaryLostTransactions,
		"it takes writes, but replicas hold transactions of its own server that it does not have",
		func(s *primaryView) bool { return isWritable(s) && !lostTransactions(s.o).IsEmpty() },
		func(s *primaryView) string {
			return "replicas hold transactions of its own that it does not have: " +
				lostTransactions(s.o).Abbreviate(10)
		}},
	{core.PrimaryTerminating, "it takes writes, and its Pod is being stopped",
		func(s *primaryView) bool { return isWritable(s) && s.isTerminating() }, constant("its Pod is being stopped")},
	{core.PrimaryIsolated,
		"`quorum`: it takes writes and can be reached, but so many replicas cannot reach it that commits hang",
		isolated, constant("commits hang: it takes writes, but its replicas cannot reach it")},
	{core.PrimaryFull,
		"it takes writes, but no commit has ended for 10 s, and less than 16 MiB are free on its volume",
		isFull, func(s *primaryView) string { return s.report.Message }},
	{core.PrimaryHealthy, "it takes writes",
		isWritable, func(s *primaryView) string { return "it " + serves(s.p) }},
	{core.PrimaryClosed, "`quorum`: it is read-only and gives its data to other instances",
		closed, constant("it was made read-only to give its data to replicas; without them, no commit would end")},
	{core.PrimaryDemoted, "it is read-only and promised to stay so",
		demoted, constant("it was made read-only so that another can take over")},
	{core.PrimaryPromoting, "it may take writes, has not done so yet, and nothing hinders it",
		promoting, constant("it is being made writable")},
	{core.MysqldDown, "its manager says that mysqld does not run, or does not take writes",
		func(s *primaryView) bool { return s.reachable }, downText},
	{core.PrimaryDemoted, "its manager cannot be reached, but promised before that it stays read-only",
		demotedByLatest, constant("its manager promised to stay read-only before it went away")},
	{core.PodGone, "the Pod that took writes does not exist, was replaced, or has ended", podGone, goneText},
	{core.PodGone, "its node is gone or out of service, no replica receives from it, and its Lease was not renewed " +
		"for 15 s",
		func(s *primaryView) bool { return s.holder != nil && isNodeEnded(s.o, s.holder) },
		constant("its node is gone or out of service")},
	{core.PrimaryPromoting, "it never took writes, and its Pod has not started yet",
		func(s *primaryView) bool { return s.p.WritableSince.IsZero() && s.podKnown && s.pod.NeverStarted },
		constant("its Pod is starting")},
	{core.PrimaryUnreachableButReplicasStream,
		"its manager cannot be reached, but replicas receive from its mysqld",
		func(s *primaryView) bool { return receivers(s.o) > 0 },
		func(s *primaryView) string {
			return "its manager cannot be reached" + s.holder.WhyUnheard() + ", but replicas receive from it"
		}},
	{core.PrimaryUnreachableReplicasLost,
		"its manager cannot be reached, and a replica tries to receive but fails, or has heard nothing for 1.25 s",
		func(s *primaryView) bool { return losers(s) > 0 },
		func(s *primaryView) string {
			return "its manager cannot be reached" + s.holder.WhyUnheard() + ", and replicas do not receive from it"
		}},
	{core.PrimaryUnreachable, "its manager cannot be reached, and no replica can tell more",
		func(*primaryView) bool { return true },
		func(s *primaryView) string { return "its manager cannot be reached" + s.holder.WhyUnheard() }},
}

func viewPrimary(o *core.Observation) *primaryView {
	s := &primaryView{o: o, p: o.Cluster.Status.Promotion, holder: holderOf(o)}
	if s.holder != nil {
		s.pod, s.podKnown = s.holder.Pod.Get()
		s.report, s.reachable = s.holder.Report.Get()
	}
	return s
}

// diagnose names what is known of the primary.
func diagnose(o *core.Observation) finding {
	s := viewPrimary(o)
	for _, r := range rules {
		if r.when(s) {
			return finding{r.name, r.says(s)}
		}
	}
	return finding{core.PrimaryUnreachable, "nothing is known of it"}
}

func isWritable(s *primaryView) bool { return s.reachable && writable(s.report, s.p) }

func (s *primaryView) isTerminating() bool {
	return s.report.Terminating || s.podKnown && s.pod.Terminating
}

// fenced reports whether a human fenced the primary, also while the primary has not come back since
// that was taken back.
func fenced(s *primaryView) bool {
	return slices.Contains(s.o.Cluster.Status.Fenced, s.p.Instance) || s.reachable && s.report.State == core.Fenced
}

// isolated reports whether so many replicas try in vain to receive that commits cannot be
// acknowledged, and those that try are enough to elect another primary.
func isolated(s *primaryView) bool {
	p, n := s.p, len(s.o.Cluster.Status.Members)
	return isWritable(s) && s.o.Cluster.Durability.Mode.WaitsForEver() && p.RequiredAcks > 0 &&
		receivers(s.o) < p.RequiredAcks && connectors(s) >= n-p.RequiredAcks
}

// isFull reports whether commits of the primary wait for space on its volume.
func isFull(s *primaryView) bool { return isWritable(s) && s.report.LacksSpace() }

// isBeforePromotion reports whether the granted primary was seen writable, and what is known of it
// here was said before it had seen that it is promoted. Another operator sees more at this moment.
// A report that stays so old is dropped, and then the granted primary is unreachable.
func isBeforePromotion(s *primaryView) bool {
	return s.reachable && !s.p.WritableSince.IsZero() && s.report.PodUID == s.p.PodUID && s.report.ViewEpoch > 0 &&
		s.report.ViewEpoch < s.p.Epoch
}

func dataLost(s *primaryView) bool {
	if !s.reachable || s.o.Cluster.Status.EstablishedAt.IsZero() {
		return false
	}
	return s.report.Data == core.DataEmpty || s.report.Data == core.DataScratch
}

func demoted(s *primaryView) bool {
	return s.reachable && s.report.NoWritesBelow > s.p.Epoch && s.report.WritableEpoch == 0 &&
		s.report.State == core.Running
}

// closed reports whether the primary gives its data, and is on its way to that or to opening again.
func closed(s *primaryView) bool {
	op := s.o.Cluster.Status.Operation
	return s.reachable && op != nil && op.Kind == core.OperationGiveData && op.Step != core.StepPromote &&
		promises(s.holder.Report, s.p, s.p.Epoch+1)
}

// promoting reports whether the granted primary never was writable in this epoch
// and nothing hinders it.
func promoting(s *primaryView) bool {
	return s.reachable && s.p.WritableSince.IsZero() && s.report.State != core.Stopped &&
		cannotGetThere(s.o, s.o.Cluster.Status.Operation) == "" &&
		s.report.NoWritesBelow <= s.p.Epoch && s.report.PodUID == s.p.PodUID
}

// cannotGetThere tells why the holder will not become writable by itself: it cannot
// apply what it has, or it lacks what it must have, and nobody can give it any more.
// "" when it is, or may yet.
func cannotGetThere(o *core.Observation, op *core.Operation) string {
	p, holder := o.Cluster.Status.Promotion, holderOf(o)
	if p == nil || holder == nil {
		return ""
	}
	r, serves := serving(holder)
	if holder.Report.Is(cannotComplete) {
		return r.Message
	}
	missing := gtid.Set{}
	if serves && p.WritableSince.IsZero() && r.NoWritesBelow <= p.Epoch && hasSeen(holder, p) {
		missing = p.RequiredGTID.Subtract(r.Server.Holds())
	}
	if missing.IsEmpty() || !isSourceLost(o, missing, op) {
		return ""
	}
	return fmt.Sprintf("it lacks %s, which %s had, and nobody can give it that any more", missing.Abbreviate(4), p.From)
}

// cannotComplete reports whether the manager says that its server will not get what it must have.
func cannotComplete(r core.Report) bool {
	return r.Reason == core.InstanceTransactionsMissing || r.Reason == core.InstanceApplierStopped
}

// hasLost reports whether the manager says that its server, which has taken writes in this epoch, has
// lost some of them.
func hasLost(r core.Report, p *core.Promotion) bool {
	return r.Reason == core.InstanceTransactionsMissing && r.LastWritable == p.Epoch && mayGoOn(r, p)
}

// hasSeen reports whether the position of an instance was surely read after the instance had seen
// the promotion and could not be written to any more.
func hasSeen(in *core.Instance, p *core.Promotion) bool {
	return slices.ContainsFunc(in.Earlier, func(f core.Fact[core.Report]) bool {
		r, known := f.Get()
		return known && r.SeenEpoch >= p.Epoch && r.WritableEpoch == 0 && in.Report.ReadAfter(f)
	})
}

// isSourceLost reports whether the former primary does not send what is missing and never will, for
// its data is gone, or its binary log of that. In a failover the former primary is not waited for,
// unless it can be asked.
func isSourceLost(o *core.Observation, missing gtid.Set, op *core.Operation) bool {
	p := o.Cluster.Status.Promotion
	if r, serves := serving(holderOf(o)); serves && receives(r) && r.Server.Replication.Hears() {
		return false
	}
	from := o.Instance(p.From)
	if from == nil || from.IsGone() || from.SaysEmpty() {
		return true
	}
	if r, sends := serving(from); sends {
		return hasSeen(from, p) && !r.Server.Holds().Subtract(r.Server.Purged).Contains(missing)
	}
	return op != nil && op.Kind == core.OperationFailover
}

// demotedByLatest reports whether the manager cannot be asked any more, and will not take writes in
// this epoch when it comes back.
func demotedByLatest(s *primaryView) bool {
	if s.holder == nil || s.reachable {
		return false
	}
	p, ok := managerFenced(s.o, s.holder, s.p.Epoch+1)
	return ok && p.proof == core.ProofManagerFenced
}

func hungText(s *primaryView) string {
	if s.report.Reason == core.InstanceDiskStalled {
		return "its volume completes no write"
	}
	return "mysqld does not answer its own manager"
}

func downText(s *primaryView) string {
	if why := cannotGetThere(s.o, s.o.Cluster.Status.Operation); why != "" {
		return "it was promoted, and cannot become writable: " + why
	}
	text := fmt.Sprintf("its manager says %s", s.report.State)
	if s.report.State == core.Running {
		text = "mysqld runs, but does not take writes in this epoch"
	}
	if s.report.Message != "" {
		text += ": " + s.report.Message
	}
	return text
}

// podGone reports whether the Pod that may be writable does not exist, or the kubelet says that it
// ended. It does not follow that its mysqld is dead.
func podGone(s *primaryView) bool {
	return s.podKnown && (!s.pod.Exists || s.pod.Terminated || s.pod.UID != s.p.PodUID)
}

func goneText(s *primaryView) string {
	switch {
	case s.pod.UID != s.p.PodUID || !s.pod.Terminated:
		return "the Pod that took writes is gone"
	case s.holder.Hangs() != "":
		return s.holder.Hangs()
	}
	return "the Pod that took writes has ended"
}

// receivers counts the reachable members that receive from the holder.
func receivers(o *core.Observation) int {
	n, primary := 0, o.Cluster.Status.Promotion.Instance
	otherMembers(o, primary, func(in *core.Instance) {
		if r, ok := serving(in); ok && follows(r, primary) && r.Server.Replication.Hears() {
			n++
		}
	})
	return n
}

// connectors counts the reachable members that follow the holder and cannot
// connect to it, for no other reason. Who is turned away has reached it.
func connectors(s *primaryView) int {
	n := 0
	otherMembers(s.o, s.p.Instance, func(in *core.Instance) {
		r, ok := serving(in)
		if ok && follows(r, s.p.Instance) && r.NoReceivingBelow <= s.p.Epoch &&
			(r.Server.Replication.IOConnecting || r.Server.Replication.Silent) && r.Server.Replication.SQLError == "" &&
			!isTurnedAway(r.Server.Replication) &&
			!slices.Contains(s.o.Cluster.Status.Diverged, in.Name) {
			n++
		}
	})
	return n
}

// losers counts the reachable replicas that try to receive from the holder in
// vain. One that was told not to receive, or has no space for it, says nothing about it.
func losers(s *primaryView) int {
	n := 0
	others(s.o, s.p.Instance, func(in *core.Instance) {
		r, ok := serving(in)
		if !ok || r.NoReceivingBelow > s.p.Epoch || slices.Contains(s.o.Cluster.Status.Diverged, in.Name) {
			return
		}
		if asksInVain(r, s.p) || follows(r, s.p.Instance) && receivesInVain(r.Server.Replication) {
			n++
		}
	})
	return n
}

// asksInVain reports whether an instance does not reach the primary that it asks for a position.
// One that was started while the primary is away has no connection to lose: it does not begin to
// receive before the primary has told its position.
func asksInVain(r core.Report, p *core.Promotion) bool {
	return r.Reason == core.InstanceAsksInVain && r.SeenEpoch == p.Epoch
}

func receivesInVain(c *core.Replication) bool {
	return c.Silent || !c.IORunning && !c.NoSpace && (c.IOConnecting || c.IOError != "")
}
