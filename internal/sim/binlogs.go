package sim

import (
	"fmt"

	"cnmsql.co/internal/core/archive"
)

// isLogStart reports whether a binary log begins at this place: one does where the data begin,
// where the server has started, and every logSize transactions.
func (d *database) isLogStart(at int) bool {
	return at == d.base || at == d.lastFile || at%logSize == 0
}

// logEnd is where the log that holds a position ends, which may be where the next one begins.
func (d *database) logEnd(at int) int {
	for at++; at < d.end() && !d.isLogStart(at); at++ {
	}
	return min(at, d.end())
}

// logStart is where it begins.
func (d *database) logStart(at int) int {
	for at > d.base && !d.isLogStart(at) {
		at--
	}
	return at
}

func logName(at int) string { return fmt.Sprintf("binlog.%08d", at) }

// purge does what an instance does that archives: it lets go what is archived and has
// expired, and what has expired when the volume is full.
func (a *archiving) purge() {
	w := a.w
	w.at(archive.PurgeEvery, nowhere, a.purge)
	s := a.writer
	if s == nil || !s.answers() || s.manager.shipper == nil || s.manager.shipper.over {
		return
	}
	d, needed := s.db, s.manager.shipper.needed
	var logs []archive.Log
	var starts []int
	for at := d.base; at < d.end(); at = d.logEnd(at) {
		logs = append(logs, archive.Log{Name: logName(at), Written: a.stamps[d][d.binlog[d.logEnd(at)-1-d.base]]})
		starts = append(starts, at)
	}
	if len(logs) == 0 {
		return
	}
	free := uint64(100)
	if s.volume.full {
		free = 0
	}
	holds := archive.HoldsBack(free, 100)
	if !holds || w.mut.PurgeUnarchived { // the server's own rule
		needed = logs[len(logs)-1].Name
	}
	name := archive.Purge(logs, needed, a.expire, kept(w.clockOf(s.machine)))
	for i, l := range logs {
		if l.Name == name {
			a.purgeTo(s, starts[i], holds)
		}
	}
}

// purgeTo purges what every other instance has: binary logs live for a week, and no fault
// here lasts as long.
func (a *archiving) purgeTo(s *mysqld, to int, archived bool) {
	d := s.db
	for _, st := range s.sources {
		to = min(to, st.next)
	}
	for _, v := range a.w.truth.dbs {
		if v.gone || v.db == nil || v.db == d {
			continue
		}
		holds := v.db.holds()
		for at := d.base; at < to; at++ {
			if !holds.Contains(d.binlog[at-d.base].set) {
				to = d.logStart(at)
			}
		}
	}
	if to <= d.base {
		return
	}
	before := d.purged
	n := to - d.base
	for _, t := range d.binlog[:n] {
		d.purged = d.purged.Union(t.set)
	}
	d.binlog, d.base = d.binlog[n:], to
	a.w.tell("%s purges %d transactions", s.manager.me, n)
	a.w.cover.count("archive", "binary logs were purged")
	lost := d.purged.Subtract(before).Subtract(a.shipped).Subtract(a.spared).Subtract(a.gaps)
	if archived && !lost.IsEmpty() && !a.w.truth.lied {
		a.w.fail("archive", "%s purges %s, which is not archived", s.manager.me, lost)
	}
	a.noteGaps(s)
}
