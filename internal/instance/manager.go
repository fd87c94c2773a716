package instance

import (
	"log/slog"
	"sync"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// manager is one run of the manager.
type manager struct {
	opt Options
	log *slog.Logger
	life

	kube  Kubernetes
	lease *lease
	tls   *tlsFiles
	concerns
	connections
	// record is nil until the volume is locked.
	record *recordFile

	mu sync.Mutex
	st state
	// changed is closed and replaced at every change that matters.
	changed chan struct{}
	last    core.Report

	bells
	// polling is held by who asks mysqld how it is; it guards asking.
	polling sync.Mutex
	asking  single
}

// life is of one run, from its beginning to its end.
type life struct {
	boot  string
	began time.Time
	// inherited: it goes on where another was, in the same process.
	inherited bool
	// ended is closed when the last report has been made.
	ended chan struct{}
}

// concerns keep what they know themselves, and ask their manager for the rest.
type concerns struct {
	aboutServer
	aboutData
	aboutCluster
	activities *activities // what goes on beside the worker
	worker     *worker     // of what was decided
	replacer   *replacer   // of the manager by another binary
}

// aboutServer is about mysqld.
type aboutServer struct {
	launcher   *launcher      // of its process
	configurer *configurer    // of its my.cnf
	sessions   *sessions      // of its clients
	acks       *acknowledger  // of commits
	ender      *ender         // of its life
	keeper     *accountKeeper // of its accounts
	strangers  *strangers     // who acknowledge its commits
}

// aboutData is about what the volume holds.
type aboutData struct {
	maker      *dataMaker   // from nothing
	restorer   *restorer    // from a backup
	cloner     *cloner      // from another instance
	archiver   *archiver    // of binary logs
	checker    *checker     // of tables
	provenance *provenance  // of what was received
	disk       *diskTrier   // of the volume itself
	room       *roomMeter   // of how much of it is free
	errant     *errantDater // of errant transactions
}

// aboutCluster is about this instance's place among the others.
type aboutCluster struct {
	leases     *leaseKeeper // of the primary's lease
	isolator   *isolator    // of this primary
	voucher    *voucher     // who stands behind this primary
	publisher  *publisher   // of the primary
	inquirer   *inquirer    // of other instances
	follower   *follower    // of an external server
	membership *membership  // of a group
	token      *tokenTeller // of what the API server says of its token
}

func concernsOf(m *manager) (c concerns) {
	c.activities, c.replacer = newActivities(m), newReplacer(m)
	c.launcher, c.sessions, c.keeper = newLauncher(m), newSessions(m), newAccountKeeper(m)
	c.archiver, c.checker, c.provenance, c.disk = newArchiver(m), newChecker(m), newProvenance(m), newDiskTrier(m)
	c.errant, c.room, c.token = newErrantDater(m), newRoomMeter(m), newTokenTeller(m)
	c.follower = newFollower(m)
	c.leases, c.voucher, c.publisher, c.inquirer = newLeaseKeeper(m), newVoucher(m), newPublisher(m), newInquirer(m)
	// Those that go by others.
	c.configurer = newConfigurer(m, c.launcher)
	c.acks = newAcknowledger(m, c.sessions)
	c.strangers = &strangers{m: m, cut: map[string]time.Time{}}
	c.ender = newEnder(m, c.sessions)
	c.maker = newDataMaker(m, c)
	c.restorer = newRestorer(m, c)
	c.membership = newMembership(m, c)
	c.cloner = newCloner(m, c)
	c.worker = newWorker(m, c)
	c.isolator = newIsolator(m, c.worker)
	return c
}

// connections to mysqld, one for each purpose. The pulse asks only what no lock of another
// session holds up, so that its connection is never lost while mysqld lives. As root
// the internal accounts are restored.
type connections struct{ pulse, health, roles, metrics, root *mysql.Server }

// bells wake loops; each has room for one ring.
type bells struct {
	wake chan struct{} // the worker
	news chan struct{} // of the group
}

func newBells() bells {
	return bells{make(chan struct{}, 1), make(chan struct{}, 1)}
}

// state is what the manager knows, guarded by its mutex. Each part is declared in the file of its
// concern, with the methods that touch nothing else.
type state struct {
	cluster clusterState // the Cluster, as the API server tells it
	volume  volumeState  // the volume, and the promises that are kept
	mysqld  mysqldState  // the process, and what was asked of it
	status  statusState  // what mysqld says of itself
	access  accessState  // whether it lets its manager in
	// terminating is since when the manager has been told to end; zero before.
	terminating time.Time
}

// poke wakes whoever waits on a channel of capacity one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// update changes the state, tells watchers, and wakes the worker.
func (m *manager) update(f func(*state)) {
	m.mu.Lock()
	f(&m.st)
	m.announce()
	m.mu.Unlock()
	poke(m.wake)
}

// get reads from the state.
func get[T any](m *manager, f func(*state) T) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return f(&m.st)
}

