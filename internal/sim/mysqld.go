package sim

import (
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/gtid"
)

// mysqld is one life of a server process.
type mysqld struct {
	w       *world
	db      *database
	volume  *volume
	manager *manager
	machine int

	// ordered: the operator had it started, for nobody could take over. What it recovers
	// then, onOrder, is left behind if it ends again before another has it, and one comes
	// who can take over.
	ordered bool
	onOrder []*txn
	// vouched is what another said, right before it was started.
	vouched word

	accepting bool // connections: recovery is over
	dead      bool
	// stopped is SIGSTOP's work; what comes meanwhile waits.
	stopped bool
	backlog []func()

	superReadOnly bool
	readOnlyAsked []func()
	blocked       []func() // writes that came after super_read_only was asked for
	executing     int
	lacking       []*session // whose commits wait for space
	sessions      []*session
	// epoch in which it was opened for writes; 0 if it is not open.
	epoch int64
	// resumed is when it went on after it was stopped.
	resumed time.Duration

	semi     semiSync
	sources  []*stream // replicas that receive from here
	io       *receiver
	applying bool // the SQL thread runs
	applier  bool // something is being applied
	slow     time.Duration
	durable  bool // relay logs are
	// version counts what a status would show.
	version int
}

// start launches a process on a volume; recovery takes its time.
func startMysqld(m *manager, durable bool) *mysqld {
	s := &mysqld{w: m.w, db: m.volume.db, volume: m.volume, manager: m, machine: m.machine, superReadOnly: true,
		durable: durable, ordered: m.restart > 0, vouched: m.startsOn()}
	s.db.machine = s.machine
	s.io = &receiver{s: s}
	s.semi.give = m.view != nil && m.view.Acknowledges(m.me)
	took := 300*time.Millisecond + s.w.jitter(time.Second)
	if s.w.oneIn(20) {
		took += s.w.jitter(30 * time.Second)
	}
	s.at(took, s.recovered)
	return s
}

// recovered lets mysqld accept connections at the end of its recovery, if the disk lets it. On a
// full disk it ends, and on a stalled one it tries again.
func (s *mysqld) recovered() {
	switch {
	case s.volume.full:
		s.end(true)
	case s.volume.stalled:
		s.at(time.Second, s.recovered)
	default:
		committed := s.db.recover(s.durable)
		for _, t := range committed {
			t.vouched, t.recoveredAt = s.vouched, s.w.now
		}
		if s.ordered {
			s.onOrder = committed
		}
		s.accepting = true
		s.changed()
	}
}

// at has the server do something; a stopped one does it when it goes on.
func (s *mysqld) at(d time.Duration, do func()) {
	s.w.at(d, s.machine, func() { s.do(do) })
}

func (s *mysqld) do(f func()) {
	switch {
	case s.dead:
	case s.stopped:
		s.backlog = append(s.backlog, f)
	default:
		f()
	}
}

func (s *mysqld) changed() { s.version++; s.manager.mysqldChanged() }

// answers reports whether mysqld can be asked. A nil mysqld cannot.
func (s *mysqld) answers() bool { return s != nil && !s.dead && !s.stopped && s.accepting }

func (s *mysqld) suspend() {
	s.stopped = true
	s.changed()
	s.w.listen()
}

func (s *mysqld) resume() {
	if s.dead || !s.stopped {
		return
	}
	s.stopped, s.resumed = false, s.w.now
	todo := s.backlog
	s.backlog = nil
	for _, f := range todo {
		s.do(f)
	}
	s.changed()
	s.w.listen()
}

// end is the process's end, however it came. Clients whose connections break do
// not know what became of their commits.
func (s *mysqld) end(crashed bool) {
	if s.dead {
		return
	}
	s.dead, s.backlog, s.lacking = true, nil, nil
	for _, t := range s.onOrder {
		t.recovered = false
	}
	s.w.truth.closed(s)
	for _, c := range s.sessions {
		c.breakOff()
	}
	s.sessions = nil
	for _, st := range append([]*stream{}, s.sources...) {
		st.sourceEnded()
	}
	s.io.stop()
	m := s.manager
	if !m.dead {
		m.w.at(time.Millisecond, m.machine, func() { m.exited(s, crashed) })
	}
}

// shutDown is what SIGTERM asks for: sessions that wait for acknowledgements are
// told success, then the server ends.
func (s *mysqld) shutDown() {
	s.do(func() {
		s.releaseAll()
		s.at(100*time.Millisecond+s.w.jitter(2*time.Second), func() { s.end(false) })
		s.accepting = false
		s.changed()
	})
}

