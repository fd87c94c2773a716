package async

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/draft"
	"cnmsql.co/internal/gtid"
)

// ballot is what an election is held over.
type ballot struct {
	o *core.Observation
	// exclude is the instance that must not win ("" for none).
	exclude string
	// prefer wins among equals.
	prefer string
	// failed is the primary that the failover began with, where another was promoted since. It comes after
	// the others, and who does not see the present promotion after it; "" elsewhere.
	failed   string
	diverged []string
	// fenced may not win, and all that they hold the winner must hold.
	fenced []string
	// since is when reports begin to count: one from before is a lower bound of what its instance
	// holds. The instance cannot win, and the winner must hold all that the report says.
	since time.Time
	// drained: nobody sends any more. What an instance that still receives says is a lower bound as well.
	drained bool
	// cutBelow is the next epoch where the primary may run on and is cut off from its acknowledgements; 0 elsewhere.
	// Who has not promised to receive nothing below it may yet complete a commit that another has
	// acknowledged, and lost: what it says is a lower bound.
	cutBelow int64
}

// after has the ballot count what was read since a proof.
func (b *ballot) after(proof proven, since time.Time, next int64) {
	b.since = since
	if proof.proof == core.ProofQuorumCut {
		b.cutBelow = next
	}
}

// isFinal reports whether an instance will hold no more than it says of what was acknowledged.
func (b ballot) isFinal(in *core.Instance, r core.Report) bool {
	switch p := b.o.Cluster.Status.Promotion; {
	case in.Report.NotBefore().Before(b.since), b.drained && receives(r):
		return false
	case p != nil && p.Instance == in.Name:
		return true
	}
	return r.NoReceivingBelow >= b.cutBelow
}

// election is its result: a winner and all that it holds, or a refusal.
type election struct {
	winner string
	podUID string
	node   string
	holds  gtid.Set
	// lag is how many seconds old what the winner applies is.
	lag     float64
	refusal core.Reason
	why     string
}

// voter is an instance whose position is known.
type voter struct {
	in       *core.Instance
	report   core.Report
	holds    gtid.Set
	eligible bool
	fenced   bool
	stale    bool
	// lacks tells whether it may have acknowledged more than it holds.
	lacks bool
}

// elect finds the instance that holds everything that every other known,
// non-diverged instance holds. What it has received and not yet applied counts;
// whether it is Ready, or receives at this moment, does not.
func (b ballot) elect() election {
	voters, unknown, diverged := b.voters()
	if len(voters) == 0 {
		return b.nobody(unknown, diverged)
	}
	if e := b.tooFewKnown(voters, unknown); e.refusal != "" {
		return e
	}
	slices.SortFunc(voters, b.byPreference)
	for _, v := range voters {
		if v.eligible && dominates(v, voters) {
			return v.elected()
		}
	}
	return b.refuse(voters)
}

// elected is the result when the voter wins.
func (v voter) elected() election {
	return election{winner: v.in.Name, podUID: v.report.PodUID, node: v.report.Node, holds: v.holds, lag: lag(v.report)}
}

func (b ballot) voters() (voters []voter, unknown, diverged []string) {
	for i := range b.o.Instances {
		in := &b.o.Instances[i]
		if in.Name == b.exclude {
			continue
		}
		if slices.Contains(b.diverged, in.Name) {
			diverged = append(diverged, in.Name)
			continue
		}
		r, ok := serving(in)
		if !ok {
			unknown = append(unknown, in.Name)
			continue
		}
		stale, fenced := !b.isFinal(in, r), slices.Contains(b.fenced, in.Name)
		voters = append(voters, voter{in: in, report: r, holds: r.Server.Holds(),
			eligible: r.IsEligible() && !stale && !fenced && !draft.LosesVolume(in),
			fenced:   fenced, stale: stale, lacks: mayLack(b.o, r)})
	}
	return voters, unknown, diverged
}

// tooFewKnown refuses when an acknowledged commit might be only on instances whose
// positions are not known, though the durability promises it on replicas. The holder itself
// has them all, once it has got what it had to have before it could take writes. One that may
// lack what it acknowledged is no known position. It may win all the same: who holds all that
// enough known positions hold has all that was acknowledged.
func (b ballot) tooFewKnown(voters []voter, unknown []string) election {
	c, known := b.o.Cluster, 0
	for _, v := range voters {
		if v.stale {
			continue
		}
		if b.isHolder(v) && v.holds.Contains(c.Status.Promotion.RequiredGTID) {
			return election{}
		}
		known += btoi(slices.Contains(c.Status.Members, v.in.Name) && !v.lacks)
	}
	switch need, mayElect := c.Durability.Positions(len(c.Status.Members), c.Status.Promotion); {
	case !mayElect:
		return election{refusal: core.RefusalTooFewKnown, why: "commits did not wait for replicas yet, so an " +
			"acknowledged write may be only on the failed primary: bring it back"}
	case known < need:
		return election{refusal: core.RefusalTooFewKnown, why: fmt.Sprintf(
			"the election needs %s with a known position, and has %d%s. %s. Until then an acknowledged write may be "+
				"missing", core.Plural(need, "replica"), known, b.changedText(), b.missingText(voters, unknown))}
	}
	return election{}
}

