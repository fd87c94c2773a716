//go:build e2e

package e2e

import (
	"context"
	"time"

	"cnmsql.co/test/writer"
)

const (
	connections = 16
	crashes     = 20
	// crashLimit is how long writes may be refused in the mean, on a machine that does nothing
	// else: who takes over applies what it has received first, and on two busy cores that is what
	// its applier lags behind 16 connections, not what the product decides.
	crashLimit = 4 * time.Second
)

// killedAgainAndAgain kills the primary's mysqld again and again under load. It comes back
// by itself each time, as a replica, with nothing that its successor lacks: what
// nobody had acknowledged was cut off its log before it recovered.
func (w *world) killedAgainAndAgain() {
	l := w.startWritingOn(connections)
	var sum time.Duration
	for i := range crashes {
		old := w.primary()
		l.ackedAfter(time.Now().Add(200*time.Millisecond), 10*time.Second)
		at := w.killMysqld(old)
		outage := l.outageSince(at, time.Minute)
		sum += outage
		w.moved(old, time.Minute)
		w.t.Logf("crash %d, of %s: writable after %s, all three healthy after %s", i+1, old, outage, time.Since(at))
		// A replica that has yet to receive much acknowledges nothing new until it has:
		// what is measured is not how far behind the last crash has left it.
		w.caughtUpWith(w.ask(w.open("rw"), "SELECT @@GLOBAL.gtid_executed"))
	}
	mean := sum / time.Duration(crashes)
	w.t.Logf("writable after %s in the mean", mean)
	if mean > crashLimit {
		w.t.Errorf("writable after %s in the mean; at most %s is wanted", mean, crashLimit)
	}
	l.stopAndLoseNothing()
	l.sameEverywhere()
}

// settled waits until the primary is done with what its clients have begun, and tells
// what it has executed then.
func (w *world) settled() string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
	defer cancel()
	executed, err := writer.Settled(ctx, w.open("rw"))
	if err != nil {
		w.t.Fatal(err)
	}
	return executed
}

// caughtUpWith waits until every replica has executed these transactions.
func (w *world) caughtUpWith(executed string) {
	w.t.Helper()
	for _, name := range w.replicas() {
		if got := w.ask(w.openInstance(name), "SELECT WAIT_FOR_EXECUTED_GTID_SET('"+executed+"', 30)"); got != "0" {
			s := w.cluster().Status
			w.t.Errorf("%s has not executed %s after 30 s: %s: %s\n%s", name, executed, s.Phase, s.PhaseReason,
				w.kubectl("-n", w.key.Namespace, "logs", name, "-c", "mysql", "--tail=80"))
		}
	}
}

// sameEverywhere: all instances hold the same transactions, and the same of the
// writer's rows, once the replicas have applied what the primary has.
func (l *load) sameEverywhere() {
	w := l.w
	w.t.Helper()
	w.caughtUpWith(w.settled())
	want := ""
	for _, name := range w.cluster().Status.InstanceNames {
		db := w.openInstance(name)
		if v, err := l.Verify(w.ctx, db); err != nil || !v.OK() {
			w.t.Errorf("%s: %d acknowledged rows are missing, %d are too many (%v)", name,
				len(v.Missing), len(v.Extra), err)
		}
		have := w.ask(db, "SELECT CONCAT(@@GLOBAL.gtid_executed, ' ', COUNT(*), ' rows ', BIT_XOR(CRC32(CONCAT_WS(' "+
			"', conn, seq, payload)))) FROM app.writer_rows WHERE run = '"+l.Run()+"'")
		if want == "" {
			want = have
		}
		if have != want {
			w.t.Errorf("%s holds\n%s\nanother\n%s", name, have, want)
		}
	}
}
