package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// words is what was heard of one instance.
type words struct {
	core.Heard
	lastFail string
}

// statusStream is the standing connection of an operator to one manager.
type statusStream struct {
	op       *operator
	instance string
	uid      string
	node     *node
	stopped  bool
	since    time.Duration
	pause    time.Duration

	m        *manager // while connected
	begun    time.Duration
	inFlight int
	arrives  time.Duration // of what was sent last
	sent     int           // version of the server that was sent last
	ticking  bool
	stalled  bool
	asked    time.Duration // on the manager's side

	words    words
	hearing  core.Hearing
	heardAt  time.Duration
	measures bool // a report is asked for, to measure
}

// connect sets the stream up, whenever it is broken.
func (st *statusStream) connect() {
	op := st.op
	if st.stopped || op.dead || st.m != nil {
		return
	}
	w := op.w
	begun := w.now
	k := st.node.containers[st.uid]
	if k == nil || k.manager == nil || k.manager.dead {
		op.at(5*time.Millisecond, func() { st.lost("connection refused") })
		return
	}
	m := k.manager
	w.call(op.machine, st.node.machine, core.FirstContact, func(reply func(func())) {
		if m.dead {
			reply(func() { st.lost("connection refused") })
			return
		}
		asked := w.now
		reply(func() {
			switch {
			case st.stopped || op.dead || st.m != nil:
				return
			case m.dead:
				st.lost("the stream ended")
				return
			}
			st.m, st.begun, st.pause, st.asked, st.sent, st.inFlight, st.stalled, st.ticking = m, begun, 0,
				asked, -1, 0, false, false
			m.streams = append(m.streams, st)
			st.push()
		})
	}, func() { st.lost("timeout") })
}

// lost notes that the manager cannot be heard any more, and why. Its report is unknown from now
// on. The operator looks, and connects again after a pause that grows.
func (st *statusStream) lost(why string) {
	op := st.op
	if st.stopped || op.dead {
		return
	}
	if st.m != nil {
		st.m.streams = slices.DeleteFunc(st.m.streams, func(o *statusStream) bool { return o == st })
		st.m = nil
	}
	w := &st.words
	was, isFirst := w.Report.Known(), w.lastFail == ""
	w.Lose()
	w.lastFail = why
	if was {
		op.w.tell("%s: hears %s no more (%s)", op.id, st.instance, why)
	}
	if was || isFirst {
		op.wake()
	}
	st.pause = min(max(2*st.pause, core.ReconnectFirst), core.ReconnectMost)
	op.at(st.pause, st.connect)
}

func (st *statusStream) stop() {
	st.stopped = true
	if st.m != nil {
		st.m.streams = slices.DeleteFunc(st.m.streams, func(o *statusStream) bool { return o == st })
		st.m = nil
	}
}

// reset ends the stream of a manager that has ended, if its kernel's word gets through to the
// operator.
func (st *statusStream) reset() {
	m, op := st.m, st.op
	if m == nil {
		return
	}
	if op.w.reaches(m.machine, op.machine) {
		at := max(op.w.now+op.w.delay(m.machine, op.machine), st.arrives)
		op.at(at-op.w.now, func() {
			if st.m == m {
				st.lost("the stream ended")
			}
		})
	}
}

// watchSilence ends the streams of managers that stay silent, after as long as the operator's
// pings need to find that out.
func (op *operator) watchSilence() {
	for _, name := range op.order {
		st := op.streams[name]
		m := st.m
		if m == nil {
			continue
		}
		op.at(core.CutAfter, func() {
			if st.m == m && !op.w.connected(op.machine, m.machine) {
				st.lost("silent")
			}
		})
		op.at(core.MuteAfter, func() {
			if st.m == m && !op.hears(m) {
				st.lost("silent")
			}
		})
	}
}

func (op *operator) hears(m *manager) bool {
	w := op.w
	return !m.dead && w.connected(op.machine, m.machine) && w.machines[m.machine].pausedUntil <= w.now
}

// push sends a snapshot: at once, at every change that matters, and every second.
func (m *manager) push() {
	for _, st := range m.streams {
		st.push()
	}
}

func (st *statusStream) push() {
	m, op := st.m, st.op
	snap := m.snapshot(st.asked)
	st.sent = m.polled
	w := op.w
	at := max(w.now+w.delay(m.machine, op.machine), st.arrives)
	st.arrives = at
	st.inFlight++
	w.at(at-w.now, op.machine, func() {
		if st.m != m || st.stopped || op.dead {
			return
		}
		st.inFlight--
		if !w.reaches(m.machine, op.machine) {
			st.stalled = true
		} else if st.hear(snap, st.begun) {
			op.wake()
		}
	})
}

// afterMend sends again what was sent into the cut.
func (op *operator) afterMend() {
	for _, name := range op.order {
		if st := op.streams[name]; st.stalled && st.m != nil && op.hears(st.m) {
			st.stalled = false
			st.push()
		}
	}
}

// tick sends what has changed without mattering, at the next full second.
func (m *manager) tick() {
	for _, st := range m.streams {
		if st.ticking || st.sent == m.polled {
			continue
		}
		st.ticking = true
		next := st.begun + ((m.w.now-st.begun)/core.TellEvery+1)*core.TellEvery
		m.at(next-m.w.now, func() {
			if st.m != m {
				return
			}
			st.ticking = false
			if st.sent != m.polled {
				st.push()
			}
		})
	}
}

