package instance

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/control"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// writers write numbers through whoever is primary and remember which were
// acknowledged.
type writers struct {
	w    *world
	stop chan struct{}
	wg   sync.WaitGroup
	pace time.Duration // between two writes of one writer

	mu    sync.Mutex
	next  int
	acked []int
	last  time.Time
	gap   time.Duration // the longest between two acknowledgements
}

func (w *world) startWriters(n int) *writers { return w.startPacedWriters(n, 0) }

// startPacedWriters leaves the servers room: a member that comes back has to catch up
// with what is written meanwhile.
func (w *world) startPacedWriters(n int, pace time.Duration) *writers {
	ws := &writers{w: w, stop: make(chan struct{}), last: time.Now(), pace: pace}
	for range n {
		ws.wg.Add(1)
		go ws.run()
	}
	return ws
}

func (ws *writers) run() {
	defer ws.wg.Done()
	dbs := map[string]*sql.DB{}
	for name, n := range ws.w.nodes {
		dbs[name] = ws.w.app(n)
	}
	for {
		select {
		case <-ws.stop:
			return
		default:
		}
		ws.mu.Lock()
		ws.next++
		id := ws.next
		ws.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, err := dbs[ws.w.kube.get().Status.CurrentPrimary].ExecContext(ctx, "INSERT INTO t (id) VALUES (?)", id)
		cancel()
		if err != nil {
			<-time.After(time.Millisecond)
			continue
		}
		ws.acknowledged(id)
		<-time.After(ws.pace)
	}
}

func (ws *writers) acknowledged(id int) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.acked = append(ws.acked, id)
	ws.gap = max(ws.gap, time.Since(ws.last))
	ws.last = time.Now()
}

// resetGap begins to measure again and returns the longest gap so far.
func (ws *writers) resetGap() time.Duration {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	gap := ws.gap
	ws.gap = 0
	return gap
}

func (ws *writers) count() int {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return len(ws.acked)
}

// awaitMore waits until some more writes were acknowledged.
func (ws *writers) awaitMore(n int) {
	ws.w.t.Helper()
	want := ws.count() + n
	for began := time.Now(); ws.count() < want; <-time.After(5 * time.Millisecond) {
		if time.Since(began) > patience {
			ws.w.t.Fatal("writes do not go on")
		}
	}
}

// lost stops the writers and returns the acknowledged numbers that are not there.
func (ws *writers) lost(db *sql.DB) []int {
	close(ws.stop)
	ws.wg.Wait()
	rows, err := db.Query("SELECT id FROM t")
	must(ws.w.t, err)
	defer func() { _ = rows.Close() }()
	there := map[int]bool{}
	for rows.Next() {
		var id int
		must(ws.w.t, rows.Scan(&id))
		there[id] = true
	}
	var out []int
	for _, id := range ws.acked {
		if !there[id] {
			out = append(out, id)
		}
	}
	return out
}

// three makes a lossless cluster of three.
func three(t *testing.T) (*world, []*node) {
	w := newWorld(t, quorum)
	n := []*node{w.start(1), w.start(2), w.start(3)}
	w.bootstrap(n[0])
	w.exec(w.app(n[0]), "CREATE TABLE t (id INT PRIMARY KEY)")
	w.join(n[1], n[0])
	w.join(n[2], n[0])
	w.order(n[0], control.SetAcks{Epoch: w.epoch(), Acks: 1})
	return w, n
}

// switchover does what the operator does.
func (w *world) switchover(from, to *node, acks int32) {
	w.t.Helper()
	r := w.demotes(from)
	w.awaitPrimary(to, w.grant(to.opt.Instance, core.ProofManagerFenced, from.opt.Instance,
		r.Server.Executed.String(), acks))
}

func TestSwitchoversUnderLoadLoseNothing(t *testing.T) {
	inAll(t)
	w, n := three(t)
	ws := w.startWriters(6)
	ws.awaitMore(100)
	ws.resetGap()
	for i := range 4 {
		from, to := n[i%3], n[(i+1)%3]
		w.switchover(from, to, 1)
		ws.awaitMore(50)
		t.Logf("switchover %d: longest gap between acknowledgements %s", i, ws.resetGap())
		for _, other := range n {
			if other != to {
				w.awaitFollowing(other)
			}
		}
	}
	if lost := ws.lost(w.app(n[1])); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
}

// failover does what the operator does when mysqld of the primary is down:
// freeze, read positions, elect, promote.
func (w *world) failover(dead *node, others ...*node) *node {
	w.t.Helper()
	next := w.epoch() + 1
	if r := w.order(dead, control.Demote{Epoch: next}); r.NoWritesBelow != next {
		w.t.Fatalf("no promise: %+v", r)
	}
	return w.succeed(dead, next, core.ProofManagerFenced, others...)
}

