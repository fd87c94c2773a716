package instance

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// Who asked for a status, and had to wait for others until nobody waited any more, has not asked
// mysqld: that it did not answer must not be said of it, for a primary that hangs is replaced.
func TestAQuestionThatWasNotAskedIsNoSilence(t *testing.T) {
	dir := t.TempDir()
	m := newManager(Options{Instance: "db-1", Dirs: Dirs{Run: dir}}.withDefaults())
	silent, err := net.Listen("unix", m.opt.Dirs.socket())
	must(t, err)
	defer func() { _ = silent.Close() }()
	m.pulse = mysql.Open(m.opt.Dirs.socket(), m.launcher.version, func() ([]mysql.Account, error) {
		return []mysql.Account{{User: "root"}}, nil
	})
	m.update(func(s *state) { s.mysqld.proc = &process{done: make(chan struct{})} })
	misses := func() int { return get(m, func(s *state) int { return s.status.misses }) }

	over, cancel := context.WithCancel(t.Context())
	cancel()
	short, end := context.WithTimeout(t.Context(), agent.AnswerLimit/8)
	defer end()
	for _, late := range []context.Context{over, short} {
		m.pollSince(late, time.Now())
		if n := misses(); n != 0 {
			t.Fatalf("a question for which there was no time counts as unanswered: %d", n)
		}
	}
	began := time.Now()
	m.pollSince(t.Context(), began)
	if n, took := misses(), time.Since(began); n != 1 || took < agent.AnswerLimit {
		t.Errorf("after %s without an answer %d misses are counted", took, n)
	}
}

// asked is how often a mysqld was asked what its commits wait for, and whom it follows.
func (w *world) asked(root *sql.DB) (waits, follows int) {
	w.t.Helper()
	count := func(what string) (n int) {
		must(w.t, root.QueryRow("SELECT COUNT_STAR FROM "+
			"performance_schema.events_statements_summary_global_by_event_name WHERE EVENT_NAME = ?",
			"statement/sql/"+what).Scan(&n))
		return n
	}
	return count("show_status"), count("show_replica_status")
}

// A primary follows nobody, and no commit of a replica waits: neither is asked for more of that, until its
// role has changed. What it is asked always tells so.
func TestAServerIsNotAskedForTheSideThatItDoesNotHave(t *testing.T) {
	inAll(t)
	w := newWorld(t, quorum)
	one, two, db := w.acknowledged()
	roots := map[*node]*sql.DB{one: w.rootOf(one), two: w.rootOf(two)}
	check := func(primary, replica *node) {
		t.Helper()
		w.await(primary, "with a replica", func(r core.Report) bool {
			return r.Server != nil && r.Server.Replication == nil && r.Server.SemiSync.Clients == 1
		})
		w.await(replica, "that follows", func(r core.Report) bool {
			return r.Server != nil && r.Server.Replication != nil && !r.Server.SemiSync.SourceEnabled
		})
		const looks = 4
		waits, follows := w.asked(roots[primary])
		itsWaits, itsFollows := w.asked(roots[replica])
		until(t, "both are asked for the side that they have", func() bool {
			now, _ := w.asked(roots[primary])
			_, its := w.asked(roots[replica])
			return now >= waits+looks && its >= itsFollows+looks
		})
		if _, now := w.asked(roots[primary]); now > follows {
			t.Errorf("the primary was asked %d times whom it follows", now-follows)
		}
		if now, _ := w.asked(roots[replica]); now > itsWaits {
			t.Errorf("the replica was asked %d times what its commits wait for", now-itsWaits)
		}
	}
	check(one, two)
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	r := w.demotes(one)
	w.awaitPrimary(two, w.grant("db-2", core.ProofManagerFenced, "db-1", r.Server.Executed.String(), 1))
	check(two, one)
}
