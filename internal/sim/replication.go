package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// receiver is a replica's IO thread.
type receiver struct {
	s      *mysqld
	on     bool
	stream *stream
	err    string
	tries  int
	// noSpace: it waits for space, or was ended while it did.
	noSpace bool
}

// stream is the connection on which a source sends its binary log.
type stream struct {
	w        *world
	from, to *mysqld
	semi     bool
	next     int // position of the source that is sent next
	skip     gtid.Set
	sending  bool
	stalled  bool
	broken   bool
	// silent: nothing was heard for long; silentSince is when that began.
	silent      bool
	silentSince time.Duration
	last        time.Duration // arrival of what was sent last: nothing overtakes
}

func (r *receiver) trying() bool { return r.on && r.stream == nil }

func (r *receiver) start() {
	if r.on {
		return
	}
	r.on, r.err, r.noSpace = true, "", false
	r.connect()
}

func (r *receiver) stop() {
	r.on = false
	r.tries++
	if r.stream != nil {
		r.stream.end()
		r.stream = nil
	}
}

// connect finds the source by its name, as DNS leads, and asks for what is missing.
func (r *receiver) connect() {
	if !r.on || r.stream != nil || r.s.dead {
		return
	}
	r.tries++
	try, s := r.tries, r.s
	retry := func() {
		if r.tries == try && r.on {
			if r.err == "" {
				r.err = "error connecting to source " + s.db.source
			}
			s.changed()
			s.at(core.ConnectRetry, func() {
				if r.tries == try {
					r.connect()
				}
			})
		}
	}
	source := s.w.serverOf(s.db.source)
	if source == nil || source == s {
		retry()
		return
	}
	s.w.call(s.machine, source.machine, core.NetTimeout, func(reply func(func())) {
		switch {
		case source.dead || !source.accepting:
			reply(retry)
			return
		case source.stopped: // the connection is made by the kernel; nothing is said
			return
		}
		reply(func() {
			s.do(func() {
				switch {
				case r.tries != try || !r.on:
				case source.dead, source.volume.stage != stagePopulated: // scratch data has no account for it
					retry()
				default:
					r.attach(source)
				}
			})
		})
	}, func() { s.do(retry) })
}

// attach connects the replica to the source, which looks whether it has all that the replica
// lacks. It ends an earlier connection of the same replica. When the source has purged something
// or lacks something of its own, the replica stops with the error 1236.
func (r *receiver) attach(source *mysqld) {
	s := r.s
	mine := s.db.logged.Union(s.db.retrieved)
	switch {
	case !mine.Contains(source.db.purged):
		r.fatal("the source has purged required binary logs (1236)")
		return
	case slices.Contains(mine.Subtract(source.db.logged).Sources(), source.db.uuid):
		r.fatal("the replica has more GTIDs than the source has, using the source's UUID (1236)")
		return
	}
	for _, old := range append([]*stream{}, source.sources...) {
		if old.to.db == s.db {
			old.end() // the zombie of an earlier connection
		}
	}
	st := &stream{w: s.w, from: source, to: s, semi: s.semi.give, next: source.db.base, skip: mine}
	r.stream, r.err, s.db.sourceUUID = st, "", source.db.uuid
	source.sources = append(source.sources, st)
	source.changed()
	s.changed()
	st.pump()
}

// fatal stops the receiver thread, which says why.
func (r *receiver) fatal(err string) {
	r.on, r.err = false, err
	r.s.w.cover.count("mysqld", "1236")
	r.s.changed()
}

// lost notes that the connection broke, and makes another.
func (r *receiver) lost(st *stream) {
	if r.stream != st {
		return
	}
	r.stream = nil
	r.err = "lost the connection to the source"
	r.s.changed()
	r.connect()
}

// end is an orderly end by either side.
func (st *stream) end() {
	if st.broken {
		return
	}
	st.broken = true
	// The source learns of it if it is reached.
	from := st.from
	if st.w.reaches(st.to.machine, from.machine) || from.dead {
		st.leave()
	}
}

