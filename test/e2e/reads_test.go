//go:build e2e

package e2e

import (
	"database/sql"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/test/testbed"
)

const boundedReads = `
  instances: 3
  affinity: {podAntiAffinityType: required}
  storage: {size: 1Gi}
  readRouting: {maxReplicationLag: 3s}
`

// TestAsynchronous is a Cluster whose commits wait for no replica. Who reads through a Service is led
// to instances that are fresh enough, and keeps no session across a change of role; a primary on a
// lost node is replaced by what its lease and its peers tell.
func TestAsynchronous(t *testing.T) {
	newStory(t, "async", applies(boundedReads)).play([]step{
		{"LaggingReplicaTakesNoReads", (*world).laggingReplicaTakesNoReads, always, three},
		{"SessionsEndWithTheRole", (*world).sessionsEndWithTheRole, always, three},
		{"PrimaryNodePartitioned", (*world).replacedByItsLease, always, threeForItself},
	})
}

func (w *world) laggingReplicaTakesNoReads() {
	replica := w.replica()
	l := w.startWritingOn(1) // a replica that is let go has to get through with more than is written
	w.haveTheTable()
	letGo := w.holdUpApplier(replica)
	w.waitRouted("ro", replica, false)
	w.waitRouted("r", replica, false)
	w.waitRouted("r", w.primary(), true)
	w.plugin([]string{"status", w.key.Name}, replica+" lags more than")
	letGo()
	w.waitRouted("ro", replica, true)
	l.endsWell(time.Minute)
}

// sessionsEndWithTheRole: one session at the primary, one at the replica that takes
// over; after the switchover neither may be there, or the one would read what is
// stale, and the other write where it came to read.
func (w *world) sessionsEndWithTheRole() {
	writing, primary := w.session("rw")
	reading, replica := w.session("ro")
	w.switchTo(replica)
	w.becomes(time.Minute, func(c *v1alpha1.Cluster) bool {
		return c.Status.CurrentPrimary == replica && testbed.Healthy(c)
	})
	for service, conn := range map[string]*sql.Conn{"rw": writing, "ro": reading} {
		var host string
		if err := conn.QueryRowContext(w.ctx, "SELECT @@hostname").Scan(&host); err == nil {
			w.t.Errorf("the session through -%s is still at %s; %s was primary and %s is", service,
				host, primary, replica)
		}
	}
}

// session opens one connection through a Service, and tells where it leads.
func (w *world) session(service string) (*sql.Conn, string) {
	w.t.Helper()
	conn, err := w.open(service).Conn(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	var host string
	if err := conn.QueryRowContext(w.ctx, "SELECT @@hostname").Scan(&host); err != nil {
		w.t.Fatal(err)
	}
	return conn, host
}
