package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/core/backup"
)

// backUp takes a base backup now and then, of the instance that the operator would choose.
// It takes a while; what it holds is what its donor has executed at some moment therein.
func (a *archiving) backUp() {
	w := a.w
	w.at(a.between(20*time.Second, 90*time.Second), nowhere, a.backUp)
	s := w.serverOf(a.donor())
	if len(a.bucket.branches) == 0 || !s.answers() {
		return
	}
	epoch, db, begin := w.api.cluster().status.Epoch, s.db, s.db.executed
	began := w.now
	w.at(a.between(100*time.Millisecond, 15*time.Second), nowhere, func() {
		if s.dead || s.volume.db != db || !a.isSeen(s.manager) {
			return
		}
		b := archive.Stored{Epoch: epoch, Begin: begin, End: db.executed}
		if h := w.truth.holder; h == nil || !b.End.Intersect(a.errant).Subtract(h.db.logged).IsEmpty() {
			w.cover.count("archive", "a backup of a replica that somebody wrote to")
			return
		}
		w.tell("a backup of %s was begun %s ago, in epoch %d", s.manager.me, w.now-began, epoch)
		a.retention.copied(b, s.machine)
	})
}

// isSeen reports whether an operator reaches the instance and it is Running without a reason. In a
// careless run it is enough that its manager lives, for the operator goes by what it heard last.
func (a *archiving) isSeen(m *manager) bool {
	if m != nil && !m.dead && a.careless {
		return true
	}
	if m == nil || m.dead || m.decision.State != core.Running || m.decision.Reason != "" {
		return false
	}
	for _, op := range a.w.ops {
		if a.w.connected(m.machine, op.machine) {
			return true
		}
	}
	return false
}

// donor is the operator's choice; "" when there is none.
func (a *archiving) donor() string {
	status := &a.w.api.cluster().status
	var all []backup.Instance
	for _, name := range status.InstanceNames {
		p := a.w.api.pod(name)
		m := a.w.managerOf(name)
		isPrimary := status.Promotion != nil && status.Promotion.Instance == name
		all = append(all, backup.Instance{
			Name: name, Primary: isPrimary, Replica: !isPrimary, Ready: a.isSeen(m) && p.ready && !p.deleting,
			Excluded: slices.Contains(status.Diverged, name) || slices.Contains(status.Fenced, name),
		})
	}
	chosen, _ := backup.Donor(all, backup.Wish{Primary: a.oneIn(4), Instances: len(all)})
	return chosen.Name
}
