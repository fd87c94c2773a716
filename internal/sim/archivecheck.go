package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/sim/judge"
)

// archiveSlack is how long after the RPO something is in the archive at the latest: an
// attempt to store it fails, and the next one comes after the longest pause.
const archiveSlack = 45 * time.Second

// sample holds the archive against the truth at some moments of a run.
func (a *archiving) sample() {
	a.w.at(a.between(30*time.Second, 2*time.Minute), nowhere, a.sample)
	a.check()
}

// finish holds it against the truth at the end, when all has been well for long enough.
func (a *archiving) finish() {
	if a == nil {
		return
	}
	for end := a.w.now + 3*time.Minute; !a.isSettled() && a.w.now < end; {
		a.w.runUntil(a.w.now + 5*time.Second)
	}
	if a.w.failure == nil && a.isSettled() {
		a.w.cover.count("archive", "held against the truth at the end")
	}
	a.check()
}

// isSettled reports whether nothing was wrong for so long that everything that is older has to be
// archived.
func (a *archiving) isSettled() bool { return a.w.now-a.troubled > a.pace.RPO+archiveSlack }

// owed is what was acknowledged more than the RPO ago and is on the surviving branch.
func (a *archiving) owed(survives gtid.Set) gtid.Set {
	for len(a.acked) > 0 && a.acked[0].at <= a.w.now-a.pace.RPO-archiveSlack {
		a.due = a.due.Union(a.acked[0].t.set)
		a.acked = a.acked[1:]
	}
	return a.due.Intersect(survives)
}

// check fails the run unless a restore from the newest backup holds what it has to, and nothing
// else. It looks only while the writer is the newest primary and alive, and no disk has lied.
func (a *archiving) check() {
	w, s := a.w, a.writer
	if w.failure != nil || w.truth.lied || s == nil || s.dead || s.epoch != w.truth.highest {
		return
	}
	a.noteGaps(s)
	branch, survives := a.bucket.objects[archive.Key{Epoch: s.epoch}], s.db.executed
	has := a.shipped.Union(a.spared).Union(a.gaps)
	if a.isSettled() {
		w.cover.count("archive", "all that is owed was looked for")
		if lacks := a.owed(survives).Subtract(has); !lacks.IsEmpty() {
			w.fail("archive", "%s were acknowledged more than %s ago and are not archived", lacks,
				a.pace.RPO+archiveSlack)
			return
		}
	}
	if branch == nil || len(a.bases) == 0 {
		return
	}
	base := baseOf(a.bases[len(a.bases)-1])
	all := a.archived()
	got := all.Select(base, archive.Target{})
	if got.Refusal != nil {
		a.checkRefusal(base, survives, got.Refusal)
		return
	}
	w.cover.count("archive", "a plan")
	// A replica, and so a backup, may have what the primary waits for acknowledgements of.
	if beyond := got.Plan.Set.Subtract(s.db.logged); !beyond.IsEmpty() {
		w.fail("archive", "a restore to the latest holds %s, which the primary of epoch %d does not", beyond, s.epoch)
		return
	}
	if lacks := a.owed(survives).Subtract(got.Plan.Set).Subtract(a.gaps); a.isSettled() && !lacks.IsEmpty() {
		w.fail("archive", "a restore to the latest lacks %s, acknowledged more than %s ago",
			lacks, a.pace.RPO+archiveSlack)
		return
	}
	if lacks := a.before(got.Plan).Intersect(survives).Subtract(got.Plan.Set); !lacks.IsEmpty() {
		w.fail("archive", "a restore to the latest has a hole: %s", lacks)
		return
	}
	if why := a.retention.lacks(); why != "" {
		w.fail("archive", "%s", why)
		return
	}
	if why := all.CheckTargets(a.dice, base, got.Plan, a.holdsLater(all, base)); why != "" {
		w.fail("archive", "%s", why)
	}
}

// before is what stood in the binary log before the last transaction that is replayed, when
// that was written.
func (a *archiving) before(plan archive.Plan) (set gtid.Set) {
	if n := len(plan.Steps); n > 0 {
		step := plan.Steps[n-1]
		for _, t := range a.bucket.objects[step.Pieces[0].Key()].list {
			if step.Take.Contains(t.ID) {
				set = set.Union(t.After)
			}
		}
	}
	return set
}

// archived is what the store has, in any order.
func (a *archiving) archived() *judge.Store {
	all := &judge.Store{Content: func(key archive.Key) []judge.Written { return a.bucket.objects[key].list }}
	for _, o := range a.bucket.branches {
		all.Branches = append(all.Branches, o.branch)
	}
	for _, o := range a.bucket.parts {
		all.Parts = append(all.Parts, o.part)
	}
	a.rnd.Shuffle(len(all.Parts), func(i, j int) { all.Parts[i], all.Parts[j] = all.Parts[j], all.Parts[i] })
	a.rnd.Shuffle(len(all.Branches), func(i, j int) {
		all.Branches[i],
			all.Branches[j] = all.Branches[j], all.Branches[i]
	})
	if a.w.mut.Archived != nil {
		a.w.mut.Archived(&all.Archive)
	}
	return all
}

// checkRefusal fails the run unless the truth knows a reason, too, why a restore to the latest is
// refused: the backup holds what a failover lost, or binary logs were purged before they were
// archived.
func (a *archiving) checkRefusal(base archive.Base, survives gtid.Set, r *archive.Refusal) {
	a.w.cover.count("archive", "refused: "+string(r.Reason))
	var right bool
	switch r.Reason {
	case archive.BackupNotOnBranch:
		right = !survives.Contains(base.End)
	case archive.ArchiveGap, archive.PartMissing:
		right = len(r.Parts) == 0 && r.GTIDs.Subtract(a.gaps).Subtract(a.spared).IsEmpty()
	}
	if !right {
		a.w.fail("archive", "a restore to the latest is refused, and need not be: %s", r)
	}
}

// holdsLater returns what tells whether a backup holds what was committed after a moment, by the
// clock of its primary. That clock may have been ahead of the next primary's. Nobody can
// tell of a part that retention has removed.
func (a *archiving) holdsLater(all *judge.Store, base archive.Base) judge.Later {
	return func(at time.Time) (may, must bool) {
		for _, o := range a.removed {
			may = may || slices.ContainsFunc(o.list, func(t judge.Written) bool {
				return base.End.Contains(t.ID) && t.Committed.After(at)
			})
		}
		must = all.HoldsLater(base, at)
		return may || must, must
	}
}
