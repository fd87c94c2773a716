package instance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// app connects as the application does.
func (w *world) app(n *node) *sql.DB { return w.asApp(n, "app-password") }

func (w *world) asApp(n *node, password string) *sql.DB {
	w.t.Helper()
	c := driver.NewConfig()
	c.Net, c.Addr = "tcp", net.JoinHostPort(n.opt.Listen, strconv.Itoa(n.opt.MySQLPort))
	c.User, c.Passwd, c.DBName, c.TLSConfig = "app", password, "app_db", "skip-verify"
	c.Logger = &driver.NopLogger{}
	connector, err := driver.NewConnector(c)
	must(w.t, err)
	db := sql.OpenDB(connector)
	w.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (w *world) exec(db *sql.DB, statement string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
}

// awaitRows waits until a table has so many rows.
func (w *world) awaitRows(db *sql.DB, want int) {
	w.t.Helper()
	var got int
	for began := time.Now(); time.Since(began) < patience; <-time.After(10 * time.Millisecond) {
		if err := db.QueryRow("SELECT COUNT(*) FROM t").Scan(&got); err == nil && got == want {
			return
		}
	}
	w.t.Fatalf("there are %d rows, not %d", got, want)
}

func quorum(c *v1alpha1.Cluster) {
	c.Spec.MySQL.SemiSync = &v1alpha1.SemiSyncSpec{Enabled: true, DataDurability: v1alpha1.DurabilityQuorum}
}

func TestASwitchover(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil).initialises()
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	w.join(two, one)
	w.exec(db, "INSERT INTO t (v) VALUES (2)")
	w.awaitRows(w.app(two), 2)
	if n := one.report().Restarts + two.report().Restarts; n != 0 {
		t.Errorf("two new instances say that mysqld was restarted %d times", n)
	}

	began := time.Now()
	r := w.order(one, control.Demote{Epoch: w.epoch() + 1})
	demoted := time.Now()
	if r.WritableEpoch != 0 || r.NoWritesBelow != w.epoch()+1 || r.ClientSessions != 0 || r.Server == nil ||
		!r.Server.SuperReadOnly {
		t.Fatalf("after the demotion it says %+v", r)
	}
	if _, err := db.Exec("INSERT INTO t (v) VALUES (3)"); err == nil {
		t.Fatal("a demoted primary took a write")
	}
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", r.Server.Executed.String(), 0)
	w.await(two, "writable", func(r core.Report) bool { return r.WritableEpoch == epoch })
	t.Logf("demoted after %s, promoted after %s more", demoted.Sub(began), time.Since(demoted))
	w.awaitPrimary(two, epoch)
	w.awaitFollowing(one)
	w.exec(w.app(two), "INSERT INTO t (v) VALUES (4)")
	w.awaitRows(w.app(one), 3)
	if who, at := w.kube.holder(); who != "db-2" || at != epoch {
		t.Errorf("the lease is held by %s at epoch %d", who, at)
	}
}