// report is SHOW STATUS and the like.
func (s *mysqld) report() *core.Server {
	d := s.db
	out := &core.Server{UUID: d.uuid, SuperReadOnly: s.superReadOnly, Executed: d.executed, Purged: d.purged}
	if !s.superReadOnly && len(d.prepared) > 0 {
		out.Owned = d.logged.Subtract(d.executed)
	}
	out.Owned = out.Owned.Union(s.lackingGTIDs())
	out.SemiSync = core.SemiSync{SourceEnabled: s.semi.enabled, SourceActive: s.semi.enabled && s.semi.active,
		Clients:      s.semiClients(),
		WaitSessions: len(s.semi.waiting), ReplicaEnabled: s.semi.give}
	if s.semi.enabled {
		out.SemiSync.Acks, out.SemiSync.Blocks = s.semi.acks, s.semi.timeout >= forever
	}
	if d.source != "" {
		r := &core.Replication{SourceHost: d.source, SourceUUID: d.sourceUUID, IORunning: s.io.stream != nil,
			Silent: s.io.stream != nil && s.io.stream.silent, IOConnecting: s.io.trying(), SQLRunning: s.applying,
			NoSpace: s.io.noSpace, IOError: s.io.err, SQLError: d.sqlError, Retrieved: d.retrieved}
		r.LagSeconds = float64(len(d.relay))
		out.Replication = r
	}
	return out
}

// openWrites is SET GLOBAL super_read_only=OFF, in an epoch.
func (s *mysqld) openWrites(epoch int64) {
	s.superReadOnly = false
	s.epoch = epoch
	s.changed()
	s.w.truth.opened(s)
}

// refuseWrites is SET GLOBAL super_read_only=ON: it waits for every write and
// commit under way, those that wait for acknowledgements included.
func (s *mysqld) refuseWrites(done func()) {
	s.readOnlyAsked = append(s.readOnlyAsked, done)
	s.tryReadOnly()
}

func (s *mysqld) tryReadOnly() {
	if len(s.readOnlyAsked) == 0 || s.executing > 0 || len(s.semi.waiting)+len(s.lacking) > 0 {
		return
	}
	if !s.superReadOnly {
		s.superReadOnly = true
		s.epoch = 0
		s.changed()
		s.w.truth.closed(s)
	}
	asked, blocked := s.readOnlyAsked, s.blocked
	s.readOnlyAsked, s.blocked = nil, nil
	for _, done := range asked {
		done()
	}
	for _, write := range blocked {
		write()
	}
}

// forgetSource is STOP REPLICA; RESET REPLICA ALL.
func (s *mysqld) forgetSource() {
	s.io.stop()
	s.applying = false
	s.db.source, s.db.sourceUUID, s.db.relay, s.db.retrieved, s.db.sqlError = "", "", nil, gtid.Set{}, ""
	s.changed()
}

// follow is STOP REPLICA IO_THREAD; CHANGE REPLICATION SOURCE; START REPLICA. The relay logs go
// where no applier runs, and stay where one does.
func (s *mysqld) follow(a agent.Follow) error {
	s.io.stop()
	s.changed()
	if err := a.Refuses(s.db.retrieved); err != nil {
		return err
	}
	if s.db.source == "" || !s.applying {
		s.db.relay, s.db.retrieved = nil, gtid.Set{}
	}
	s.db.source, s.db.sourceUUID = a.Instance, ""
	s.startApplying()
	s.io.start()
	s.changed()
	return nil
}

func (s *mysqld) startApplying() {
	s.applying = true
	s.changed()
	s.applyNext()
}

// applyNext applies what was received, oldest first.
func (s *mysqld) applyNext() {
	if s.applier || !s.applying || len(s.db.relay) == 0 {
		return
	}
	s.applier = true
	took := 200*time.Microsecond + s.w.jitter(3*time.Millisecond) + s.slow
	s.at(took, func() {
		s.applier = false
		if !s.applying || len(s.db.relay) == 0 {
			return
		}
		if s.volume.lacksSpace() {
			s.at(spaceRetry, s.applyNext)
			return
		}
		n := len(s.db.relay)
		if s.slow > 0 {
			n = 1
		}
		for range min(n, len(s.db.relay)) {
			s.db.apply()
		}
		s.pump()
		s.changed()
		s.applyNext()
	})
}
