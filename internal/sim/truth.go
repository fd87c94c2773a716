package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// truth sees everything, and holds the invariants against it.
type truth struct {
	w *world
	// highest is the last epoch in which somebody was opened for writes, by whom.
	highest int64
	holder  *mysqld
	ackers  map[int64]string
	// cutBelow is the epoch below which no commit of an instance can be
	// acknowledged: its quorum was cut.
	cutBelow map[string]int64
	// must is what may not be lost: acknowledged while quorum was promised.
	must  gtid.Set
	acked []*txn
	all   int // acknowledged writes, whatever was promised

	dbs      []*volume // every volume that ever held data
	cutTails map[*database]map[int]*txn

	mode   core.DurabilityMode
	edited bool // durability was changed, and is not known to hold yet
	lied   bool // a disk has lost what it said was written: nothing is promised any more
	// meddled: more happened than crashes and partitions, or less than quorum was asked for.
	meddled  bool
	lossless bool
	// granted is when a promotion was granted in each epoch, told when an operator heard each instance last.
	granted     map[int64]grant
	told        map[string]time.Duration
	diverged    []string
	durable     bool
	established bool
	counted     map[string]bool // who was a member
	losses      int             // volumes lost since the cluster was healthy last
	lastAck     time.Duration
	falseAlarm  time.Duration // when the primary was last said to have lost what it has
	// lastOpened was opened for writes last, in lastEpoch.
	lastOpened *mysqld
	lastEpoch  int64
}

func newTruth(w *world) *truth {
	return &truth{w: w, granted: map[int64]grant{}, told: map[string]time.Duration{},
		ackers: map[int64]string{}, cutBelow: map[string]int64{}, counted: map[string]bool{},
		mode: w.conf.durability.Mode, cutTails: map[*database]map[int]*txn{}}
}

// saying is a server's word that a commit is done, on its way to the client.
type saying struct {
	s          *mysqld
	t          *txn
	epoch      int64
	instance   string
	superseded bool
	promised   bool
	strict     bool
	holders    []*database
}

func (tr *truth) saying(s *mysqld, t *txn) *saying {
	said := &saying{s: s, t: t, epoch: s.epoch, instance: s.manager.me}
	said.superseded = tr.highest > s.epoch && tr.holder.manager.me != s.manager.me && !tr.returns(s.manager.me)
	if tr.mode.IsOnReplicas() && !tr.edited && !tr.lied {
		said.promised, said.strict = true, tr.durable
		said.holders = tr.holdersOf(t)
	}
	return said
}

// returns reports whether an instance is the primary again, after the one that superseded it: what it had not
// acknowledged in its first epoch counts in the new one, also while it is being opened for that.
func (tr *truth) returns(instance string) bool {
	p := tr.w.api.cluster().status.Promotion
	return p != nil && p.Instance == instance && p.Epoch > tr.highest
}

// isExcused reports whether the server's machine stood still when its primary would have had to
// isolate itself, and has not had the time to do so since. Neither it nor anybody else can help
// that: without quorum such a primary takes writes for a moment more. Where commits wait for ever,
// nothing is excused.
func (tr *truth) isExcused(s *mysqld) bool {
	m := tr.w.machines[s.machine]
	if tr.mode.WaitsForEver() || m.pausedUntil == 0 || tr.w.now > m.pausedUntil+afterPause {
		return false
	}
	tr.w.cover.count("truth", "a machine was paused when its primary would have isolated itself")
	return true
}

// afterPause is how long a primary may take to isolate itself once its machine goes on.
const afterPause = 5 * time.Second

func (tr *truth) holdersOf(t *txn) []*database {
	var out []*database
	for _, v := range tr.dbs {
		if !v.gone && v.db != nil && v.db.holds().Contains(t.set) {
			out = append(out, v.db)
		}
	}
	return out
}

