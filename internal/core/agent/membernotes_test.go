package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
)

// TestMemberFactsTellSinceWhen holds that what lasts began when it was first seen, and begins anew after a pause.
func TestMemberFactsTellSinceWhen(t *testing.T) {
	var m MemberFacts
	at := func(n int) time.Time { return epochZero.Add(time.Duration(n) * time.Second) }
	for i, c := range []struct {
		state core.MemberState
		since time.Time
	}{{core.MemberError, at(0)}, {core.MemberError, at(0)}, {core.MemberOffline, time.Time{}},
		{core.MemberError, at(3)}} {
		view := &core.GroupView{State: c.state}
		m.See(&core.Server{Group: view}, at(i))
		if !m.ErrorSince.Equal(c.since) || m.Last != view || !m.QuorateSince.IsZero() || !m.ClosedSince.IsZero() {
			t.Errorf("at %d: in ERROR since %s, quorate since %s, closed since %s", i, m.ErrorSince, m.QuorateSince,
				m.ClosedSince)
		}
	}
}

// TestMemberFactsForgetWhatIsOver holds that an order to make the group is over once it is carried out, and that
// the next mysqld carries it out only where it is to.
func TestMemberFactsForgetWhatIsOver(t *testing.T) {
	m := MemberFacts{RebootEpoch: 3, Settled: core.MemberPrimary, Bootstraps: true}
	m.Tried("broken off", true, epochZero)
	if m.Failed != "" || m.RebootEpoch != 3 || !m.TriedAt.Equal(epochZero) {
		t.Errorf("what was broken off: %+v", m)
	}
	if m.Tried("refused", false, epochZero); m.Failed != "refused" || m.RebootEpoch != 3 {
		t.Errorf("what failed: %+v", m)
	}
	if m.ServerEnded(true); m.RebootEpoch != 3 || m.Bootstraps || m.Settled != "" {
		t.Errorf("the next mysqld carries it out: %+v", m)
	}
	if m.Tried("", false, epochZero); m.Failed != "" || m.RebootEpoch != 0 {
		t.Errorf("it is carried out: %+v", m)
	}
	later := epochZero.Add(time.Hour)
	if m.Left(true, later); !m.TriedAt.Equal(epochZero) {
		t.Errorf("whoever returns waits since %s", m.TriedAt)
	}
	if m.Left(false, later); !m.TriedAt.Equal(later) {
		t.Errorf("whoever leaves has tried at %s", m.TriedAt)
	}
}