// changedText says that spec does not ask any more for what the failed primary promised; "" when it does.
func (b ballot) changedText() string {
	if b.o.Cluster.Durability.Mode.IsOnReplicas() {
		return ""
	}
	return "; spec.mysql.semiSync was changed, but the failed primary acknowledged under quorum"
}

func dominates(v voter, all []voter) bool {
	for _, other := range all {
		if !v.holds.Contains(other.holds) {
			return false
		}
	}
	return true
}

func (b ballot) byPreference(x, y voter) int {
	return cmp.Or(
		cmp.Compare(btoi(x.lacks), btoi(y.lacks)),
		cmp.Compare(btoi(x.report.IsFull()), btoi(y.report.IsFull())), // its first commit would hang
		cmp.Compare(btoi(b.seesNothing(x)), btoi(b.seesNothing(y))),
		-cmp.Compare(btoi(x.in.Name == b.prefer), btoi(y.in.Name == b.prefer)),
		cmp.Compare(btoi(b.isHolder(x)), btoi(b.isHolder(y))),
		cmp.Compare(btoi(x.in.Name == b.failed), btoi(y.in.Name == b.failed)),
		core.CompareSeries(x.report.Version, y.report.Version), // the others may not be able to follow a later one
		cmp.Compare(rank(b.o.Cluster.Policy, x.in.Name), rank(b.o.Cluster.Policy, y.in.Name)),
		cmp.Compare(lag(x.report), lag(y.report)),
		cmp.Compare(x.in.Ordinal, y.in.Ordinal))
}

// seesNothing reports whether the voter has not seen the present promotion, and so would not see the next:
// it does not reach the API server.
func (b ballot) seesNothing(v voter) bool {
	p := b.o.Cluster.Status.Promotion
	return b.failed != "" && p != nil && !seesPromotion(v.report, p)
}

// isHolder reports whether the voter is the granted primary. Among equals, who has just failed or
// was asked to go is the last choice.
func (b ballot) isHolder(v voter) bool {
	p := b.o.Cluster.Status.Promotion
	return p != nil && v.in.Name == p.Instance
}

func lag(r core.Report) float64 {
	if r.Server.Replication == nil {
		return 0
	}
	return r.Server.Replication.LagSeconds
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (b ballot) nobody(unknown, diverged []string) election {
	switch {
	case len(unknown) > 0:
		return election{refusal: core.RefusalNoCandidate,
			why: "no replica's position is known (" + strings.Join(unknown, ", ") + " cannot be asked)"}
	case len(diverged) > 0:
		return election{refusal: core.RefusalAllDiverged,
			why: "every replica candidate has diverged from the failed primary (errant transactions); manual " +
				"recovery required: " + strings.Join(diverged, ", ")}
	default:
		return election{refusal: core.RefusalNoCandidate, why: "there is no replica"}
	}
}

// refuse tells why none of the voters may win.
func (b ballot) refuse(voters []voter) election {
	for _, v := range voters {
		if dominates(v, voters) {
			return election{refusal: core.RefusalNoCandidate, why: fmt.Sprintf(
				"%s holds the most transactions, but cannot be promoted: %s", v.in.Name, b.whyUnfit(v)+b.startText(v))}
		}
	}
	return election{refusal: core.RefusalIncomparable,
		why: "no replica holds all transactions: " + ownText(voters)}
}

// startText tells how to start an applier again that stopped and hinders nothing else; "" where none did.
func (b ballot) startText(v voter) string {
	if v.fenced || v.stale || draft.LosesVolume(v.in) || v.report.Terminating || v.report.NeedsReclone {
		return ""
	}
	return fmt.Sprintf(". Remove the cause, then start the applier: kubectl cnmsql mysql %[2]s --instance %[1]s, "+
		"then START REPLICA SQL_THREAD", v.in.Name, b.o.Cluster.Name)
}

func ownText(all []voter) string {
	var holds []draft.Holding
	for _, v := range all {
		holds = append(holds, draft.Holding{Name: v.in.Name, Holds: v.holds})
	}
	return draft.OwnText(holds)
}

func (b ballot) whyUnfit(v voter) string {
	if v.fenced {
		return draft.FencedText(b.o.Cluster.Name, v.in.Name)
	}
	if v.stale && receives(v.report) {
		return "it did not stop receiving from the failed primary in time"
	}
	if v.stale {
		return "it does not answer in time"
	}
	if draft.LosesVolume(v.in) {
		return draft.VolumeGoes
	}
	return whyUnfit(v.report)
}

func whyUnfit(r core.Report) string {
	if r.Terminating {
		return "it is being stopped"
	}
	return "its applier stopped: " + replicationError(r)
}
