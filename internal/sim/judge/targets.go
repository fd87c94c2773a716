package judge

import (
	"fmt"
	"math/rand/v2"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// Later tells whether a backup holds what was committed after a moment by the clock of its primary: must,
// it does; may, it does by a part that may be of another transaction.
type Later func(at time.Time) (may, must bool)

// CheckTargets takes one of the transactions that are replayed to the latest, and holds restores to it, to
// before it, to the time of its commit, to the backup alone, and to the latest with parts merged, against
// what stands in the log. It says what is wrong.
func (s *Store) CheckTargets(rng *rand.Rand, base archive.Base, latest archive.Plan, later Later) string {
	all := s.Replayed(latest)
	if got := s.Select(base, archive.Target{Kind: archive.Immediate}); got.Refusal != nil ||
		len(got.Plan.Steps) > 0 || !got.Plan.Set.Equal(base.End) {
		return fmt.Sprintf("a restore of the backup alone is not that: %v", got)
	}
	merged := s.Merged(rng)
	if got := merged.Select(base, archive.Target{}); got.Refusal != nil || !got.Plan.Set.Equal(latest.Set) ||
		got.Plan.Parts() != latest.Parts() {
		return fmt.Sprintf("with parts merged a restore to the latest is another: %v", got)
	}
	if len(all) == 0 {
		return ""
	}
	c := &check{of: []*Store{s, merged}, base: base, all: all, later: later}
	n := rng.IntN(len(all))
	for _, why := range []string{c.gtid(archive.ToGTIDs, n, n+1), c.gtid(archive.BeforeGTIDs, n, n),
		c.exclusive(rng, n), c.time(all[n].Committed), c.order(n)} {
		if why != "" {
			return why
		}
	}
	return ""
}

// check is of one backup.
type check struct {
	of    []*Store
	base  archive.Base
	all   []Written
	later Later
}

// until is what the backup holds, and the first of what is replayed.
func (c *check) until(n int) gtid.Set {
	set := c.base.End
	for _, w := range c.all[:n] {
		set = set.Union(w.ID)
	}
	return set
}

func (c *check) gtid(kind archive.Kind, n, ends int) string {
	return c.ends(archive.Target{Kind: kind, GTIDs: c.all[n].ID}, ends)
}

// exclusive restores to before two transactions, of which the first counts, and to two
// transactions, of which the last counts. It says what is wrong; "" when nothing is.
func (c *check) exclusive(rng *rand.Rand, n int) string {
	m := rng.IntN(len(c.all))
	both := c.all[n].ID.Union(c.all[m].ID)
	if why := c.ends(archive.Target{Kind: archive.BeforeGTIDs, GTIDs: both}, min(n, m)); why != "" {
		return why
	}
	return c.ends(archive.Target{Kind: archive.ToGTIDs, GTIDs: both}, max(n, m)+1)
}

// ends says what is wrong unless a restore to the target holds the first n of what is replayed,
// and no other; "" when nothing is.
func (c *check) ends(target archive.Target, n int) string {
	return c.holds(target, c.until(n))
}

// holds says what is wrong unless a restore to the target holds a set; "" when nothing is.
func (c *check) holds(target archive.Target, want gtid.Set) string {
	for _, s := range c.of {
		switch got := s.Select(c.base, target); {
		case got.Refusal != nil:
			return fmt.Sprintf("a restore to %s (kind %d, %s), which can be replayed, is refused: %s", target.GTIDs,
				target.Kind, target.Time, got.Refusal)
		case !got.Plan.Set.Equal(want):
			return fmt.Sprintf("a restore to %s (kind %d, %s) holds %s and not %s", target.GTIDs, target.Kind,
				target.Time, got.Plan.Set, want)
		}
	}
	return ""
}

func (c *check) time(at time.Time) string {
	target := archive.Target{Kind: archive.ToTime, Time: at}
	may, must := c.later(at)
	early := at.Before(c.base.Time)
	got := c.of[0].Select(c.base, target)
	isEarly := got.Refusal != nil && got.Refusal.Reason == archive.TargetBeforeBackup
	switch {
	case isEarly && (early || may):
		return ""
	case must || isEarly:
		return fmt.Sprintf("a restore to %s from a backup of %s, which holds later transactions: %t, is refused so: %v",
			at, c.base.Time, may, got.Refusal)
	}
	set, reached, ends := c.untilTime(at)
	switch {
	case ends > 0 && c.isOvertaken(set, ends, at):
		return c.refused(target, archive.TargetAmbiguous)
	case ends == 0 && reached.Before(at): // only the former primary stored it, and late
		return c.refused(target, archive.TargetAfterArchive)
	}
	return c.holds(target, set)
}

// refused says what is wrong unless a restore is refused for that reason, with times that can be restored
// to; "" when nothing is.
func (c *check) refused(target archive.Target, reason core.Reason) string {
	for _, s := range c.of {
		got := s.Select(c.base, target)
		if got.Refusal == nil || got.Refusal.Reason != reason {
			return fmt.Sprintf("a restore to %s, which cannot be told from what it lacks (%s), holds %s, refused: %v",
				target.Time, reason, got.Plan.Set, got.Refusal)
		}
		for _, at := range []time.Time{got.Refusal.Nearest, got.Refusal.Later} {
			near := archive.Target{Kind: archive.ToTime, Time: at}
			if again := s.Select(c.base, near); !at.IsZero() && again.Refusal != nil {
				return fmt.Sprintf("a restore to %s, which is said to be near %s, is refused: %s", at, target.Time,
					again.Refusal)
			}
		}
	}
	return ""
}

// order says what is wrong when something is replayed before the n-th transaction that its own
// server wrote behind it; "" when nothing is.
func (c *check) order(n int) string {
	t := c.all[n]
	for _, w := range c.all[:n] {
		if w.After.Contains(t.ID) && (w.What == 0 || w.epoch == t.epoch) {
			return fmt.Sprintf("%s is replayed before %s, behind which it was written", w.ID, t.ID)
		}
	}
	return ""
}