// heard notes that a client has read success, which counts from now on. It fails the run when the
// success came from a primary that another had superseded, and the successor lacks the write, or
// when two instances acknowledged writes in one epoch (I1).
func (tr *truth) heard(said *saying) {
	w := tr.w
	tr.all++
	tr.lastAck = w.now
	said.t.acked = true
	w.archive.heard(said.t)
	switch {
	case !said.superseded, tr.isExcused(said.s):
	case tr.holder.db.executed.Contains(said.t.set):
		// Its acknowledgements were on their way when the quorum was cut, and so
		// the successor has it.
		w.cover.count("truth", "late success for what the successor holds")
	default:
		w.fail("I1", "%s, primary of epoch %d, acknowledged %s after %s was writable in epoch %d",
			said.instance, said.epoch, said.t.set, tr.holder.manager.me, tr.highest)
	}
	if by := tr.ackers[said.epoch]; by != "" && by != said.instance {
		w.fail("I1", "%s and %s acknowledged writes in epoch %d", by, said.instance, said.epoch)
	}
	tr.ackers[said.epoch] = said.instance
	if !said.promised || tr.edited || tr.lied || !tr.mode.IsOnReplicas() {
		return
	}
	said.t.strict, said.t.holders, said.t.members = said.strict, said.holders,
		max(1, len(w.api.cluster().status.Members))
	tr.must = tr.must.Union(said.t.set)
	tr.acked = append(tr.acked, said.t)
	if h := tr.holder; h != nil && !h.dead && h.epoch == tr.highest && h.manager.me != said.instance {
		tr.checkMust(h)
	}
}

// opened notes that a server takes writes. It fails the run when another instance did so in the
// same epoch or in a later one (I1), when its own has diverged (I4), or when it lacks what must
// survive. A primary of an epoch that was cut off by its quorum may open, and can acknowledge
// nothing.
func (tr *truth) opened(s *mysqld) {
	w, me := tr.w, s.manager.me
	switch {
	case s.epoch < tr.cutBelow[me]: // it may open, and can acknowledge nothing
	case s.epoch < tr.highest && tr.holder.manager.me != me:
		w.fail("I1", "%s becomes writable in epoch %d, after %s was in epoch %d", me, s.epoch,
			tr.holder.manager.me, tr.highest)
	case s.epoch == tr.highest && tr.holder.manager.me != me:
		w.fail("I1", "%s becomes writable in epoch %d, in which %s was", me, s.epoch, tr.holder.manager.me)
	}
	if s.epoch >= tr.cutBelow[me] && slices.Contains(w.api.cluster().status.Diverged, me) {
		w.fail("I4", "%s becomes writable and has diverged", me)
	}
	if s.epoch >= tr.highest {
		tr.highest, tr.holder = s.epoch, s
	}
	tr.checkNumbers(s)
	w.tell("%s takes writes in epoch %d", me, s.epoch)
	tr.checkAlone(s)
	w.cover.count("truth", "opened")
	if s.epoch >= tr.highest {
		tr.checkMust(s)
	}
}

// checkAlone (I1): a proof that the former primary is not writable is still true
// when its successor is. One that only cannot acknowledge may be.
func (tr *truth) checkAlone(s *mysqld) {
	p := tr.w.api.cluster().status.Promotion
	if p == nil || p.Epoch != s.epoch || p.Proof == core.ProofQuorumCut || p.Proof == core.ProofAcceptedLoss {
		return
	}
	for _, other := range tr.w.servers() {
		if other != s && other.manager.me == p.From && p.From != p.Instance && other.epoch == p.Epoch-1 &&
			!tr.isExcused(other) {
			tr.w.fail("I1", "%s takes writes in epoch %d by %s, and %s still does in epoch %d", s.manager.me, s.epoch,
				p.Proof, other.manager.me, other.epoch)
		}
	}
}

// ackGiven (I4): who may not be elected must not acknowledge. While a fault lasts
// it may not know. A server that is not a source of semi-synchronous replication, as a former primary
// whose own source is another by now, asks nobody, and no commit waits for what it is told.
func (tr *truth) ackGiven(s *mysqld, replica *database) {
	w := tr.w
	if !tr.counted[replica.instance] {
		w.fail("I2", "%s acknowledges, and was never counted", replica.instance)
	}
	switch {
	case !s.semi.enabled:
	case !w.healing || w.now-w.healedAt < 20*time.Second ||
		!slices.Contains(w.api.cluster().status.Diverged, replica.instance):
	case s.db.logged.Contains(replica.executed):
		w.cover.count("finding", "a replica that executed a commit that waits is called diverged")
	default:
		w.fail("I4", "%s acknowledges and has diverged", replica.instance)
	}
}

func (tr *truth) closed(s *mysqld) { s.epoch = 0 }