// succeed has all others receive nothing more, and promotes who holds the most.
func (w *world) succeed(former *node, next int64, proof core.Proof, others ...*node) *node {
	w.t.Helper()
	var best *node
	var holds core.Report
	for _, o := range others {
		r := w.order(o, control.ReceivePromise{Epoch: next})
		if best == nil || !holds.Server.Holds().Contains(r.Server.Holds()) {
			best, holds = o, r
		}
	}
	w.awaitPrimary(best, w.grant(best.opt.Instance, proof, former.opt.Instance, holds.Server.Holds().String(), 1))
	return best
}

func TestACrashUnderLoadLosesNothing(t *testing.T) {
	inAll(t)
	w, n := three(t)
	ws := w.startWriters(6)
	ws.awaitMore(100)
	ws.resetGap()
	_ = n[0].proc().handle.Kill()
	w.await(n[0], "stopped", func(r core.Report) bool { return r.State == core.Stopped })
	next := w.failover(n[0], n[1], n[2])
	ws.awaitMore(50)
	t.Logf("failover: longest gap between acknowledgements %s", ws.resetGap())
	if lost := ws.lost(w.app(next)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
	w.comesBackWithoutATail(n[0])
}

// comesBackWithoutATail: what was never acknowledged was cut off a former primary's log, so
// that it holds nothing that its successor lacks.
func (w *world) comesBackWithoutATail(former *node) {
	w.t.Helper()
	back := w.await(former, "back", func(r core.Report) bool {
		return r.Reason == "Diverged" || r.Server != nil && r.Server.Replication != nil &&
			r.Server.Replication.IORunning
	})
	if !back.Errant.IsEmpty() {
		w.t.Errorf("the former primary came back diverged: %s", back.Errant)
	}
}

// The operator was away when the primary crashed, so that it was started again to go on;
// the operator, back, had decided before it heard of that.
func TestARecoveryThatAnotherPrimaryOvertakesIsBrokenOff(t *testing.T) {
	inAll(t)
	w, n := three(t)
	ws := w.startWriters(6)
	ws.awaitMore(100)
	for _, replica := range n[1:] {
		// from now on nothing is acknowledged
		w.order(replica, control.ReceivePromise{Epoch: w.epoch() + 1})
	}
	<-time.After(300 * time.Millisecond)
	_ = n[0].proc().handle.Kill()
	w.await(n[0], "started to go on", func(r core.Report) bool { return r.State == core.Recovering })
	next := w.failover(n[0], n[1], n[2])
	ws.awaitMore(50)
	if lost := ws.lost(w.app(next)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
	w.comesBackWithoutATail(n[0])
}

// cutOff is the API server as an instance sees it that may be cut off from it.
type cutOff struct {
	*fakeKube
	cut atomic.Bool
}

func (k *cutOff) WatchCluster(ctx context.Context, each func(*v1alpha1.Cluster)) {
	k.fakeKube.WatchCluster(ctx, func(c *v1alpha1.Cluster) {
		if !k.cut.Load() {
			each(c)
		}
	})
}

func (k *cutOff) Cluster(ctx context.Context) (*v1alpha1.Cluster, error) {
	if k.cut.Load() {
		return nil, errors.New("the API server cannot be reached")
	}
	return k.fakeKube.Cluster(ctx)
}

// A primary is cut off while commits wait, and its mysqld ends. Another is promoted, of
// which it hears nothing for longer than anybody ever waited, and then by asking: the watch
// tells nothing again.
func TestACrashedPrimaryThatHearsNobodyWaitsForAWord(t *testing.T) {
	inAll(t)
	w, n := three(t)
	ws := w.startWriters(6)
	ws.awaitMore(100)
	network := n[0].m.kube.(*cutOff)
	network.cut.Store(true)
	for _, replica := range n[1:] {
		w.order(replica, control.ReceivePromise{Epoch: w.epoch() + 1})
	}
	<-time.After(300 * time.Millisecond) // from now on nothing is acknowledged
	_ = n[0].proc().handle.Kill()
	next := w.succeed(n[0], w.epoch()+1, core.ProofQuorumCut, n[1], n[2])
	waits := w.await(n[0], "waiting for a word", func(r core.Report) bool { return r.Reason == "AwaitingWord" })
	t.Logf("it says: %s", waits.Message)
	<-time.After(agent.TailWait)
	if r := n[0].report(); r.State != core.Stopped || r.Reason != "AwaitingWord" || r.Restarts != waits.Restarts {
		t.Fatalf("cut off for long it says %s %s: %s", r.State, r.Reason, r.Message)
	}
	network.cut.Store(false)
	w.comesBackWithoutATail(n[0])
	ws.awaitMore(50)
	if lost := ws.lost(w.app(next)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
}

func TestAStoppedOnlyInstanceAcknowledgesNothingThatItDoesNotHave(t *testing.T) {
	w := newWorld(t, nil)
	one := w.start(1)
	w.kube.edit(func(c *v1alpha1.Cluster) { c.Spec.Instances = 1 })
	w.bootstrap(one)
	w.exec(w.app(one), "CREATE TABLE t (id INT PRIMARY KEY)")
	ws := w.startWriters(4)
	ws.awaitMore(50)
	one.m.terminate()
	select {
	case err := <-one.done:
		must(t, err)
		one.done <- nil
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if who, _ := w.kube.holder(); who != "" {
		t.Error("the lease was not given back")
	}
	again := w.start(1)
	w.awaitPrimary(again, 1)
	if lost := ws.lost(w.app(again)); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged writes are lost: %v", len(lost), ws.count(), lost)
	}
}

// Clients whose commits wait for a replica keep their connections, and more come:
// the replica that would release them must still get in.
func TestAReplicaGetsInAlthoughWaitingClientsHoldAllConnections(t *testing.T) {
	inAll(t)
	const clients = 60
	w := newWorld(t, func(c *v1alpha1.Cluster) {
		quorum(c)
		c.Spec.MySQL.Parameters = map[string]string{"max_connections": "20"}
	})
	one, two := w.start(1), w.start(2)
	w.bootstrap(one)
	db := w.app(one)
	w.exec(db, "CREATE TABLE t (id INT PRIMARY KEY)")
	w.join(two, one)
	w.order(one, control.SetAcks{Epoch: w.epoch(), Acks: 1})
	_ = two.proc().handle.Kill()
	w.await(two, "stopped", func(r core.Report) bool { return r.Server == nil })
	var refused atomic.Int32
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for t.Context().Err() == nil {
				if _, err := db.Exec("INSERT INTO t (id) VALUES (?)", i); err == nil {
					return
				}
				refused.Add(1)
				<-time.After(time.Millisecond)
			}
		})
	}
	w.awaitRows(w.app(two), clients)
	wg.Wait()
	if refused.Load() == 0 {
		t.Error("all clients got in; some were to find all connections taken")
	}
}

