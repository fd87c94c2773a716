package sim

import (
	"maps"
	"math"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// plain are the faults in which nobody and nothing but the network and processes fails.
var plain = []string{"mysqld crashes", "manager crashes", "node loses power", "node is cut off",
	"node cannot reach the API server",
	"node cannot reach the operator", "two nodes are cut apart", "one direction is cut", "the network is split",
	"the API server is away",
	"acknowledgements are late", "replicas cannot reach the primary",
	"the primary and one replica are cut off together",
	"node cannot reach the control plane", "node reaches only the API server",
	"the operators cannot reach the API server",
	"a link is slow", "the operator crashes", "the operator crashes after its next status", "two operators are at work"}

func isPlain(kind string) bool { return slices.Contains(plain, kind) }

// checkReturned fails the run when, under quorum, a former primary does not come back in order
// from crashes and partitions. What it wrote and nobody acknowledged is rolled back, and not
// recovered beside a successor that lacks it.
func (tr *truth) checkReturned(c *clusterObject) {
	if p := c.status.Promotion; p != nil {
		// What was promised ended for a moment, or a human gave it up: nothing may be cut.
		if _, seen := tr.granted[p.Epoch]; !seen {
			tr.granted[p.Epoch] = grant{tr.w.now, maps.Clone(tr.told)}
		}
		tr.meddled = tr.meddled || p.Proof == core.ProofAcceptedLoss || tr.lossless && p.LosslessSince == 0
		tr.lossless = p.LosslessSince > 0
	}
	for _, in := range c.status.Diverged {
		if slices.Contains(tr.diverged, in) {
			continue
		}
		if own := tr.recoveredAlone(in); !own.IsEmpty() {
			tr.w.cover.count("finding", "a former primary has diverged by what it recovered")
			if !tr.meddled && !tr.edited && !tr.lied && tr.mode.WaitsForEver() {
				tr.w.fail("tail", "%s has diverged by %s, which nobody acknowledged and it recovered", in, own)
			}
		}
	}
	tr.diverged = c.status.Diverged
}

// recoveredAlone is what an instance recovered, and the primary lacks. What was left behind by a mysqld that was
// started on a good word, and ended again before another had it, is beside the point, and so is what stands behind
// that: it cannot be cut off alone.
func (tr *truth) recoveredAlone(in string) gtid.Set {
	var own gtid.Set
	v := tr.w.api.volume(in)
	if v == nil || v.data.db == nil || tr.holder == nil || tr.holder.manager.me == in {
		return own
	}
	for _, t := range v.data.db.binlog {
		switch {
		case t.acked || tr.holder.db.holds().Contains(t.set):
		case !t.recovered || tr.wasInVain(in, t):
			return own
		default:
			own = own.Union(t.set)
		}
	}
	return own
}

// knownAfter is how long after its recovery the operator may not know yet what a primary has executed.
const knownAfter = time.Second

// grant is when a promotion was granted, and when an operator had heard each instance last by then.
type grant struct {
	at   time.Duration
	told map[string]time.Duration
}

// wasInVain reports whether the first who was promoted after the word on which an instance recovered a transaction
// was so before the operator could know of that, or while no operator heard the instance: the word binds nobody, and
// promotions after that one do not change it.
func (tr *truth) wasInVain(in string, t *txn) bool {
	if t.vouched == (word{}) {
		return false
	}
	first := int64(math.MaxInt64)
	for epoch := range tr.granted {
		if epoch > t.vouched.epoch {
			first = min(first, epoch)
		}
	}
	g, granted := tr.granted[first]
	isUnknown := g.at <= t.recoveredAt+knownAfter || g.told[in] < t.recoveredAt
	return !granted || g.at > t.vouched.at && isUnknown
}