// checkMust (I2): a primary has all that was acknowledged and promised.
func (tr *truth) checkMust(s *mysqld) {
	missing := tr.must.Subtract(s.db.executed)
	if missing.IsEmpty() {
		return
	}
	for _, t := range tr.acked {
		if !missing.Contains(t.set) {
			continue
		}
		var survivors []string
		for _, d := range tr.holdersOf(t) {
			survivors = append(survivors, d.instance)
		}
		destroyed, removed := 0, false
		for _, d := range t.holders {
			if d.destroyed || d.cached.lost.Contains(t.set) { // its disk, or its page cache
				destroyed++
			}
			removed = removed || d.removed
		}
		if len(survivors) > 0 {
			tr.w.fail("I2", "%s is primary and lacks %s, which was acknowledged and is on %v",
				s.manager.me, t.set, survivors)
		} else if (t.strict || removed) && destroyed <= (t.members-1)/2 {
			tr.w.fail("I2", "%s, which was acknowledged by %d of %d, is lost though only %d of them were destroyed",
				t.set, len(t.holders), t.members, destroyed)
		}
		tr.must = tr.must.Subtract(t.set)
	}
}

// clusterChanged follows what is promised.
func (tr *truth) clusterChanged(c *clusterObject) {
	tr.checkReturned(c)
	tr.durable = c.status.Durable == core.DurableYes
	if mode := c.spec.durability.Mode; mode != tr.mode {
		tr.mode, tr.edited = mode, true
		tr.must, tr.acked = gtid.Set{}, nil
	}
	if tr.edited && tr.durable && tr.mode.IsOnReplicas() && c.status.Phase == core.PhaseHealthy {
		tr.edited = false
	}
	tr.established = tr.established || !c.status.EstablishedAt.IsZero()
	for _, name := range c.status.Members {
		tr.counted[name] = true
	}
	if c.status.Phase == core.PhaseHealthy {
		tr.losses = 0
	}
}

// destroyed notes that a volume with data is gone, and whether the operator removed it.
func (tr *truth) destroyed(v *volume) {
	v.db.destroyed, v.db.removed = !v.removed, v.removed
}

func (tr *truth) bootstrapped(m *manager) {
	if tr.established {
		tr.w.fail("I5", "%s initialises the cluster's first data, though it had a primary", m.me)
	}
	tr.w.tell("%s has made the cluster's first data", m.me)
}

// overwritten fails the run when data of an instance is replaced by other data (I4).
func (tr *truth) overwritten(v *volume) {
	if v.stage == stagePopulated {
		tr.w.fail("I4", "the data of %s is copied over", v.instance)
	}
}

func (tr *truth) checkDecision(m *manager, d *agent.Decision) {
	tr.checkFollowed(m, d)
	for _, a := range d.Actions {
		switch a.(type) {
		case agent.MakeData, agent.CloneFrom:
			if m.volume.stage == stagePopulated {
				tr.w.fail("I4", "%s is to %s, and has data", m.me, a)
			}
		}
	}
}

func (tr *truth) routed(instance string) {
	if slices.Contains(tr.w.api.cluster().status.Diverged, instance) {
		tr.w.fail("I4", "writes are routed to %s, which has diverged", instance)
	}
}

// checkEffect (I4).
func (tr *truth) checkEffect(e core.Effect) {
	if e, ok := e.(core.DeleteInstance); ok && slices.Contains(tr.w.api.cluster().status.Diverged, e.Instance) {
		tr.w.fail("I4", "%s is removed with its data, and has diverged", e.Instance)
	}
}

// born fails the run when a server gives a number that belongs to another transaction already,
// which was cut off and somebody else holds. A server that lost what it wrote, because its disk
// lied, cannot know which numbers it gave.
func (tr *truth) born(t *txn) {
	tr.w.archive.born(t)
	if tr.lied {
		return
	}
	if old := tr.cutTails[t.origin][t.seq]; old != nil && old.set.Equal(t.set) {
		for _, d := range tr.holdersOf(old) {
			if d != t.origin {
				tr.w.fail("content",
					"%s gives the number %s to another transaction, while %s holds the one that was cut off",
					t.origin.instance, t.set, d.instance)
			}
		}
	}
}

func (tr *truth) written(*mysqld, *txn) {}

// cut notes that a tail is gone from one log. It fails the run when a client was told that some of
// it is committed (I4), unless a disk lied.
func (tr *truth) cut(d *database, tail []*txn) {
	tr.w.tell("%s: the tail from %s on is cut off (%d)", d.instance, tail[0].set, len(tail))
	tr.w.cover.count("truth", "tail cut")
	for _, t := range tail {
		if tr.cutTails[t.origin] == nil {
			tr.cutTails[t.origin] = map[int]*txn{}
		}
		tr.cutTails[t.origin][t.seq] = t
		if t.acked && !tr.lied {
			tr.w.fail("I4", "%s was acknowledged, and is cut off", t.set)
		}
	}
}
