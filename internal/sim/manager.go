package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// manager is one run of an instance manager: what internal/instance is in
// reality, around the real agent.Decide.
type manager struct {
	w       *world
	node    *node
	c       *container
	machine int
	me, uid string
	boot    string
	began   time.Duration
	volume  *volume
	dead    bool

	cluster *watch
	view    *agent.Cluster
	latest  agent.Latest
	locked  bool
	data    core.DataState
	seen    int64
	// withheld is the epoch below which nothing is received, surely since withheldAt.
	withheld   int64
	withheldAt time.Duration
	vouches    vouching
	wasFenced  bool

	activity agent.Activity
	abort    func()

	proc     *mysqld
	started  time.Duration
	accepted bool
	mayWrite bool
	// stopsWrites: it is being made read-only by this manager.
	stopsWrites bool
	confirmed   int64
	writable    int64
	// follows is the server outside that it follows as the primary, and source how far.
	follows   string
	source    *core.Source
	writableN int
	downSince time.Duration
	ended     bool
	failures  int
	restarts  int
	problem   *agent.Problem

	// diskStalled: a write that was tried while mysqld was writable did not complete.
	diskStalled bool

	server   *core.Server
	commits  agent.Commits
	room     *core.Room
	serverAt time.Duration
	answered time.Duration
	misses   int
	polled   int // version of the server when it was polled last

	decision   agent.Decision
	trouble    *trouble
	primary    *agent.Position
	word       *agent.Word
	elsewhere  agent.Elsewhere
	unheard    map[string]bool // was asked last what it holds, and did not answer in time
	asking     bool
	askFailed  string
	askAgain   time.Duration
	receiveTry time.Duration
	donor      string
	clone      *core.Clone
	restart    int64
	sessions   int
	verified   *mysqld

	terminating   time.Duration // 0 when not asked to
	stopRequested *mysqld

	// orders that were carried out, the last ones.
	orders    []pastOrder
	lease     leaseState
	worker    worker
	shipper   *shipper
	streams   []*statusStream
	calls     []func() // what a caller learns when the connection is reset
	last      core.Report
	reports   int // counts changes that matter
	lastMade  int64
	polling   bool
	pollBase  time.Duration
	readiness agent.Readiness
}

func newManager(n *node, c *container) *manager {
	m := &manager{w: n.w, node: n, c: c, machine: n.machine, me: c.pod.instance, uid: c.pod.uid, boot: n.w.name("boot"),
		began: n.w.now, volume: c.volume, unheard: map[string]bool{}}
	m.worker.m = m
	m.downSince = m.w.now
	m.pollBase = m.w.now
	m.at(20*time.Millisecond, m.lockVolume)
	m.armPoll()
	return m
}

// at has the manager do something later, if it still lives.
func (m *manager) at(d time.Duration, do func()) {
	m.w.at(d, m.machine, func() {
		if !m.dead {
			do()
		}
	})
}

// moment is a moment of the world's on this machine's clock; zero stays zero.
func (m *manager) moment(t time.Duration) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return m.w.machines[m.machine].clock.now(t)
}

// lockVolume waits until no other manager of this node uses the volume.
func (m *manager) lockVolume() {
	v := m.volume
	if v.holder != nil && v.holder != m {
		m.at(agent.LockRetry, m.lockVolume)
		return
	}
	v.holder = m
	if m.w.mut.ForgetFenced {
		v.record.noWritesBelow = 0
	}
	if m.w.mut.ForgetFrozen {
		v.record.noReceivingBelow = 0
	}
	m.locked, m.data, m.downSince = true, v.state(), m.w.now
	m.seen = max(m.seen, v.record.noWritesBelow, v.record.noReceivingBelow)
	m.withheld, m.withheldAt = v.record.noReceivingBelow, m.w.now
	m.update()
	if m.data == core.DataEmpty && m.w.rare.IntN(20) == 0 { // it hears of its Cluster late
		m.at(time.Second+time.Duration(m.w.rare.Int64N(int64(15*time.Second))), m.hear)
		return
	}
	m.hear()
}

func (m *manager) hear() {
	m.cluster = newWatch(m.w, kindCluster, m.machine, 0, func(string) { m.setCluster() })
}

