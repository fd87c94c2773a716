package instance

import (
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/store"
	"cnmsql.co/internal/store/storetest"
)

func TestAnApplierThatWasHinderedIsBelievedOnceItHasRun(t *testing.T) {
	at := time.Now()
	a := applying{tried: at}
	const why = "a copy is taken"
	for _, one := range []struct {
		after   time.Duration
		said    core.Replication
		running bool
	}{
		{0, core.Replication{SQLRunning: true}, true}, // it was not hindered before
		{time.Second, core.Replication{SQLError: why, CopyHinders: true}, false},
		{applySettles - 1, core.Replication{SQLRunning: true}, false},
		{applySettles, core.Replication{SQLRunning: true}, true},
		{0, core.Replication{SQLRunning: true}, true},
		{0, core.Replication{SQLError: why, CopyHinders: true}, false},
		{1, core.Replication{SQLError: "a duplicate key"}, false},
		{2, core.Replication{SQLRunning: true}, true},
	} {
		s := &core.Server{Replication: &one.said}
		a.note(s, at.Add(one.after))
		r := s.Replication
		if r.SQLRunning != one.running || r.SQLRunning != (r.SQLError == "") ||
			r.CopyHinders != (r.SQLError == why) {
			t.Errorf("after %s it is %+v", one.after, r)
		}
	}
	a.note(nil, at)
	a.note(&core.Server{}, at)
}

// TestAReplicaSurvivesTheBackupThatIsTakenOfIt: mysqld discards no tablespace while its data are
// copied.
func TestAReplicaSurvivesTheBackupThatIsTakenOfIt(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.exec(db, "CREATE TABLE old (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	s, err := store.Open(storetest.Dir(t))
	must(t, err)
	w.backUpWhile(two, s, func() {
		w.exec(db, "ALTER TABLE old DISCARD TABLESPACE")
		w.exec(db, "INSERT INTO t (v) VALUES (1)")
		w.await(two, "hindered", func(r core.Report) bool {
			return r.Reason == core.ReasonBroken && r.Server != nil && r.Server.Replication.CopyHinders
		})
	})
	w.awaitRows(w.app(two), 1)
	w.await(two, "well", func(r core.Report) bool {
		return r.Reason == "" && r.Server != nil && r.Server.Replication.SQLRunning
	})
}
