package instance

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

const (
	// newsInterval is between two looks while a group changes, for newsFor after
	// it said something in the error log: its tables follow a little later.
	newsInterval = 20 * time.Millisecond
	newsFor      = time.Second
)

// statusState is what mysqld says of itself.
type statusState struct {
	server *core.Server // nil while nothing is known
	at     time.Time    // just before it was read
	// answered is when it answered the simplest question, misses how often it has not since.
	answered time.Time
	misses   int
	// ending: the present process says that it shuts down, or its socket is gone.
	ending bool
	// lagging: reads are kept away, until it lags less than that began with.
	lagging bool
	// receiving is judged at every look at mysqld, receiveTry when it was told to receive.
	receiving  receiving
	receiveTry time.Time
	applying   applying
	commits    agent.Commits
}

// startsAnew forgets what was known of an earlier process: nothing is known yet of one that was
// just started.
func (s *statusState) startsAnew() {
	s.server, s.misses, s.ending, s.receiveTry = nil, 0, false, time.Time{}
	s.applying, s.commits = applying{}, agent.Commits{}
}

// keepPolling asks mysqld how it is.
func (m *manager) keepPolling(ctx context.Context) {
	tick := newTicker(agent.PollEvery)
	defer tick.Stop()
	var until time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.news:
			until = time.Now().Add(newsFor)
		case <-tick.C:
			tick.again()
		}
		m.poll(ctx)
		poke(m.wake)
		wait := get(m, func(s *state) time.Duration { return s.status.receiving.untilLook(time.Now()) })
		if time.Now().Before(until) {
			wait = newsInterval
		}
		tick.sooner(wait)
	}
}

// poll asks mysqld once, on connections of its own.
func (m *manager) poll(ctx context.Context) { m.pollSince(ctx, time.Now()) }

// pollSince asks mysqld unless somebody else has, and had an answer, since a moment: of
// many who ask for a status at once, the first two have mysqld asked.
func (m *manager) pollSince(ctx context.Context, since time.Time) {
	m.polling.Lock()
	defer m.polling.Unlock()
	known := get(m, func(s *state) bool {
		return s.mysqld.proc.running() && s.status.server != nil && s.status.at.After(since)
	})
	if known || ctx.Err() != nil { // who asks has waited for others for so long that nobody waits any more
		return
	}
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if !proc.running() {
		return
	}
	n := get(m, func(s *state) int { return s.mysqld.writableN })
	at := time.Now()
	until, bounded := ctx.Deadline()
	enough := !bounded || until.Sub(at) >= agent.AnswerLimit
	if err := m.ping(ctx); err != nil {
		if enough && ctx.Err() == nil || mysql.IsAnswer(err) { // else nothing is known of mysqld
			m.noteSilence(proc, err)
		}
		return
	}
	promised := m.acks.promised()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	server, err := m.askStatus(ctx)
	if server != nil {
		server.SemiSync.Order, server.SemiSync.OrderEpoch = promised.Order, promised.Epoch
		server.SemiSync.Strangers = m.strangers.cutOff(ctx, server.SemiSync)
	}
	m.noteAnswer(proc, at, server, err, n)
}

func (m *manager) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agent.AnswerLimit)
	defer cancel()
	return m.pulse.Ping(ctx)
}