// setCluster takes from the Cluster what an instance decides by.
func (m *manager) setCluster() {
	if m.dead {
		return
	}
	c := watched[clusterObject](m.cluster, clusterName)
	if c == nil {
		return
	}
	before := m.view
	next := &agent.Cluster{FirstData: core.OriginInitialized, Generation: c.generation, Instances: c.spec.instances,
		Durability: c.spec.durability.Mode, Lease: c.spec.lease, MaxStart: time.Hour, MaxStop: m.w.conf.maxStop}
	if m.w.outside != nil {
		next.FirstData = core.OriginImported
	}
	next.TakeStatus(&c.status, m.me)
	if m.view = m.viewAfter(next); m.view == before {
		return
	}
	if !m.view.Succeed(before, m.moment(m.w.now)) {
		m.confirmed = 0
	}
	m.seen = max(m.seen, m.view.Epoch)
	if !m.volume.record.adopted {
		m.volume.record = volumeRecord{adopted: true}
	}
	m.keepLatest()
	m.update()
	m.publish()
	m.wakeLease()
}

// viewAfter is what the manager goes by after it was told the next view.
func (m *manager) viewAfter(next *agent.Cluster) *agent.Cluster {
	if m.w.mut.BelievesThePast {
		return next
	}
	r := m.volume.record
	m.latest.Recall(max(r.viewEpoch, r.wasPrimaryEpoch))
	v := m.latest.Take(m.view, next)
	if m.latest.Past {
		m.w.cover.count("truth", "an instance is told a status of the past")
	}
	return v
}

// keepLatest keeps on the volume how far the status was seen to get, within a second.
func (m *manager) keepLatest() {
	latest := m.latest
	if latest.IsKept(m.volume.record.viewEpoch) {
		return
	}
	m.at(time.Second, func() {
		if r := &m.volume.record; r.adopted && !m.volume.stalled {
			r.viewEpoch = max(r.viewEpoch, latest.Epoch)
		}
	})
}

// facts gathers what is known for a decision.
func (m *manager) facts() *agent.Facts {
	up := m.proc != nil // until its end is noted
	f := &agent.Facts{
		Now: m.moment(m.w.now), Me: m.me, PodUID: m.uid, Node: m.node.name,
		Cluster: m.view, Locked: m.locked, Data: m.data, WasFenced: m.wasFenced,
		Activity: m.activity, WritableEpoch: m.writable, Primary: m.primary,
		Asking: m.asking || m.w.now < m.askAgain, AskFailed: m.askFailed,
		Donor: m.donor, RestartEpoch: m.restart, Problem: m.problem, TerminatingSince: m.moment(m.terminating),
		Mysqld: agent.Mysqld{Up: up, Accepted: m.accepted, Answers: m.answers(), AnsweredAt: m.moment(m.answered),
			StartedAt: m.moment(m.started),
			DownSince: m.moment(m.downSince), Ended: m.ended, MayWrite: m.mayWrite, Failures: m.failures,
			DiskStalled: m.diskStalled && m.volume.stalled, LacksSpace: m.commits.LackSpace},
		LeaseEpoch: m.lease.epoch, LeaseRenewed: m.moment(m.lease.renewed), Vouches: m.vouches.Of(m.view),
		ConfirmedEpoch: m.confirmed,
	}
	if m.w.outside != nil && m.followsAs() != "" {
		f.SourceHost = outsideName
	}
	f.TakeServer(m.server, nameItself, m.moment(m.receiveTry))
	if m.locked {
		r := m.volume.record
		f.NoWritesBelow, f.WasPrimaryEpoch = r.noWritesBelow, r.wasPrimaryEpoch
		f.Acks, f.AcksEpoch = r.acks, r.acksEpoch
		f.NoReceivingBelow = r.noReceivingBelow
		f.TakeTail(func() (int64, gtid.Set) { return r.tailEpoch, r.tailBase })
		f.Word, f.MayLack, f.Elsewhere = m.word, r.cached.MayLack, m.elsewhere
	}
	if m.w.mut.Facts != nil {
		m.w.mut.Facts(f)
	}
	return f
}

// update tells watchers, and wakes the worker.
func (m *manager) update() {
	m.announce()
	m.worker.wake()
	m.armPoll()
}

// answers reports whether mysqld has answered its manager lately.
func (m *manager) answers() bool { return m.accepted && m.misses < agent.UnansweredLimit }

// armPoll asks mysqld at the next half second. While all is quiet and nothing
// changes, asking would tell nothing new, and is left out.
func (m *manager) armPoll() {
	if m.polling || m.dead {
		return
	}
	m.polling = true
	next := m.pollBase + ((m.w.now-m.pollBase)/agent.PollEvery+1)*agent.PollEvery
	m.at(next-m.w.now, func() {
		m.polling = false
		m.poll()
		m.worker.wake()
		if !m.isQuiet() {
			m.armPoll()
		}
	})
}

// isQuiet reports whether nothing is to be decided that depends on time alone.
func (m *manager) isQuiet() bool {
	d := m.decision
	return d.State == core.Running && d.Reason == "" && len(d.Actions) == 0 && m.trouble == nil && !m.worker.busy &&
		m.writable == 0 && m.terminating == 0 && m.proc.answers() && m.polled == m.proc.version && m.c.ready
}

