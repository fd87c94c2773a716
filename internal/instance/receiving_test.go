package instance

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
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
		{1500 * time.Millisecond, "binlog.1:100", true, false},
		{1900 * time.Millisecond, "binlog.1:200", true, false}, // a long transaction comes on
		{3500 * time.Millisecond, "binlog.1:200", true, false},
		{3900 * time.Millisecond, "binlog.1:200", true, true},
		{4500 * time.Millisecond, "binlog.1:200:1", true, false}, // a heartbeat
		{5 * time.Second, "binlog.1:300", true, false},
		{8 * time.Second, "binlog.1:300", false, false}, // the connection is known to be lost
		{9 * time.Second, "binlog.1:300", true, false},
	} {
		if got := ask(one.after, one.upTo, one.running); got != one.silent {
			t.Errorf("after %s, up to %q: silent %t", one.after, one.upTo, got)
		}
	}
	r.note(nil, at)
	r.note(&core.Server{}, at)
}
