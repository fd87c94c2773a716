package instance

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
)

// manager is one run of the manager.
type manager struct {
	opt   Options
	log   *slog.Logger
	boot  string
	began time.Time

	kube  Kubernetes
	lease *lease
	tls   *tlsFiles
	bin   binary
	// memory is nil until the volume is locked.
	memory *memory

	// Connections, one for each purpose. The pulse asks only what no lock of another
	// session holds up, so that its connection is never lost while mysqld lives. As root
	// the internal accounts are restored.
	pulse, health, roles, metrics, root *mysql.Server

	mu sync.Mutex
	st state
	// changed is closed and replaced at every change that matters.
	changed chan struct{}
	last    core.Report

	jobs      chan job
	wake      chan struct{}
	news      chan struct{} // of the group
	leaseWake chan struct{}
	pubWake   chan struct{}
	// accountsWake: the accounts are to be looked at now.
	accountsWake chan struct{}
	// interrupt ends what the worker waits for; guarded by mu.
	interrupt context.CancelFunc
	polling   sync.Mutex
	// checking is the last check of all tables.
	checking checking
	// fencing is the loop by which a primary fences itself.
	fencing pulse
	// inherited: it goes on where another was, in the same process. replacing is held
	// while a binary is received, tryingDisk while the volume is tried.
	inherited             bool
	replacing, tryingDisk sync.Mutex
	// child is the last mysqld that was started, and closing that none may be
	// started any more; both are guarded by spawning.
	spawning sync.Mutex
	child    *process
	closing  bool
	// ended is closed when the last report has been made.
	ended chan struct{}
}

// state is what the manager knows, guarded by its mutex.
type state struct {
	cluster *v1alpha1.Cluster
	view    *agent.Cluster
	views   int  // counts them
	gone    bool // the Cluster was deleted
	// latest is how far the status of the Cluster of this UID was seen to get.
	latest   agent.Latest
	latestOf types.UID
	locked   bool
	foreign  bool
	data     core.DataState
	seen     int64 // the highest epoch
	// withheld is the epoch below which nothing is received, surely since withheldAt.
	withheld   int64
	withheldAt time.Time
	vouches    agent.Vouches
	wasFenced  bool
	activity   agent.Activity
	abort      context.CancelFunc
	over       chan struct{} // closed when the activity is over
	// copied is called when mysqld begins to end itself after a clone.
	copied context.CancelFunc

	proc      *process
	accepted  bool
	mayWrite  bool
	confirmed int64 // the epoch of which the promotion was read from the API server
	writable  int64
	writableN int // counts becoming writable, to tell what was read before
	downSince time.Time
	ended     bool
	endReason string
	failures  int
	restarts  int
	problem   *agent.Problem

	// lagging: reads are kept away, until it lags less than that began with.
	lagging bool
	// receiving is judged at every look at mysqld.
	receiving receiving
	server    *core.Server
	serverAt  time.Time // just before it was read
	answered  time.Time
	misses    int
	// diskTry is when the write to the volume began that has not ended yet; zero
	// when there is none.
	diskTry time.Time
	// loginRefused by the present process, with every account that was tried, since
	// refusedSince.
	loginRefused bool
	refusedSince time.Time
	// locksAccounts: a session that waits for acknowledgements changes an account, and
	// nobody can log in, nor ask for most of what a status is made of.
	locksAccounts bool
	// ending: the present process says that it shuts down, or its socket is gone.
	ending bool
	// former are the passwords that the manager's account had, the newest first.
	former []mysql.Account

	// archive is how far binary logs are archived; nil while this instance does not.
	archive *core.Archive

	decision agent.Decision
	// errantTimes are those of the transactions errantOf.
	errantOf    gtid.Set
	errantTimes *core.Times
	// errantStatements are some of theirs; maintenance are those of all that were looked at
	// which change no data.
	errantStatements []string
	maintenance      gtid.Set
	trouble          *trouble
	primary          *agent.Position
	successor        *agent.Position
	coming           *agent.Coming
	word             *agent.Word
	asking           bool
	receiveTry       time.Time
	donor            string
	clone            *core.Clone
	// cloneFailures in a row, and when the next attempt may be ordered.
	cloneFailures int
	cloneAgain    time.Time
	askFailed     string
	askAgain      time.Time
	restart       int64
	sessions      int

	member memberState

	// binary is what this manager runs from, heir what is to take its place, and
	// refusedBinary one that could not.
	binary        core.Binary
	heir          *heir
	refusedBinary *core.RefusedBinary

	terminating   time.Time
	waiting       int      // orders that wait for the worker
	stopRequested *process // whose end is no crash
	verified      *process // whose clone was looked at
	checked       string   // configuration that mysqld has found valid
}

