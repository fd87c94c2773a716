package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/gtid"
)

func (w *world) slowApplier(d *dice) {
	in := w.pickInstance(d)
	if s := w.serverOf(in); s != nil {
		w.tell("the applier of %s is slow", in)
		s.slow = d.between(20*time.Millisecond, 3*time.Second)
		w.later(d.between(5*time.Second, 60*time.Second), func() { s.slow = 0 })
	}
}

func (w *world) breakApplier(d *dice) {
	in := w.pickInstance(d)
	s := w.serverOf(in)
	if !s.answers() || s.db.source == "" {
		return
	}
	w.tell("the applier of %s stops with an error", in)
	s.applying, s.db.sqlError = false, "duplicate key (1062)"
	s.changed()
	w.later(d.between(5*time.Second, 60*time.Second), func() {
		if !s.dead && s.db.source != "" {
			s.db.sqlError = ""
			s.startApplying()
		}
	})
}

func (w *world) breakAppliers(d *dice) {
	took := d.between(3*time.Second, 20*time.Second)
	w.tell("all appliers stop with an error for %s", took)
	for _, s := range w.servers() {
		if !s.answers() || s.db.source == "" {
			continue
		}
		s.applying, s.db.sqlError = false, "duplicate key (1062)"
		s.changed()
		w.later(took, func() {
			if !s.dead && s.db.source != "" {
				s.db.sqlError = ""
				s.startApplying()
			}
		})
	}
}

func (w *world) purgeLogs(d *dice) {
	in := w.pickInstance(d)
	if s := w.serverOf(in); s.answers() {
		w.tell("binary logs of %s are purged", in)
		read := s.db.end()
		for _, st := range s.sources {
			read = min(read, st.next)
		}
		s.db.purge(d.upTo(10), read)
		s.changed()
	}
}

// writeToReplica has a human with all privileges switch super_read_only off for a moment and write
// to a replica.
func (w *world) writeToReplica(d *dice) {
	in := w.pickInstance(d)
	s := w.serverOf(in)
	if !s.answers() || s.volume.stage != stagePopulated || s.epoch != 0 || s.volume.full {
		return
	}
	t := s.db.append()
	s.db.commit(t)
	w.archive.strayed(t)
	w.tell("somebody writes %s to %s", t.set, in)
	s.changed()
	s.pump()
}

// turnBack ends the primary's mysqld, whose disk does not have what it said was written. The
// promises rest on disks that do not lie, so that none of them holds any more.
func (w *world) turnBack(d *dice) {
	p := w.api.cluster().status.Promotion
	if p == nil {
		return
	}
	s := w.serverOf(p.Instance)
	if s == nil || s.epoch == 0 {
		return
	}
	s.end(true)
	n := s.db.turnBack(1 + d.upTo(300))
	w.tell("mysqld of %s is killed, and has lost its last %d writes", p.Instance, n)
	w.truth.must, w.truth.acked, w.truth.lied = gtid.Set{}, nil, true
}

// mayLose reports whether enough members that have not diverged are left with one more volume
// gone.
func (w *world) mayLose(in string) bool {
	s := &w.api.cluster().status
	left := 0
	for _, name := range s.Members {
		if v := w.api.volume(name); name != in && v != nil && !v.deleting && v.data.stage == stagePopulated &&
			!slices.Contains(s.Diverged, name) {
			left++
		}
	}
	n := len(s.Members)
	if !w.truth.mode.IsOnReplicas() {
		return left > 0 && w.truth.losses == 0
	}
	return w.truth.losses+1 <= (n-1)/2 && left >= n-(n-1)/2
}
