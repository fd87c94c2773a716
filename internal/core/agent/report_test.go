package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

func TestWhatIsKnownOfTheProcessOutranksAnOlderDecision(t *testing.T) {
	server := &core.Server{UUID: "a"}
	for about, c := range map[string]struct {
		p       Process
		said    core.State
		waits   core.Reason
		want    core.State
		reason  core.Reason
		message string
		serves  bool
	}{
		"it serves": {p: Process{Up: true, Accepted: true, Answers: true}, said: core.Running,
			want: core.Running, serves: true},
		"it is silent": {p: Process{Up: true, Accepted: true},
			said: core.Running, want: core.Running},
		"it was started since":           {p: Process{Up: true}, said: core.Running, want: core.Recovering},
		"it has ended, and was asked to": {said: core.Running, want: core.Stopped},
		"it has crashed": {p: Process{Ended: true, EndReason: "signal killed"}, said: core.Running,
			want: core.Stopped, reason: core.InstanceMysqldCrashed, message: "signal killed"},
		"it crashes again and again": {p: Process{Ended: true, Failures: 3}, said: core.Recovering,
			want: core.Stopped, reason: core.InstanceCrashLoop},
		"it has crashed, and that is told": {p: Process{Ended: true, EndReason: "signal killed"}, said: core.Stopped,
			waits: core.InstanceAwaitingWord, want: core.Stopped, reason: core.InstanceAwaitingWord,
			message: " (mysqld ended: signal killed)"},
		"data is being copied": {said: core.Cloning, want: core.Cloning},
	} {
		var r core.Report
		Decision{State: c.said, Reason: c.waits}.Begin(&r)
		c.p.Correct(&r, server)
		if r.State != c.want || r.Reason != c.reason || r.Message != c.message || (r.Server != nil) != c.serves {
			t.Errorf("%s: %s %s %q, serves: %t", about, r.State, r.Reason, r.Message, r.Server != nil)
		}
	}
}

func TestAPromiseIsToldWhenItIsKept(t *testing.T) {
	kept := Kept{NoWritesBelow: 4, NoReceivingBelow: 3, LastWritable: 2}
	for about, c := range map[string]struct {
		p    Process
		want int64
	}{
		"mysqld may accept a write": {Process{Up: true, MayWrite: true}, 0},
		"it was made read-only":     {Process{Up: true}, 4},
		"it has ended":              {Process{MayWrite: true}, 4},
	} {
		var r core.Report
		c.p.TellPromises(&r, kept)
		if r.NoWritesBelow != c.want || r.NoReceivingBelow != 3 || r.LastWritable != 2 {
			t.Errorf("%s: fenced below %d, frozen below %d, last writable in %d", about, r.NoWritesBelow,
				r.NoReceivingBelow, r.LastWritable)
		}
	}
}

func TestAReplicaWithoutASourceIsAskedForAWhile(t *testing.T) {
	now := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)
	follows := &core.Replication{SQLRunning: true, IORunning: true}
	var r Readiness
	for _, step := range []struct {
		after       time.Duration
		replication *core.Replication
		ready       bool
	}{
		{0, nil, false}, {time.Second, follows, true}, {5 * time.Second, nil, true},
		{FollowGrace + 2*time.Second, nil, false},
		{20 * time.Second, follows, true}, {21 * time.Second, &core.Replication{SQLError: "duplicate key"}, false},
	} {
		f := &Facts{Now: now.Add(step.after), Data: core.DataPopulated,
			Server: &core.Server{Replication: step.replication}}
		if why := r.Judge(f, Decision{}); (why == "") != step.ready {
			t.Errorf("after %s: %q", step.after, why)
		}
	}
	f := &Facts{Now: now, Data: core.DataPopulated, Server: &core.Server{}}
	if f.NotReady(Decision{Errant: gtid.MustParse("11111111-1111-1111-1111-111111111111:1")}) != "diverged" {
		t.Error("one that has diverged is asked")
	}
}
