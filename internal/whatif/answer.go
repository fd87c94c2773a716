package whatif

import (
	"fmt"
	"time"

	"cnmsql.co/internal/core"
)

// How instances are lost.
type How string

// Ways of losing an instance.
const (
	// NodeLost is a node that nobody reaches, nor anything on it; whether it lives, nobody knows.
	NodeLost How = "node-lost"
	// MysqldDown is a mysqld that ended while its manager lives.
	MysqldDown How = "mysqld-down"
	// PodDeleted is a Pod that is asked to go, as by kubectl delete pod or a drain.
	PodDeleted How = "pod-deleted"
)

// Outcome is how the play ended.
type Outcome string

// Outcomes.
const (
	// Promoted says that an instance is granted the promotion.
	Promoted Outcome = "Promoted"
	// Continues says that the primary goes on, or comes back by itself.
	Continues Outcome = "Continues"
	// Blocked says that nobody is promoted until something outside changes.
	Blocked Outcome = "Blocked"
	// Undecided says that the play was not over when the model gave up.
	Undecided Outcome = "Undecided"
)

// Wait is time that passes, and what is waited for meanwhile.
type Wait struct {
	Seconds float64 `json:"seconds"`
	For     string  `json:"for"`
}

// Losses tells what acknowledged writes would not survive.
type Losses struct {
	// Nothing: no acknowledged write can be missing.
	Nothing bool `json:"nothing"`
	// Transactions that the new primary lacks of those that the present one had
	// when it was asked; nil when that is not known.
	Transactions *uint64 `json:"transactions,omitempty"`
	Because      string  `json:"because"`
}

// Answer is what would happen.
type Answer struct {
	// Primary is who may take writes now; Lost are the instances that are lost, with
	// those that go with them.
	Primary string   `json:"primary"`
	Lost    []string `json:"lost"`
	How     How      `json:"how"`

	Outcome Outcome `json:"outcome"`
	// Promoted is who may take writes in the end, if it was granted again.
	Promoted string     `json:"promoted,omitempty"`
	Epoch    int64      `json:"epoch,omitempty"`
	Proof    core.Proof `json:"proof,omitempty"`
	Evidence string     `json:"evidence,omitempty"`
	// Diagnosis, Refusal and Because are the operator's last words when nobody is
	// promoted.
	Diagnosis core.Diagnosis `json:"diagnosis,omitempty"`
	Refusal   core.Reason    `json:"refusal,omitempty"`
	Because   string         `json:"because,omitempty"`
	// WritesHang: the primary goes on, but no commit can be acknowledged.
	WritesHang bool `json:"writesHang,omitempty"`
	// WritesHung is for how many seconds none can be, where the primary goes on and they can be
	// in the end.
	WritesHung float64 `json:"writesHungSeconds,omitempty"`

	Waits   []Wait  `json:"waits"`
	Seconds float64 `json:"seconds"`
	// ToApply is what the promoted instance has received and not yet applied.
	ToApply uint64  `json:"toApply,omitempty"`
	Losses  *Losses `json:"losses,omitempty"`
	// Group is what becomes of the group; nil where there is none.
	Group   *GroupAnswer `json:"group,omitempty"`
	Assumed []string     `json:"assumed,omitempty"`
}

// losses of a promotion: by what was promised before it, and by what was known of
// the positions.
func (m *model) losses(granted, before *core.Promotion) *Losses {
	if m.demotedServes(granted) {
		return &Losses{Nothing: true, Transactions: new(uint64), Because: fmt.Sprintf("%s hands over its last write "+
			"before %s takes the first", before.Instance, granted.Instance)}
	}
	out := &Losses{}
	if had, known := m.had.Get(); known {
		n := had.Subtract(granted.RequiredGTID).Count()
		out.Transactions = &n
	}
	switch c := &m.o.Cluster; {
	case c.Durability.Mode.IsOnReplicas() && before.LosslessSince > 0:
		out.Nothing = true
		out.Because = fmt.Sprintf("under quorum each acknowledged write is on %s besides the primary, and enough of "+
			"them are known to be sure that none is missing", count(uint64(before.RequiredAcks), "replica"))
	case out.Transactions == nil:
		out.Because = before.Instance + " could not be asked what it holds"
	default:
		out.Because = m.unsafe(before, granted.Instance)
	}
	return out
}

// unsafe tells why writes may be lost.
func (m *model) unsafe(before *core.Promotion, winner string) string {
	missing := fmt.Sprintf("what has not reached %s at that moment is missing from it", winner)
	switch mode := m.o.Cluster.Durability.Mode; {
	case mode.IsOnReplicas():
		return "quorum does not hold yet: commits of this epoch did not all wait for replicas; " + missing
	case mode.Awaits():
		return fmt.Sprintf("a commit waits for %s (%s), and may be acknowledged without when they are missing; %s",
			count(uint64(before.RequiredAcks), "replica"), mode, missing)
	default:
		return "commits wait for no replica (asynchronous replication); " + missing
	}
}

// demotedServes reports whether the former primary itself said what its last write was, and the
// new primary is required to hold all of that.
func (m *model) demotedServes(granted *core.Promotion) bool {
	t := m.managers[granted.From]
	return granted.Proof == core.ProofManagerFenced && t != nil && t.reachable && t.report.Server != nil &&
		granted.RequiredGTID.Contains(t.report.Server.Executed)
}

func count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func tenths(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }
