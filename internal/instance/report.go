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
	s := &m.st
	r := core.Report{
		Instance: m.opt.Instance, PodUID: m.opt.PodUID, Node: m.opt.Node, Boot: m.boot, Manager: s.binary, ManagerRefused: s.refusedBinary,
		Data: s.data, VolumeLocked: s.locked, SeenEpoch: s.seen, ViewEpoch: s.latest.Epoch, WritableEpoch: s.writable,
		ClientSessions: s.sessions, Terminating: !s.terminating.IsZero(),
		Version: m.bin.version.Text, Restarts: s.restarts,
		Maintenance: s.maintenance, ErrantTimes: s.timesOf(s.decision.Errant), Lagging: s.lagging,
	}
	s.decision.Begin(&r)
	p := agent.Process{Up: s.proc.running(), Accepted: s.accepted, Answers: s.answers(), MayWrite: s.mayWrite, Ended: s.ended, Failures: s.failures, EndReason: s.endReason}
	if m.memory != nil {
		kept := m.memory.get()
		p.TellPromises(&r, agent.Kept{FencedBelow: kept.FencedBelow, FrozenBelow: kept.FrozenBelow, LastWritable: kept.WasPrimaryEpoch})
	}
	if s.withheld > 0 {
		r.Withheld = &core.Withheld{Below: s.withheld, Seconds: int(time.Since(s.withheldAt).Seconds())}
	}
	if s.view != nil {
		s.view.TellView(&r)
	}
	if s.proc != nil {
		r.MysqldStarted = s.proc.started
	}
	if s.clone != nil {
		c := *s.clone
		c.Pausing = time.Now().Before(s.cloneAgain)
		r.Clone = &c
	}
	r.Archive = s.archive
	p.Correct(&r, s.server)
	if t := s.trouble; t != nil {
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