// facts gathers what is known for a decision.
func (m *manager) facts() *agent.Facts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known()
}

// known is facts; the mutex is held.
func (m *manager) known() *agent.Facts {
	goesOn := m.activities.current() // first: of what does not go on any more, all that follows has the outcome
	s, peers, clone, errant := &m.st, m.inquirer.said(), m.cloner.said(), m.errant.known()
	f := &agent.Facts{
		Now: time.Now(), Me: m.opt.Instance, PodUID: m.opt.PodUID, Node: m.opt.Node, Cluster: s.cluster.view,
		Locked: s.volume.locked, Data: s.volume.data, Foreign: s.volume.foreign, WasFenced: m.worker.said().wasFenced,
		Activity: goesOn, MovedAt: m.activities.movedAt(), WritableEpoch: s.mysqld.writable,
		Primary: peers.primary,
		Asking:  peers.asking || time.Now().Before(peers.again), AskFailed: peers.failed,
		Maintenance: errant.Maintenance, Statements: errant.Statements(),
		Donor: clone.donor, CloneError: clone.lastError(),
		RestartEpoch: s.mysqld.restart, Problem: s.mysqld.problem, TerminatingSince: s.terminating, Mysqld: m.process(),
		ApplyTriedAt: s.status.applying.tried,
	}
	f.LeaseEpoch, f.LeaseRenewed = m.lease.held()
	f.ConfirmedEpoch = s.cluster.confirmed
	f.Vouches = m.voucher.given(f.Cluster)
	f.SourceHost = m.follower.host()
	f.TakeServer(s.status.server, m.opt.Peer, s.status.receiveTry)
	if m.record != nil {
		r := m.record.get()
		f.NoWritesBelow, f.WasPrimaryEpoch = r.NoWritesBelow, r.WasPrimaryEpoch
		f.Acks, f.AcksEpoch = r.Acks, r.AcksEpoch
		f.NoReceivingBelow = r.NoReceivingBelow
		f.MayLack, f.Unnoted = r.Received.MayLack, !r.Received.Noted
		f.Word = peers.word
		f.Elsewhere = peers.elsewhere
		f.TakeTail(r.tail)
		f.Member = m.membership.known()
		f.Member.Of, f.Member.ViewEpoch = r.lineage(), s.cluster.latest.Epoch
	}
	return f
}

// process is mysqld as the worker decides by it; the mutex is held.
func (m *manager) process() agent.Mysqld {
	s := &m.st
	stalls := m.disk.stalls() // asked once: a mysqld that is silent while nothing stalls hangs
	p := agent.Mysqld{
		Up: s.mysqld.proc.running(), Accepted: s.mysqld.accepted, Answers: s.answers(stalls),
		AnsweredAt: s.status.answered, DiskStalled: stalls, DownSince: s.mysqld.downSince, Ended: s.mysqld.ended,
		MayWrite: s.mysqld.mayWrite,
		Failures: s.mysqld.failures, DataRemoved: s.mysqld.dataRemoved, LoginRefused: s.access.refused,
		ToEnd:  s.mysqld.proc != nil && s.mysqld.stopRequested == s.mysqld.proc,
		Ending: s.status.ending, LacksSpace: s.status.commits.LackSpace,
	}
	if s.mysqld.proc != nil {
		p.StartedAt = s.mysqld.proc.started
	}
	return p
}

// answers reports whether mysqld has answered lately, and could keep what it is told, which it cannot
// on a volume that stalls.
func (s *state) answers(stalls bool) bool {
	return s.mysqld.accepted && s.status.misses < agent.UnansweredLimit && !stalls
}

// answeredWithin tells whether mysqld has answered lately.
func (m *manager) answeredWithin(d time.Duration) bool {
	return get(m, func(s *state) bool {
		return s.mysqld.proc.running() && time.Since(s.status.answered) <= d && !m.disk.stalls()
	})
}