func (st *stream) leave() {
	from := st.from
	if i := slices.Index(from.sources, st); i >= 0 {
		from.sources = slices.Delete(from.sources, i, i+1)
		if !from.dead {
			from.changed()
		}
	}
}

// sourceEnded ends the connection of a source that has ended. The source's kernel resets it, if
// the word gets through. Otherwise the replica finds out by itself, after core.NetTimeout.
func (st *stream) sourceEnded() {
	if st.broken {
		return
	}
	to := st.to
	lost := func() { st.broken = true; to.io.lost(st) }
	if st.w.reaches(st.from.machine, to.machine) {
		at := max(st.w.now+st.w.delay(st.from.machine, to.machine), st.last)
		to.at(at-st.w.now, lost)
		return
	}
	to.at(core.NetTimeout, lost)
}

// isHeard reports whether the replica hears its source, which says something at least every half
// second.
func (st *stream) isHeard() bool {
	w := st.w
	return !st.from.dead && !st.from.stopped && w.reaches(st.from.machine, st.to.machine) &&
		w.machines[st.from.machine].pausedUntil <= w.now
}

// listen has every replica notice that its source has fallen silent, or is heard
// again: by core.SilentAfter it knows, and after core.NetTimeout it gives up.
func (w *world) listen() {
	for _, s := range w.servers() {
		st := s.io.stream
		switch {
		case st == nil || st.broken:
		case st.isHeard():
			if st.silent {
				s.changed()
			}
			st.silentSince, st.silent = 0, false
		case st.silentSince == 0:
			st.fallSilent()
		}
	}
}

func (st *stream) fallSilent() {
	since := st.w.now
	st.silentSince = since
	still := func() bool { return st.silentSince == since && !st.broken && !st.isHeard() && st.to.io.stream == st }
	st.to.at(core.SilentAfter, func() {
		if still() {
			st.silent = true
			st.to.changed()
		}
	})
	st.to.at(core.NetTimeout, func() {
		if still() {
			st.broken = true
			st.to.io.lost(st)
		}
	})
}

// afterMend lets go on what stood still while links were cut.
func (w *world) afterMend() {
	all := w.servers()
	if w.outside != nil {
		all = append(all, w.outside)
	}
	for _, s := range all {
		for _, st := range s.sources {
			if st.stalled && w.reaches(st.from.machine, st.to.machine) {
				st.stalled = false
				st.pump()
			}
		}
	}
	for _, op := range w.ops {
		op.afterMend()
	}
	w.listen()
}

// pump sends all that is logged and was not sent.
func (s *mysqld) pump() {
	for _, st := range s.sources {
		st.pump()
	}
}

func (st *stream) pump() {
	if st.sending || st.stalled || st.broken || st.from.dead || st.from.stopped || st.next >= st.from.db.end() {
		return
	}
	w := st.w
	d, upTo := st.from.db, st.from.db.end()
	batch := d.binlog[st.next-d.base : len(d.binlog) : len(d.binlog)]
	at := max(w.now+w.delay(st.from.machine, st.to.machine), st.last)
	st.last, st.sending = at, true
	w.at(at-w.now, st.to.machine, func() {
		st.sending = false
		switch {
		case st.broken || st.to.dead:
		case !w.reaches(st.from.machine, st.to.machine):
			st.stalled = true
		default:
			st.to.do(func() { st.deliver(batch, upTo) })
		}
	})
}

// deliver puts what arrived into the relay log and acknowledges it.
func (st *stream) deliver(batch []*txn, upTo int) {
	if st.broken || st.waitForSpace(batch, upTo) {
		return
	}
	to := st.to.db
	for _, t := range batch {
		if !st.skip.Contains(t.set) {
			to.receive(t)
		}
	}
	st.next = upTo
	st.to.changed()
	st.to.applyNext()
	if st.semi {
		pos := st.next
		st.w.send(st.to.machine, st.from.machine, func() {
			st.from.do(func() { st.from.acknowledged(to, pos) })
		})
	}
	st.pump()
}
