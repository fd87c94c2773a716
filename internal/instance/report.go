package instance

import (
	"context"
	"reflect"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// report is the manager's word; the mutex is held.
func (m *manager) report() core.Report {
	s, work, errant := &m.st, m.worker.said(), m.errant.known()
	r := core.Report{
		Instance: m.opt.Instance, PodUID: m.opt.PodUID, Node: m.opt.Node, Boot: m.boot,
		Data: s.volume.data, VolumeLocked: s.volume.locked,
		SeenEpoch: s.cluster.seen, ViewEpoch: s.cluster.latest.Epoch, WritableEpoch: s.mysqld.writable,
		ClientSessions: s.mysqld.sessions, Terminating: !s.terminating.IsZero(),
		Version: m.launcher.version().Text, Restarts: s.mysqld.restarts,
		Maintenance: errant.Maintenance, ErrantTimes: errant.TimesOf(work.decision.Errant),
		Lagging: s.status.lagging,
	}
	r.Follows, r.Source = s.follows(), m.follower.report(s.mysqld.follows, s.status.server)
	work.decision.Begin(&r)
	p := agent.Process{Up: s.mysqld.proc.running(), Accepted: s.mysqld.accepted, Answers: s.answers(m.disk.stalls()),
		MayWrite: s.mysqld.mayWrite, Ended: s.mysqld.ended, Failures: s.mysqld.failures, EndReason: s.mysqld.endReason}
	if m.record != nil {
		kept := m.record.get()
		p.TellPromises(&r, kept.promises())
		kept.cached().TellProvenance(&r)
		r.Former = kept.Former
		r.Restore = m.restorer.report(s.volume.data, kept.Restored)
		r.Withheld = s.volume.keepsPromise(kept.promises())
	}
	if s.cluster.view != nil {
		s.cluster.view.TellView(&r)
	}
	if s.mysqld.proc != nil {
		r.MysqldStarted = s.mysqld.proc.started
	}
	r.Clone = m.cloner.report()
	r.Archive = m.archiver.report()
	r.Room = m.room.known()
	r.Manager, r.ManagerRefused = m.replacer.report()
	r.ConfigRefused = m.configurer.refuses(s.cluster.object)
	r.TokenRefused = m.token.isRefused()
	p.Correct(&r, s.status.server)
	if t := work.trouble; t != nil {
		agent.TellTrouble(&r, t.err.Error())
	}
	return r
}

// announce tells watchers if something that matters has changed; the mutex is held.
func (m *manager) announce() {
	r := m.report().WithoutPositions()
	if reflect.DeepEqual(r, m.last) {
		return
	}
	m.last = r
	close(m.changed)
	m.changed = make(chan struct{})
}

// snapshot is the report as it is known. It is as old as its oldest fact.
func (m *manager) snapshot(asked time.Time) (control.Snapshot, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made := time.Now()
	taken, r := made, m.report()
	if r.Server != nil {
		taken = m.st.status.at
	}
	clock := func(t time.Time) int64 { return t.Sub(m.began).Nanoseconds() }
	return control.Snapshot{Taken: clock(taken), Made: clock(made), Asked: clock(asked), Report: r}, m.changed
}

// reporter gives who asks the manager's report, on the control API.
type reporter struct {
	by reported
	// ended is closed when the last report has been made.
	ended <-chan struct{}
}

// reported is what a reporter asks of its manager.
type reported interface {
	// pollSince has mysqld asked, unless it was since a moment.
	pollSince(ctx context.Context, since time.Time)
	// snapshot is the report, and what is closed when it changes.
	snapshot(now time.Time) (control.Snapshot, <-chan struct{})
}

// Snapshot takes a report now.
func (r *reporter) Snapshot(ctx context.Context) control.Snapshot {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r.by.pollSince(ctx, asked)
	s, _ := r.by.snapshot(asked)
	return s
}

// Watch sends a snapshot at once, at every change that matters, and every second.
// The last one of all says how the manager ended.
func (r *reporter) Watch(ctx context.Context, send func(control.Snapshot) error) error {
	asked := time.Now()
	tick := newTicker(core.TellEvery)
	defer tick.Stop()
	for {
		ended := r.hasEnded()
		s, changed := r.by.snapshot(asked)
		if err := send(s); err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-r.ended:
		case <-tick.C:
			tick.again()
		}
	}
}

func (r *reporter) hasEnded() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}
