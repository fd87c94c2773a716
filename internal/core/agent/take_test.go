package agent

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// TestTakeServerTellsWhoIsFollowed holds that nothing counts of a mysqld that does not answer, that the source's
// host is told by the name of the promoted instance, and that only a failure to receive has a time.
func TestTakeServerTellsWhoIsFollowed(t *testing.T) {
	tried := epochZero.Add(-time.Second)
	for name, c := range map[string]struct {
		answers     bool
		replication *core.Replication
		replicating string
		failed      time.Time
	}{
		"it does not answer":   {replication: &core.Replication{SourceHost: "db-2.ns"}},
		"it follows nobody":    {answers: true},
		"it follows":           {true, &core.Replication{SourceHost: "db-2.ns", IORunning: true}, "db-2", time.Time{}},
		"it follows another":   {true, &core.Replication{SourceHost: "db-3", IORunning: true}, "db-3", time.Time{}},
		"it cannot receive":    {true, &core.Replication{SourceHost: "db-2.ns", IOError: "refused"}, "db-2", tried},
		"it does not receive":  {true, &core.Replication{SourceHost: "db-2.ns"}, "db-2", time.Time{}},
		"it failed and is off": {true, &core.Replication{IORunning: true, IOError: "was"}, "", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			f := populated()
			f.Server, f.Mysqld.Answers = nil, c.answers
			f.Cluster.Promotion = &core.Promotion{Instance: "db-2", Epoch: 3}
			f.TakeServer(&core.Server{Replication: c.replication}, func(i string) string { return i + ".ns" }, tried)
			if (f.Server != nil) != c.answers || f.Replicating != c.replicating || !f.ReceiveFailedAt.Equal(c.failed) {
				t.Errorf("server %v, replicating %q, failed at %s", f.Server, f.Replicating, f.ReceiveFailedAt)
			}
		})
	}
}

// TestTakeTailReadsNothingOnceMysqldIsUp holds that what has recovered and accepts connections has no tail.
func TestTakeTailReadsNothingOnceMysqldIsUp(t *testing.T) {
	for accepted, want := range map[bool]int64{true: 0, false: 3} {
		f := populated()
		f.Mysqld.Accepted = accepted
		f.TakeTail(func() (int64, gtid.Set) { return 3, set("1-5") })
		if f.TailEpoch != want || f.TailBase.IsEmpty() == (want != 0) {
			t.Errorf("accepted %t: the tail is of epoch %d", accepted, f.TailEpoch)
		}
	}
}