func TestAPrimaryWhoseSessionsAwaitAcknowledgementsIsKilledRatherThanAcknowledging(t *testing.T) {
	w := newWorld(t, quorum)
	one, two, db := w.acknowledged()
	w.exec(db, "INSERT INTO t (v) VALUES (1)")
	w.awaitRows(w.app(two), 1)
	next := w.epoch() + 1
	if r := w.order(two, control.ReceivePromise{Epoch: next}); r.NoReceivingBelow != next ||
		r.Server.Replication.IORunning {
		t.Fatalf("frozen, it says %+v", r)
	}
	wrote := make(chan error, 3)
	for i := range 3 {
		go func() {
			_, err := db.Exec("INSERT INTO t (v) VALUES (?)", 10+i)
			wrote <- err
		}()
	}
	w.await(one, "waiting for acknowledgements", func(r core.Report) bool {
		return r.Server != nil && r.Server.SemiSync.WaitSessions > 0
	})
	began := time.Now()
	r := w.order(one, control.Demote{Epoch: next})
	took := time.Since(began)
	t.Logf("demoted after %s", took)
	if took >= agent.DemoteLimit(true) {
		t.Errorf("a server that answers nobody was asked for %s to become read-only", took)
	}
	if r.WritableEpoch != 0 || r.NoWritesBelow != next {
		t.Fatalf("after the demotion it says %+v", r)
	}
	for range 3 {
		if err := <-wrote; err == nil {
			t.Error("a client read success for a commit that nobody acknowledged")
		}
	}
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", w.answers(two).Server.Holds().String(), 0)
	w.awaitPrimary(two, epoch)
	w.exec(w.app(two), "INSERT INTO t (v) VALUES (99)")
	// What nobody acknowledged was cut off before recovery, so that it follows
	// with nothing that its successor lacks; a copy is kept.
	w.awaitFollowing(one)
	w.awaitRows(w.app(one), 2)
	if r := one.report(); !r.Errant.IsEmpty() || one.m.record.get().TailEpoch != 0 {
		t.Errorf("following, it says %+v", r)
	}
	if kept, err := os.ReadDir(filepath.Join(one.m.opt.Dirs.Meta, tailsDir)); err != nil || len(kept) != 1 {
		t.Errorf("of the tail that was cut off nothing is kept: %v %v", kept, err)
	}
	var check string
	must(t, w.app(one).QueryRow("CHECK TABLE t").Scan(new(string), new(string), new(string), &check))
	if check != "OK" {
		t.Errorf("CHECK TABLE says %s", check)
	}
}

func TestAPromotedReplicaAppliesAllItHasReceivedFirst(t *testing.T) {
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	w.join(two, one)
	lock, err := w.app(two).Conn(context.Background())
	must(t, err)
	_, err = lock.ExecContext(context.Background(), "LOCK TABLES t READ") // the applier waits
	must(t, err)
	for i := range 20 {
		w.exec(db, fmt.Sprintf("INSERT INTO t (v) VALUES (%d)", i))
	}
	w.await(two, "behind", func(r core.Report) bool {
		return r.Server != nil && r.Server.Replication != nil && r.Server.Holds().Count() >= 21 &&
			!r.Server.Executed.Contains(r.Server.Holds())
	})
	_ = one.proc().handle.Kill()
	epoch := w.grant("db-2", core.ProofPodTerminated, "db-1", "", 0)
	<-time.After(500 * time.Millisecond)
	if r := two.report(); r.WritableEpoch != 0 {
		t.Fatal("writable before all that was received is applied")
	}
	// Nobody unlocks the table: the client's session is closed.
	w.awaitPrimary(two, epoch)
	w.awaitRows(w.app(two), 20)
	w.awaitFollowing(one)
}

func TestACrashedPrimaryWaitsForTheOperatorsWord(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)")
	began := time.Now()
	_ = one.proc().handle.Kill()
	r := w.await(one, "stopped", func(r core.Report) bool { return r.State == core.Stopped })
	t.Logf("told after %s", time.Since(began))
	if r.Reason != "MysqldCrashed" || r.WritableEpoch != 0 {
		t.Errorf("crashed, it says %+v", r)
	}
	<-time.After(time.Second)
	if one.report().State != core.Stopped {
		t.Error("started before the operator's word")
	}
	w.order(one, control.RestartInPlace{Epoch: w.epoch()})
	w.await(one, "writable again", func(r core.Report) bool { return r.WritableEpoch == w.epoch() })
	w.exec(w.app(one), "INSERT INTO t (v) VALUES (1)")

	_ = one.proc().handle.Kill()
	w.await(one, "stopped", func(r core.Report) bool { return r.State == core.Stopped })
	promised := w.order(one, control.Demote{Epoch: w.epoch() + 1})
	if promised.NoWritesBelow != w.epoch()+1 {
		t.Errorf("a stopped instance promised %+v", promised)
	}
	back := w.await(one, "running", func(r core.Report) bool { return r.State == core.Running && r.Server != nil })
	if back.WritableEpoch != 0 || !back.Server.SuperReadOnly {
		t.Errorf("a fenced instance came back as %+v", back)
	}
	if _, err := w.tryOrder(one, control.SetAcks{Epoch: 1}); err == nil {
		t.Error("an order of a past epoch was taken")
	}
}