// trouble is an action that failed, and when it may be tried again.
type trouble struct {
	actions string
	err     error
	count   int
	retryAt time.Time
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
	s := &m.st
	f := &agent.Facts{
		Now: time.Now(), Me: m.opt.Instance, PodUID: m.opt.PodUID, Node: m.opt.Node,
		Cluster: s.view, Locked: s.locked, Data: s.data, Foreign: s.foreign, WasFenced: s.wasFenced,
		Activity: s.activity, Server: s.server, WritableEpoch: s.writable, Primary: s.primary,
		Asking: s.asking || time.Now().Before(s.askAgain), AskFailed: s.askFailed,
		Maintenance: s.maintenance, Statements: s.errantStatements,
		Donor: s.donor, RestartEpoch: s.restart, Problem: s.problem, TerminatingSince: s.terminating,
		Mysqld: agent.Mysqld{
			Up: s.proc.running(), Accepted: s.accepted, Answers: s.answers(), AnsweredAt: s.answered, DiskStalled: s.diskStalled(),
			DownSince: s.downSince, Ended: s.ended, MayWrite: s.mayWrite, Failures: s.failures,
			LoginRefused: s.loginRefused, Ending: s.ending,
		},
	}
	f.LeaseEpoch, f.LeaseRenewed = m.lease.held()
	f.ConfirmedEpoch = s.confirmed
	f.Vouches = s.vouches.Of(f.Cluster)
	if s.proc != nil {
		f.Mysqld.StartedAt = s.proc.started
	}
	if !f.Mysqld.Answers {
		f.Server = nil
	}
	if m.memory != nil {
		r := m.memory.get()
		f.FencedBelow, f.WasPrimaryEpoch, f.Acks, f.AcksEpoch = r.FencedBelow, r.WasPrimaryEpoch, r.Acks, r.AcksEpoch
		f.FrozenBelow = r.FrozenBelow
		f.Successor, f.Coming, f.Word = s.successor, s.coming, s.word
		if r.TailEpoch != 0 && (!f.Mysqld.Up || !f.Mysqld.Accepted) {
			f.TailEpoch, f.TailBase = r.tail()
		}
		f.Member = agent.MemberFacts{Of: r.GroupOf, RebootEpoch: s.member.rebootEpoch, TriedAt: s.member.triedAt, Failed: s.member.failed, Settled: s.member.settled, ProtocolOf: s.member.protocolOf, Forgot: s.member.forgot, Admitted: s.member.admitted, AdmittedEpoch: s.member.admittedEpoch, RejoinHeld: s.member.rejoinHeld, ExpelHeld: s.member.expelHeld, QuorateSince: s.member.quorateSince, HandingOver: s.member.handingOver}
	}
	m.replicationFacts(f)
	return f
}

func (m *manager) replicationFacts(f *agent.Facts) {
	if f.Server == nil || f.Server.Replication == nil {
		return
	}
	r := f.Server.Replication
	f.Replicating = r.SourceHost
	if f.Cluster != nil && f.Cluster.Promotion != nil && m.opt.Peer(f.Cluster.Promotion.Instance) == r.SourceHost {
		f.Replicating = f.Cluster.Promotion.Instance
	}
	if !r.IORunning && r.IOError != "" {
		f.ReceiveFailedAt = m.st.receiveTry
	}
}

// answers: mysqld has answered lately, and could keep what it is told.
func (s *state) answers() bool {
	return s.accepted && s.misses < agent.UnansweredLimit && !s.diskStalled()
}

// answeredWithin tells whether mysqld has answered lately.
func (m *manager) answeredWithin(d time.Duration) bool {
	return get(m, func(s *state) bool { return s.proc.running() && time.Since(s.answered) <= d && !s.diskStalled() })
}