// askStatus returns mysqld's status. While a session of the primary's that changes an account waits
// for replicas, it asks only what needs no lock of accounts. Where a server that takes writes leaves
// the whole question unanswered, this tells whether such a session is why. That question stays with
// mysqld, and its answer tells that accounts are free again: other sessions may wait without end.
// Until then it is not asked anew. polling is held.
func (m *manager) askStatus(ctx context.Context) (*core.Server, error) {
	var asked error
	if !m.accountsLocked() || !m.asking.owes() {
		server, err := m.asking.ask(ctx, func(ctx context.Context) (*core.Server, error) {
			return m.topology().status(ctx, m.health)
		})
		answers := err == nil || mysql.IsAnswer(err)
		if answers && m.accountsLocked() {
			m.update(func(s *state) { s.access.locked = false })
		}
		if answers || m.writable() == 0 {
			return server, err
		}
		asked = err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	account, err := m.opt.Dirs.replicationUser()
	if err != nil {
		return nil, errors.Join(asked, err)
	}
	server, err := m.pulse.WaitingStatus(ctx, account)
	if err != nil {
		return nil, errors.Join(asked, err)
	}
	waits := server.SemiSync.WaitSessions > 0
	m.update(func(s *state) {
		if waits && !s.access.locked {
			m.log.Warn("a statement that changes an account waits for acknowledgements: nobody can log in until " +
				"replicas acknowledge it")
		}
		s.access.locked = waits
	})
	server.SemiSync.LocksAccounts = waits
	if !waits {
		return nil, cmp.Or(asked, errors.New("the sessions that waited for acknowledgements are gone; the status is "+
			"asked for again"))
	}
	return server, nil
}

// noteSilence notes that the simplest of questions was not answered as it should be, and counts a
// miss if no answer came at all. Whether mysqld hangs is asked with that question, for a status may
// be slow for a reason.
func (m *manager) noteSilence(proc *process, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	if s.mysqld.proc != proc || !proc.running() {
		return
	}
	s.access.noteRefused(mysql.IsAccessDenied(err), s.mysqld.isWritable())
	if s.access.refusedSince != (time.Time{}) {
		poke(m.keeper.wake)
	}
	s.status.ending = s.mysqld.accepted && (s.status.ending || mysql.IsShutdown(err) || errors.Is(err, fs.ErrNotExist))
	if mysql.IsShutdown(err) {
		m.cloner.serverEnds()
	}
	if mysql.IsAnswer(err) {
		s.status.answered, s.status.misses = time.Now(), 0
	} else if s.status.misses++; s.status.misses == agent.UnansweredLimit && s.mysqld.accepted {
		m.log.Warn("mysqld does not answer", "error", err)
	}
	m.announce()
}

func (m *manager) noteAnswer(proc *process, at time.Time, server *core.Server, err error, writableN int) {
	topology := m.topology()
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	if s.mysqld.proc != proc || !proc.running() {
		return
	}
	s.status.misses, s.status.answered, s.status.ending = 0, at, false
	s.access.noteRefused(false, s.mysqld.isWritable())
	if err != nil {
		m.log.Warn("mysqld answers, but its status cannot be read", "error", err)
		return
	}
	if !s.mysqld.accepted {
		s.mysqld.accepted = true
		m.opt.Dirs.dropInitFile()
		m.log.Info("mysqld accepts connections", "after", time.Since(proc.started).String())
	}
	if !s.mysqld.kept && s.volume.data == core.DataPopulated {
		s.mysqld.kept = true
		go m.configurer.noteServes() // a volume that hangs holds up nobody
	}
	if agent.IsSteady(time.Since(proc.started)) {
		s.mysqld.failures = 0
	}
	if s.mysqld.writableN != writableN {
		return // of before a change of role: how commits wait is another by now
	}
	s.status.receiving.note(server, at)
	s.status.applying.note(server, at)
	s.status.commits = s.status.commits.Note(server, m.room.known(), at)
	s.status.server, s.status.at = server, at
	s.status.lagging = agent.Lags(s.status.lagging, server, readLag(s.cluster.object))
	topology.noteRole(server)
	m.announce()
}

// readLag is the user's bound; 0 without one.
func readLag(c *v1alpha1.Cluster) time.Duration {
	if c == nil || c.Spec.ReadRouting == nil || c.Spec.ReadRouting.MaxReplicationLag == nil {
		return 0
	}
	return c.Spec.ReadRouting.MaxReplicationLag.Duration
}

// noteWritable holds what the server says against what we made of it; the mutex is held.
func (m *manager) noteWritable(server *core.Server) {
	s := &m.st
	if m.activities.current() != "" || s.mysqld.stopsWrites {
		return
	}
	was := agent.Writes{May: s.mysqld.mayWrite, Epoch: s.mysqld.writable, Follows: s.mysqld.follows}
	now, ended := was.Found(server.SuperReadOnly, server.ReadOnly)
	switch {
	case ended && was.Follows != "":
		m.log.Warn("somebody made a primary writable that follows an external server; it is closed, and promoted again",
			"epoch", was.Epoch, "follows", was.Follows)
	case ended:
		m.log.Warn("somebody made the primary read-only; the manager promotes it again", "epoch", was.Epoch)
	}
	s.mysqld.mayWrite, s.mysqld.writable, s.mysqld.follows = now.May, now.Epoch, now.Follows
}