func TestAStoppingPrimaryHandsOver(t *testing.T) {
	w, one, two := newPair(t, nil)
	one.m.terminate()
	w.await(one, "terminating", func(r core.Report) bool { return r.Terminating && r.WritableEpoch == 1 })
	r := w.demotes(one)
	epoch := w.grant("db-2", core.ProofManagerFenced, "db-1", r.Server.Executed.String(), 0)
	began := time.Now()
	w.awaitPrimary(two, epoch)
	select {
	case err := <-one.done:
		must(t, err)
		one.done <- nil
		t.Logf("ended %s after its successor was promoted", time.Since(began))
	case <-time.After(patience):
		t.Fatal("the former primary does not end")
	}
	if last := one.report(); last.State != core.Stopped || last.Reason != "Terminated" {
		t.Errorf("its last word is %+v", last)
	}
	if who, _ := w.kube.holder(); who != "db-2" {
		t.Errorf("the lease is held by %s", who)
	}
}

func TestARefusedParameterIsToldAndHealsWithTheSpec(t *testing.T) {
	w := newWorld(t, func(c *v1alpha1.Cluster) { c.Spec.MySQL.Parameters = map[string]string{"max-conections": "10"} })
	one := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	r := w.await(one, "failed", func(r core.Report) bool { return r.State == core.Failed })
	if r.Reason != "ConfigRefused" {
		t.Errorf("it says %s: %s", r.Reason, r.Message)
	}
	w.kube.edit(func(c *v1alpha1.Cluster) {
		c.Generation++
		c.Spec.MySQL.Parameters = map[string]string{"max-connections": "10"}
	})
	w.awaitPrimary(one, 1)
}

func TestAHungServerIsToldAndADemotionKillsIt(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	p := one.proc()
	must(t, p.handle.Signal(syscall.SIGSTOP))
	w.await(one, "hung", func(r core.Report) bool { return r.State == core.Hung })
	began := time.Now()
	r := w.order(one, control.Demote{Epoch: 2})
	t.Logf("demoted after %s", time.Since(began))
	if r.WritableEpoch != 0 || p.running() {
		t.Errorf("a hung server was demoted to %+v", r)
	}
	w.await(one, "running read-only", func(r core.Report) bool {
		return r.State == core.Running && r.Server != nil && r.Server.SuperReadOnly
	})
}

func TestABootstrapThatWasInterruptedBeginsAnew(t *testing.T) {
	w := newWorld(t, nil).initialises()
	one := w.start(1)
	w.grant("db-1", core.ProofBootstrap, "", "", 0)
	until(t, "it has begun", func() bool { return one.remembers().Stage == stageBootstrapping })
	w.crashManager(one)
	if r := one.report(); r.Data == core.DataPopulated {
		t.Fatal("it was not interrupted")
	}
	again := w.start(1)
	w.awaitPrimary(again, 1)
	w.exec(w.app(again), "CREATE TABLE t (id INT PRIMARY KEY)")
}

// inSpite executes statements in one session of root's on a server that is read-only. Its
// manager does not look meanwhile: it would refuse them, and end the session.
func (w *world) inSpite(n *node, statements ...string) {
	w.t.Helper()
	n.m.polling.Lock()
	defer n.m.polling.Unlock()
	root := w.rootOf(n)
	root.SetMaxOpenConns(1)
	for _, statement := range slices.Concat([]string{"SET GLOBAL super_read_only = 0"}, statements,
		[]string{"SET GLOBAL super_read_only = 1"}) {
		w.exec(root, statement)
	}
}