// A source that dies, or is cut off, in the middle of a large transaction leaves its
// replicas with a part of it. That part keeps neither one from being promoted nor
// another from following.
func TestAPartOfATransactionHoldsUpNobody(t *testing.T) {
	inAll(t)
	w, n := three(t)
	db := w.app(n[0])
	w.exec(db, "CREATE TABLE big (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(8000) CHARACTER SET ascii)")
	w.exec(db, "INSERT INTO big (v) VALUES (REPEAT('a', 8000))")
	for range 12 {
		w.exec(db, "INSERT INTO big (v) SELECT v FROM big")
	}
	go func() { _, _ = db.Exec("UPDATE big SET v = REPEAT('b', 8000)") }()
	w.stopInside(n[0].proc(), w.rootOf(n[1]), w.rootOf(n[2])) // no more is sent, before it dies
	for _, replica := range n[1:] {
		w.order(replica, control.ReceivePromise{Epoch: w.epoch() + 1})
		if !w.holdsPart(w.rootOf(replica)) {
			t.Fatal("the whole transaction was received before its source stopped; it has to be larger")
		}
	}
	_ = n[0].proc().handle.Kill()
	w.await(n[0], "stopped", func(r core.Report) bool { return r.State == core.Stopped })
	began := time.Now()
	next := w.failover(n[0], n[1], n[2])
	t.Logf("promoted after %s", time.Since(began))
	for _, other := range n[1:] {
		if other != next {
			w.awaitFollowing(other)
		}
	}
	took := time.Since(began)
	t.Logf("followed after %s", took)
	if all() && took > 10*time.Second { // beside the simulation it is the machine that is measured
		t.Errorf("it took %s until one is promoted and the other follows", took)
	}
	w.exec(w.app(next), "INSERT INTO t VALUES (1)")
	var old int
	must(t, w.app(next).QueryRow("SELECT COUNT(*) FROM big WHERE v LIKE 'b%'").Scan(&old))
	if old != 0 {
		t.Errorf("%d rows are of a transaction that nobody has as a whole", old)
	}
	w.awaitRows(w.app(n[1]), 1)
	w.awaitRows(w.app(n[2]), 1)
}

// holdsPart: the replica's applier is in the middle of a transaction that was not
// received as a whole.
func (w *world) holdsPart(root *sql.DB) bool {
	var part bool
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(w.t, root.QueryRowContext(ctx, `SELECT COALESCE(MAX(c.PROCESSING_TRANSACTION <> '' AND
		NOT GTID_SUBSET(c.PROCESSING_TRANSACTION, r.RECEIVED_TRANSACTION_SET)), 0)
		FROM performance_schema.replication_applier_status_by_coordinator c
		JOIN performance_schema.replication_connection_status r USING (CHANNEL_NAME)`).Scan(&part))
	return part
}

// stopInside stops a source when each replica has a part of a large transaction. It runs
// for a moment at a time, so that the end of the transaction does not come while the
// replicas are asked, however slow that is.
func (w *world) stopInside(source *process, replicas ...*sql.DB) {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		must(w.t, source.handle.Signal(syscall.SIGSTOP))
		if !slices.ContainsFunc(replicas, func(r *sql.DB) bool { return !w.holdsPart(r) }) {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatal("no large transaction is being received")
		}
		must(w.t, source.handle.Signal(syscall.SIGCONT))
	}
}
