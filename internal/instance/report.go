package instance

import (
	"context"
	"reflect"
	"time"

	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
)

// report is the manager's word; the mutex is held.
func (m *manager) report() core.Report {
	s := &m.st
	r := core.Report{
		Instance: m.opt.Instance, PodUID: m.opt.PodUID, Node: m.opt.Node, Boot: m.boot, Manager: s.binary, ManagerRefused: s.refusedBinary,
		State: s.decision.State, Reason: s.decision.Reason, Message: s.decision.Message,
		Data: s.data, VolumeLocked: s.locked, SeenEpoch: s.seen, ViewEpoch: s.latest.Epoch, WritableEpoch: s.writable,
		ClientSessions: s.sessions, Terminating: !s.terminating.IsZero(),
		Version: m.bin.version.Text, Restarts: s.restarts,
		Maintenance: s.maintenance, Errant: s.decision.Errant, ErrantEpoch: s.decision.ErrantEpoch, ErrantTimes: s.timesOf(s.decision.Errant), NeedsReclone: s.decision.NeedsReclone, Lagging: s.lagging,
	}
	if r.State == "" {
		r.State = core.Starting
	}
	if m.memory != nil {
		kept := m.memory.get()
		r.FrozenBelow, r.LastWritable = kept.FrozenBelow, kept.WasPrimaryEpoch
		// A promise is told when it is kept: not while mysqld may accept a write.
		if !(s.mayWrite && s.proc.running()) {
			r.FencedBelow = kept.FencedBelow
		}
	}
	if s.withheld > 0 {
		r.Withheld = &core.Withheld{Below: s.withheld, Seconds: int(time.Since(s.withheldAt).Seconds())}
	}
	if s.view != nil {
		r.ClusterSize, r.Leased, r.Generation = s.view.Size(), s.view.Leased(), s.view.Generation
	}
	if s.proc != nil {
		r.MysqldStarted = s.proc.started
	}
	if s.clone != nil {
		c := *s.clone
		c.Pausing = time.Now().Before(s.cloneAgain)
		r.Clone = &c
	}
	m.processReport(&r)
	if t := s.trouble; t != nil {
		r.Message = t.err.Error()
		if r.Reason == "" {
			r.Reason = core.ReasonActionFailed
		}
	}
	return r
}

// processReport: what is known of the process outranks a decision that was made
// before it changed.
func (m *manager) processReport(r *core.Report) {
	s := &m.st
	switch {
	case s.proc.running() && s.answers():
		r.Server = s.server
	case !s.proc.running() && (r.State == core.Running || r.State == core.Hung || r.State == core.Recovering):
		r.State, r.Reason, r.Message = core.Stopped, "", ""
	}
	if s.proc.running() && !s.accepted && r.State == core.Running {
		r.State, r.Reason, r.Message = core.Recovering, "", ""
	}
	if !s.proc.running() && s.ended && r.State == core.Stopped {
		m.tellEnd(r)
	}
}

// tellEnd: how mysqld ended, and after that what is waited for, where it has a name.
func (m *manager) tellEnd(r *core.Report) {
	s := &m.st
	if waits := r.Reason != "" && r.Reason != core.InstanceMysqldCrashed; waits {
		if s.endReason != "" {
			r.Message += " (mysqld ended: " + s.endReason + ")"
		}
		return
	}
	r.Reason = core.InstanceMysqldCrashed
	if s.failures >= 3 {
		r.Reason = core.InstanceCrashLoop
	}
	if s.endReason != "" {
		r.Message = s.endReason
	}
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
		taken = m.st.serverAt
	}
	clock := func(t time.Time) int64 { return t.Sub(m.began).Nanoseconds() }
	return control.Snapshot{Taken: clock(taken), Made: clock(made), Asked: clock(asked), Report: r}, m.changed
}

// Snapshot takes a report now.
func (m *manager) Snapshot(ctx context.Context) control.Snapshot {
	asked := time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m.pollSince(ctx, asked)
	s, _ := m.snapshot(asked)
	return s
}

// Watch sends a snapshot at once, at every change that matters, and every second.
// The last one of all says how the manager ended.
func (m *manager) Watch(ctx context.Context, send func(control.Snapshot) error) error {
	asked := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		ended := m.hasEnded()
		s, changed := m.snapshot(asked)
		if err := send(s); err != nil || ended {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		case <-m.ended:
		case <-tick.C:
		}
	}
}

func (m *manager) hasEnded() bool {
	select {
	case <-m.ended:
		return true
	default:
		return false
	}
}