// The applier's coordinator says only that a worker was stopped.
func TestWhatStoppedAWorkerIsTold(t *testing.T) {
	inAll(t)
	w, one, two := newPair(t, nil)
	w.inSpite(two, "SET sql_log_bin = 0", "CREATE TABLE app_db.clash (id INT PRIMARY KEY)")
	w.exec(w.app(one), "CREATE TABLE clash (id INT PRIMARY KEY)")
	r := w.await(two, "broken", func(r core.Report) bool {
		return r.Server != nil && r.Server.Replication != nil && r.Server.Replication.SQLError != ""
	})
	if said := r.Server.Replication.SQLError; !strings.Contains(said, "clash") {
		t.Errorf("it says %q", said)
	}
}

// Somebody wrote to a replica: it says when that was.
func TestErrantTransactionsAreDated(t *testing.T) {
	inAll(t)
	w, _, two := newPair(t, nil)
	before := time.Now().Truncate(time.Second)
	w.inSpite(two, "CREATE TABLE app_db.errant (id INT PRIMARY KEY)")
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Status.DivergedInstances = []string{"db-2"} }) // as the operator found
	r := w.await(two, "dated", func(r core.Report) bool { return r.ErrantTimes != nil })
	if r.Errant.Count() != 1 || r.ErrantEpoch != w.epoch() {
		t.Errorf("it lacks the primary's %s, of epoch %d", r.Errant, r.ErrantEpoch)
	}
	if at := *r.ErrantTimes; at.First.Before(before) || at.Last.After(time.Now()) ||
		!at.First.Equal(at.Last) || at.Unknown != 0 {
		t.Errorf("they were committed %+v; it was written at %s", at, before)
	}
}

// A receiver that cannot keep up has applied all it has: mysqld calls that 0 s behind.
func TestAReplicaThatReceivesLateLags(t *testing.T) {
	inAll(t)
	w := newWorld(t, nil)
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT)")
	w.join(two, one)
	// Each transaction arrives an hour after it was committed, as it were; and the source
	// is never idle, for it would say so.
	ctx, stop := context.WithCancel(t.Context())
	session, err := w.rootOf(one).Conn(ctx)
	must(t, err)
	writes := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if _, err := session.ExecContext(ctx,
				"SET SESSION original_commit_timestamp = (UNIX_TIMESTAMP() - 3600) * 1000000"); err != nil {
				writes <- err
				return
			}
			_, _ = session.ExecContext(ctx, "INSERT INTO app_db.t VALUES ()")
		}
		writes <- nil
	}()
	lag := func(r core.Report) float64 {
		if r.Server == nil || r.Server.Replication == nil {
			return -1
		}
		return r.Server.Replication.LagSeconds
	}
	w.await(two, "lagging by an hour", func(r core.Report) bool { return lag(r) >= 3599 && lag(r) <= 3610 })
	stop()
	if err := <-writes; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.await(two, "abreast of an idle source", func(r core.Report) bool { return lag(r) == 0 })
}

// A Pod that was deleted by force runs on while its volume is removed. mysqld then looks for its files for
// as long as it may take to end, and writes that it finds none as fast as it can.
func TestAStoppingMysqldWhoseDataWereRemovedIsKilled(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.bootstrap(one)
	proc := one.proc()
	if proc.dataRemoved() {
		t.Error("the data of a mysqld that runs are said to be removed")
	}
	// It stays stopped: what it does without its files depends on which of them it misses first, and one
	// kind of mysqld ends by itself.
	proc.signal(syscall.SIGSTOP)
	must(t, os.RemoveAll(one.opt.Dirs.Data))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	proc.signal(syscall.SIGTERM)
	if why := awaitEnd(ctx, proc); !strings.Contains(why, "was removed") {
		t.Errorf("it is to be killed for %q, and not for its data", why)
	}
}
