package instance

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

func TestAReplicaToWhichNothingComesIsSilent(t *testing.T) {
	var r receiving
	at := time.Now()
	ask := func(after time.Duration, received string, running bool) bool {
		s := &core.Server{Replication: &core.Replication{IORunning: running, Received: received}}
		r.note(s, at.Add(after))
		return s.Replication.Silent
	}
	for _, one := range []struct {
		after   time.Duration
		upTo    string
		running bool
		silent  bool
	}{
		{0, "binlog.1:100", true, false},
		{core.SilentAfter - 1, "binlog.1:100", true, false},
		{core.SilentAfter, "binlog.1:200", true, false}, // a long transaction comes on
		{2*core.SilentAfter - 1, "binlog.1:200", true, false},
		{2 * core.SilentAfter, "binlog.1:200", true, true},
		{3 * core.SilentAfter, "binlog.1:200:1", true, false}, // a heartbeat
		{4*core.SilentAfter - 1, "binlog.1:300", true, false},
		{6 * core.SilentAfter, "binlog.1:300", false, false}, // the connection is known to be lost
		{7 * core.SilentAfter, "binlog.1:300", true, false},
	} {
		if got := ask(one.after, one.upTo, one.running); got != one.silent {
			t.Errorf("after %s, up to %q: silent %t", one.after, one.upTo, got)
		}
	}
	full := &core.Replication{IORunning: true, NoSpace: true, Received: "binlog.1:300"}
	for _, after := range []time.Duration{8 * core.SilentAfter, 10 * core.SilentAfter} {
		if r.note(&core.Server{Replication: full}, at.Add(after)); full.Silent {
			t.Error("it waits for space on its volume, and is taken for one to which nothing comes")
		}
	}
	r.note(nil, at)
	r.note(&core.Server{}, at)
	if wait := r.untilLook(at); wait != agent.PollEvery {
		t.Errorf("nothing is received, and the next look is after %s", wait)
	}
}

func TestAReplicaIsLookedAtWhenItsSilenceIsLongEnough(t *testing.T) {
	var r receiving
	at := time.Now()
	r.note(&core.Server{Replication: &core.Replication{IORunning: true, Received: "binlog.1:100"}}, at)
	for after, want := range map[time.Duration]time.Duration{
		0:                                    agent.PollEvery,
		core.SilentAfter - agent.PollEvery:   agent.PollEvery,
		core.SilentAfter - agent.PollEvery/2: agent.PollEvery / 2,
		core.SilentAfter:                     agent.PollEvery,
		2 * core.SilentAfter:                 agent.PollEvery,
	} {
		if wait := r.untilLook(at.Add(after)); wait != want {
			t.Errorf("%s after it heard something, the next look is after %s, want %s", after, wait, want)
		}
	}
}