// snapshot is the report as it is known, with its ages by the manager's clock.
func (m *manager) snapshot(asked time.Duration) control.Snapshot {
	r := m.report()
	taken := m.w.now
	if r.Server != nil {
		taken = m.serverAt
	}
	// No two are made at the same nanosecond.
	m.lastMade = max(m.lastMade+1, m.sinceBegan(m.w.now))
	return control.Snapshot{Taken: m.sinceBegan(taken), Made: m.lastMade, Asked: m.sinceBegan(asked), Report: r}
}

// secondsFrom a moment to another, by this machine's clock.
func (m *manager) secondsFrom(from, to time.Duration) int {
	return int(max(0, m.sinceBegan(to)-m.sinceBegan(from)) / int64(time.Second))
}

func (m *manager) sinceBegan(t time.Duration) int64 {
	c := &m.w.machines[m.machine].clock
	return int64(c.monotonic(t) - c.monotonic(m.began))
}

// hear keeps a report, and tells whether it may change a decision.
func (st *statusStream) hear(snap control.Snapshot, begun time.Duration) bool {
	op := st.op
	w, r := &st.words, snap.Report
	now := op.clock()
	readAt, isNew := st.take(r.Boot, snap.Moments(), begun, now)
	if !isNew {
		return false
	}
	st.heardAt = op.w.now
	op.w.truth.told[st.instance] = op.w.now
	if !st.hearing.IsMeasured() {
		st.measure()
	}
	before, known := w.Report.Get()
	w.Take(r, readAt, now)
	w.lastFail = ""
	op.notice()
	return !known || !sameButPositions(&before, &r)
}

// take tells when a report was read that was asked for at begun.
func (st *statusStream) take(boot string, m core.Moments, begun time.Duration, now time.Time) (time.Time, bool) {
	if m.Taken > m.Made {
		st.op.w.fail("model", "a report of %s was read %s after it was made", st.instance,
			time.Duration(m.Taken-m.Made))
	}
	clock, was := &st.op.w.machines[st.op.machine].clock, st.hearing
	readAt, isNew := st.hearing.Hear(boot, m, clock.now(begun), now)
	if st.op.w.mut.StandstillBelieved && isNew && was.IsMeasured() && !st.hearing.IsMeasured() {
		st.hearing = was
		return now.Add(clock.stood()), isNew
	}
	return readAt, isNew
}

// keepMeasured holds the manager's clock against the operator's now and then: a stream
// that was asked for long ago cannot.
func (st *statusStream) keepMeasured() {
	op := st.op
	op.at(core.MeasureEvery, func() {
		if st.stopped {
			return
		}
		st.measure()
		st.keepMeasured()
	})
}

// measure asks for a report, one at a time.
func (st *statusStream) measure() {
	if st.m == nil || st.measures {
		return
	}
	st.measures = true
	st.op.command(st.instance, nil, func(bool) { st.measures = false })
}

// catchUp takes the last snapshots for heard that came every second while nothing changed.
func (st *statusStream) catchUp() {
	m, op := st.m, st.op
	if m == nil || m.dead || st.inFlight > 0 || st.stalled || st.sent != m.polled || !op.hears(m) {
		return
	}
	w := op.w
	last := st.begun + (w.now-2*time.Millisecond-st.begun)/core.TellEvery*core.TellEvery
	if last <= st.heardAt {
		return
	}
	r, known := st.words.Report.Get()
	if !known || !sameButPositions(&r, &m.last) {
		return
	}
	for at := max(last-2*core.TellEvery, st.heardAt+core.TellEvery); at <= last; at += core.TellEvery {
		st.repeat(r, at)
	}
	st.heardAt = last
}

// repeat hears the same report as it was sent at a moment.
func (st *statusStream) repeat(r core.Report, at time.Duration) {
	m := st.m
	taken := at
	if r.Server != nil {
		taken = m.serverHeard(at)
	}
	w := &st.words
	if r.Withheld != nil {
		r.Withheld = &core.Withheld{Below: r.Withheld.Below, Seconds: m.secondsFrom(m.withheldAt, at)}
	}
	received := st.op.w.machines[st.op.machine].clock.now(at + 2*time.Millisecond)
	said := core.Moments{Taken: m.sinceBegan(taken), Made: m.sinceBegan(at), Asked: m.sinceBegan(st.asked)}
	readAt, isNew := st.take(r.Boot, said, st.begun, received)
	if !isNew {
		return
	}
	w.Take(r, readAt, received)
}

// serverHeard is when mysqld had been asked last at a moment, since when it has said nothing else.
func (m *manager) serverHeard(at time.Duration) time.Duration {
	polled := m.pollBase + (at-m.pollBase)/agent.PollEvery*agent.PollEvery
	switch {
	case m.serverAt > at:
		return polled
	case m.isQuiet():
		return max(m.serverAt, polled)
	default:
		return m.serverAt
	}
}

// beforeSilence counts what was heard of the manager until now.
func (m *manager) beforeSilence() {
	for _, st := range m.streams {
		st.catchUp()
	}
}

func (w *world) beforeNetworkChange() {
	for _, op := range w.ops {
		if !op.dead {
			for _, name := range op.order {
				op.streams[name].catchUp()
			}
			op.watchSilence()
		}
	}
}
