package instance

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/restore"
)

// follower knows the external server that the cluster follows, and asks it what it has executed while this instance
// is the primary that does.
type follower struct {
	dir string // of the Secret that tells how to reach it
	log *slog.Logger
	by  following
	// asks is mysqld.
	asks func() *mysql.Server
	// wake has it asked now: the Cluster has changed, or this instance became the primary.
	wake chan struct{}

	mu    sync.Mutex
	at    string // its host; "" while it is not known
	asked core.Source
}

// following is what a follower asks of its manager.
type following interface {
	followed() followed
	// noteStopRequested: the end of a process is no crash.
	noteStopRequested(p *process)
	// retell has the report made again, and what to do decided.
	retell()
}

// followed is who is followed, by what is known to the manager.
type followed struct {
	// as is whom this instance follows as the primary, and to whom the primary is to follow; "" for nobody.
	as, to string
	// generation of the Cluster that this instance goes by.
	generation int64
}

func newFollower(m *manager) *follower {
	return &follower{dir: m.opt.Dirs.Store, log: m.log, by: m, wake: make(chan struct{}, 1),
		asks: func() *mysql.Server { return m.roles }}
}

// host is where the external server is reached; "" where there is none, or it is not known.
func (f *follower) host() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// report is how far this instance, of which mysqld says what it holds, has followed that server; nil while it does
// not.
func (f *follower) report(follows string, server *core.Server) *core.Source {
	f.mu.Lock()
	defer f.mu.Unlock()
	if follows == "" || f.asked.Name != follows {
		return nil
	}
	out := f.asked
	out.HeldBy(server)
	return &out
}

// keepAsking reads how the server is reached, and asks it, for as long as the cluster follows it.
func (f *follower) keepAsking(ctx context.Context) {
	tick := newTicker(agent.SourceEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		case <-f.wake:
		}
		if f.by.followed().to != "" || f.host() != "" {
			f.look(ctx)
		}
	}
}

// look reads the Secret, which may have changed, and asks the server if this instance follows it.
func (f *follower) look(ctx context.Context) {
	server, err := f.read()
	now, host := f.by.followed(), ""
	if err == nil && now.to != "" {
		host = server.Host
	}
	f.mu.Lock()
	changed := f.at != host
	f.at = host
	f.mu.Unlock()
	if changed {
		f.by.retell()
	}
	if now.as == "" {
		return
	}
	asked := core.Source{Name: now.as}
	if err == nil {
		err = f.ask(ctx, server, &asked)
	}
	if ctx.Err() != nil {
		return
	}
	if asked.Generation = now.generation; err != nil {
		asked = core.Source{Name: now.as, Problem: err.Error()}
	}
	f.mu.Lock()
	was := f.asked
	f.asked = asked
	f.mu.Unlock()
	if asked.Problem != "" && was.Problem == "" {
		f.log.Warn("cannot ask the external server for its position", "server", now.as, "error", err)
	}
	f.by.retell()
}

// read is the server that the Secret tells of.
func (f *follower) read() (*recovery.Server, error) {
	task, err := recovery.Read(f.dir)
	if err == nil && task.Server == nil {
		err = fmt.Errorf("the Secret mounted at %s names no running server", f.dir)
	}
	return task.Server, err
}

// ask asks the server what it has executed.
func (f *follower) ask(ctx context.Context, s *recovery.Server, into *core.Source) error {
	ctx, cancel := context.WithTimeout(ctx, agent.SourceLimit)
	defer cancel()
	donor, err := restore.Donor(f.dir, *s)
	if err != nil {
		return err
	}
	into.Address = donor.Address
	into.Executed, into.Writable, err = mysql.SourceAt(ctx, donor.Address, donor.TLS,
		mysql.Account{User: donor.User, Password: donor.Password})
	return err
}

// source is the server as mysqld replicates from it.
func (f *follower) source() (mysql.Source, error) {
	s, err := f.read()
	if err != nil {
		return mysql.Source{}, err
	}
	donor, err := restore.Donor(f.dir, *s)
	if err != nil {
		return mysql.Source{}, err
	}
	out := mysql.Source{Host: s.Host, Port: s.Port, Account: mysql.Account{User: donor.User, Password: donor.Password},
		CAFile: filepath.Join(f.dir, recovery.FileAuthority), AnyName: s.AnyName}
	if len(donor.TLS.Certificates) > 0 {
		out.CertFile = filepath.Join(f.dir, recovery.FileCertificate)
		out.KeyFile = filepath.Join(f.dir, recovery.FileKey)
	}
	return out, nil
}

// leave has nothing more received from the server, or ends mysqld.
func (f *follower) leave(server string, proc *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), agent.DemoteLimit(true))
	defer cancel()
	err := f.asks().StopReceiving(ctx)
	f.log.Info("this instance no longer follows the external server", "server", server, "killed", err != nil)
	if err == nil {
		return nil
	}
	wait, stop := context.WithTimeout(context.Background(), 10*time.Second)
	defer stop()
	f.by.noteStopRequested(proc)
	return proc.kill(wait)
}

// becomeFollower makes this instance the primary that follows an external server. mysqld stays read-only; it is
// pointed at the server by the next decision.
func (m *manager) becomeFollower(a agent.BecomeFollower) error {
	if err := m.record.change(func(r *volumeRecord) { r.WasPrimaryEpoch = a.Epoch }); err != nil {
		return err
	}
	if _, writes := m.mayWrite(); writes || !m.facts().MayOpen(a.Epoch) {
		return fmt.Errorf("following %s: mysqld may take writes, the promotion was withdrawn, or the lease has run out",
			a.Server)
	}
	m.update(func(s *state) { s.mysqld.serves(a.Epoch, a.Server) })
	poke(m.follower.wake)
	m.log.Info("this instance is the primary, and follows an external server", "epoch", a.Epoch, "server", a.Server)
	return nil
}

// followServer points replication at the external server.
func (m *manager) followServer(ctx context.Context, a agent.FollowServer) error {
	source, err := m.follower.source()
	if err != nil {
		return fmt.Errorf("following %s: %w", a.Server, err)
	}
	if err := m.noteReceiving(); err != nil {
		return err
	}
	m.update(func(s *state) { s.status.receiveTry = time.Now() })
	if err := m.stopOtherChannels(ctx); err != nil {
		return err
	}
	if err := m.roles.BecomeReplicaOf(ctx, source); err != nil {
		return err
	}
	m.log.Info("this instance receives from the external server",
		"server", a.Server, "host", source.Host, "port", source.Port)
	return m.forgetTail()
}

// What a follower asks of its manager, besides.

func (m *manager) followed() followed {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := &m.st
	out := followed{as: s.mysqld.follows, to: s.follows()}
	if s.cluster.view != nil {
		out.generation = s.cluster.view.Generation
	}
	return out
}

// follows is the external server that this instance follows as the primary, or that the primary is to follow.
func (s *state) follows() string {
	return s.cluster.view.FollowedBy(s.mysqld.writable, s.mysqld.follows)
}
