package core

import (
	"testing"
	"time"
)

// TestNothingHappensAfterNow holds that a bound that is counted from a time in the status is no further away than
// its length, after the wall clock was set back.
func TestNothingHappensAfterNow(t *testing.T) {
	now := time.Unix(10000, 0)
	ahead, before := now.Add(47*time.Minute), now.Add(-time.Minute)
	back := &Return{At: ahead}
	s := Status{FailingSince: ahead, LastFailover: before, CurrentPrimaryAt: ahead, Return: back,
		Promotion: &Promotion{WritableSince: ahead},
		Operation: &Operation{StartedAt: ahead, PausedAt: ahead.Add(time.Second),
			Deadline: ahead.Add(10 * time.Second)},
	}
	s.NoneAfter(now)
	for what, at := range map[string]time.Time{
		"FailingSince": s.FailingSince, "CurrentPrimaryAt": s.CurrentPrimaryAt, "Return": s.Return.At,
		"WritableSince": s.Promotion.WritableSince, "StartedAt": s.Operation.StartedAt,
		"PausedAt": s.Operation.PausedAt, "Deadline": s.Operation.Deadline.Add(-10 * time.Second),
	} {
		if !at.Equal(now) {
			t.Errorf("%s is %s, want %s", what, at, now)
		}
	}
	if !s.LastFailover.Equal(before) || !s.TargetPrimaryAt.IsZero() {
		t.Errorf("what lies before now was changed: %s, %s", s.LastFailover, s.TargetPrimaryAt)
	}
	if !back.At.Equal(ahead) {
		t.Error("the observation was changed")
	}
	started := before.Add(-time.Second)
	s.Operation = &Operation{StartedAt: started, PausedAt: ahead, Deadline: started.Add(10 * time.Second)}
	s.NoneAfter(now)
	if op := s.Operation; !op.StartedAt.Equal(started) || !op.Deadline.Equal(started.Add(10*time.Second)) ||
		!op.PausedAt.Equal(now) {
		t.Errorf("an operation that began before now is %+v", op)
	}
}