// mysqldChanged arms the next poll, because it would find something new.
func (m *manager) mysqldChanged() {
	if !m.dead {
		m.armPoll()
	}
}

// poll asks mysqld once.
func (m *manager) poll() {
	s := m.proc
	m.diskStalled = m.volume.stalled && (m.diskStalled || m.mayWrite)
	if s == nil || s.dead {
		m.probe()
		return
	}
	if !s.answers() {
		if m.misses++; m.misses == agent.UnansweredLimit && m.accepted {
			m.tell("mysqld does not answer")
		}
		m.announce()
		m.probe()
		return
	}
	m.misses, m.answered, m.accepted = 0, m.w.now, true
	if agent.IsSteady(m.w.now - m.started) {
		m.failures = 0
	}
	m.polled = s.version
	m.server, m.serverAt = s.report(), m.w.now
	m.server.SemiSync.Order, m.server.SemiSync.OrderEpoch = m.volume.record.acksOrder, m.volume.record.acksEpoch
	m.noteSpace()
	m.noteWritable()
	m.announce()
	m.tick()
	m.probe()
}

// noteSpace measures the volume, and judges whether commits wait for space on it.
func (m *manager) noteSpace() {
	free, size := m.volume.room()
	m.room = agent.RoomOf(m.room, free, size)
	m.commits = m.commits.Note(m.server, m.room, m.moment(m.w.now))
}

// noteWritable holds what the server says against what was made of it.
func (m *manager) noteWritable() {
	if m.activity == "" && !m.stopsWrites {
		w, _ := agent.Writes{May: m.mayWrite, Epoch: m.writable, Follows: m.follows}.Found(m.server.SuperReadOnly,
			m.server.ReadOnly)
		m.mayWrite, m.writable, m.follows = w.May, w.Epoch, w.Follows
	}
}

// probe is the kubelet's question whether clients may be sent here.
func (m *manager) probe() {
	f := m.facts()
	m.node.setReady(m.c, f.NotReady(m.decision) == "" && m.readiness.Judge(f, m.decision) == "")
}

// exited notes that mysqld has ended. Everybody who waits for it learns it now.
func (m *manager) exited(s *mysqld, crashed bool) {
	if m.proc != s {
		return
	}
	m.ended = crashed && m.stopRequested != s
	m.proc, m.downSince, m.restart = nil, m.w.now, 0
	m.writable, m.mayWrite, m.stopsWrites, m.server, m.sessions = 0, false, false, nil, 0
	m.follows, m.source = "", nil
	m.commits = agent.Commits{}
	m.writableN++
	if m.ended && agent.IsFailedStart(m.accepted, m.w.now-m.started) {
		m.failures++
	}
	if m.volume.full && crashed {
		m.setProblem(core.InstanceDiskFull)
	}
	m.tell("mysqld has ended")
	m.update()
	m.wakeLease()
}

func (m *manager) setProblem(reason core.Reason) {
	m.problem = &agent.Problem{Problem: core.Problem{Reason: reason, Message: "the volume is full"},
		RetryAt: m.moment(m.w.now + agent.StartRetry)}
	if m.view != nil {
		m.problem.Generation = m.view.Generation
	}
	m.update()
}

// terminate has the manager know that its Pod is to be stopped.
func (m *manager) terminate() {
	if m.terminating == 0 && !m.dead {
		m.terminating = m.w.now
		m.update()
	}
}

// die is the end of the manager, and of all in its container.
func (m *manager) die(power bool) {
	if m.dead {
		return
	}
	m.beforeSilence()
	m.dead = true
	if m.proc != nil {
		m.proc.end(true)
	}
	if m.volume.holder == m {
		m.volume.holder = nil
	}
	if m.cluster != nil {
		m.cluster.stop()
	}
	if !power {
		for _, st := range m.streams {
			st.reset()
		}
		for _, reset := range m.calls {
			reset()
		}
		m.w.at(10*time.Millisecond, m.machine, func() { m.node.exited(m.c) })
	}
}

// exit is an orderly end: the last word goes out, then the connections close.
func (m *manager) exit() {
	m.decision = agent.Decision{State: core.Stopped, Reason: core.InstanceTerminated,
		Message: "the instance was stopped"}
	m.trouble, m.ended = nil, false
	m.announce()
	m.releaseLease(func() {
		m.flushRelayLogs()
		m.die(false)
	})
}

func (m *manager) tell(format string, args ...any) {
	m.w.tell(m.me+": "+format, args...)
}
