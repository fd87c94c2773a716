package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// killMysqld ends mysqld at once; that is no crash.
func (m *manager) killMysqld() error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if !proc.running() {
		return nil
	}
	m.update(func(s *state) { s.mysqld.stopRequested = proc })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return proc.kill(ctx)
}

// makeData makes a data directory. Until it is finished, the volume remembers
// that it is not, and a crash in between starts from nothing again.
func (m *manager) makeData(from core.DataOrigin) error {
	if from == core.OriginRestored {
		return m.restoreBackup()
	}
	cluster := m.object()
	return m.activities.begin(agent.Initializing, func(ctx context.Context) error {
		if err := m.makeDataDir(ctx, cluster); err != nil {
			return err
		}
		m.update(func(s *state) { s.mysqld.getsNewData() })
		if from == core.OriginCloned {
			return m.finishData(stageScratch, core.DataScratch)
		}
		if err := m.bootstrap(ctx, cluster); err != nil {
			m.killServer()
			return err
		}
		return m.finishData(stagePopulated, core.DataPopulated)
	})
}

func (m *manager) finishData(s stage, d core.DataState) error {
	if err := m.record.change(func(r *volumeRecord) { r.Stage = s }); err != nil {
		return err
	}
	m.update(func(st *state) {
		st.volume.data = d
	})
	m.resetConnections()
	return nil
}

// forgetData: what is on the volume is of no use to anybody, and is removed with the next
// data directory that is made.
func (m *manager) forgetData() error {
	if err := m.finishData(stageInitializing, core.DataEmpty); err != nil {
		return err
	}
	m.killServer()
	return nil
}

func (m *manager) killServer() {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	if proc.running() {
		m.update(func(s *state) { s.mysqld.stopRequested = proc })
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = proc.kill(ctx)
	}
}

// makeDataDir runs mysqld --initialize. Only a directory of an unfinished stage,
// or of scratch data, is ever removed.
func (m *manager) makeDataDir(ctx context.Context, c *v1alpha1.Cluster) error {
	if err := m.clearDataDir(); err != nil {
		return err
	}
	// A parameter that the first start would refuse is refused before anything is made.
	if err := m.configurer.prepareConfig(ctx, c); err != nil {
		return err
	}
	if err := m.configurer.writeConfig(c, mysql.ToInitialize); err != nil {
		return err
	}
	return m.runInitialize(ctx)
}

// clearDataDir removes what an unfinished attempt has left.
func (m *manager) clearDataDir() error {
	if s := m.record.get().Stage; s == stagePopulated {
		entries, err := os.ReadDir(m.opt.Dirs.Data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making a data directory: %w", err)
		}
		if len(entries) > 0 {
			return errors.New("making a data directory: the volume holds populated data, which is never replaced")
		}
	}
	if err := m.launcher.idle(); err != nil {
		return err
	}
	if err := m.record.change(func(r *volumeRecord) {
		r.Stage = stageInitializing
		r.setCached(r.cached().Replaced())
	}); err != nil {
		return err
	}
	if err := os.RemoveAll(m.opt.Dirs.Data); err != nil {
		return fmt.Errorf("removing an unfinished data directory: %w", err)
	}
	return nil
}

func (m *manager) runInitialize(ctx context.Context) error {
	m.log.Info("initialises a data directory")
	began := time.Now()
	p, err := m.launcher.spawn("--initialize-insecure")
	if err != nil {
		return err
	}
	go p.wait(func() { close(p.done) })
	select {
	case <-p.done:
	case <-ctx.Done():
		wait, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		return errors.Join(ctx.Err(), p.kill(wait))
	}
	if !p.exit.Success() {
		return m.diagnose(p, core.InstanceInitializeFailed, "making a data directory failed")
	}
	m.log.Info("initialised", "after", time.Since(began).String())
	return nil
}

// bootstrap makes the cluster's first accounts and database. The server runs in
// offline mode meanwhile: nobody but us can log in, let alone write.
func (m *manager) bootstrap(ctx context.Context, c *v1alpha1.Cluster) error {
	if err := m.record.change(func(r *volumeRecord) { r.Stage = stageBootstrapping }); err != nil {
		return err
	}
	first, err := m.firstData(c)
	if err != nil {
		return err
	}
	if err := m.configurer.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	m.resetConnections()
	if err := m.launch(append(m.keeper.restoring(c), "--super-read-only=OFF", "--read-only=OFF",
		"--offline-mode=ON")...); err != nil {
		return err
	}
	if err := m.awaitAnswer(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := m.roles.Populate(ctx, first); err != nil {
		return err
	}
	if err := m.roles.RefuseWrites(ctx); err != nil {
		return err
	}
	return m.roles.AcceptClients(ctx)
}

// doorPatience is for how long a server that answers may refuse its manager: it has executed
// what lets the manager in by then, or will not.
const doorPatience = 2 * time.Second

// awaitAnswer waits until the server lets its manager in, refuses it, or has ended.
func (m *manager) awaitAnswer(ctx context.Context) error {
	proc := get(m, func(s *state) *process { return s.mysqld.proc })
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var refused time.Time
	for {
		err := m.roles.Ping(ctx)
		switch {
		case err == nil:
			return nil
		case !mysql.IsAnswer(err):
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) >= doorPatience:
			said, _ := proc.log.last()
			return fmt.Errorf("mysqld does not let its manager in on the new data directory: %w; it has logged: %s",
				err, said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-proc.done:
			return m.diagnose(proc, core.InstanceStartFailed, "mysqld did not start on the new data directory")
		case <-tick.C:
		}
	}
}

// firstData gathers what the first server begins with.
func (m *manager) firstData(c *v1alpha1.Cluster) (mysql.First, error) {
	var f mysql.First
	d := m.opt.Dirs
	for dir, into := range map[string]*mysql.Account{d.Control: &f.Manager, d.Replication: &f.Replication,
		d.Root: &f.Root, d.App: &f.Owner} {
		a, err := readAccount(dir)
		if err != nil {
			return f, err
		}
		*into = a
	}
	var err error
	if f.Database, err = readKey(d.App, "dbname"); err != nil {
		return f, err
	}
	f.RootEverywhere = c.Spec.EnableSuperuserAccess
	if b := c.Spec.Bootstrap; b != nil && b.InitDB != nil {
		f.CharacterSet, f.Collation, f.Statements = b.InitDB.CharacterSet, b.InitDB.Collation, b.InitDB.PostInitSQL
	}
	return f, nil
}

// accounts are who the manager logs in as: on data that is being made, root, who has no
// password yet. Restored data were given the manager's account while mysqld started, and what
// they hold of root's may be locked by an attempt that fails. A password that was changed in
// the Secret may not have been changed in the server yet, and then the one that is known from
// before is right. It is so too where the Secret holds no account any more: a slip in it must not
// have a server that runs look as if it did not answer.
func (m *manager) accounts() ([]mysql.Account, error) {
	now, err := readAccount(m.opt.Dirs.Control)
	m.mu.Lock()
	defer m.mu.Unlock()
	if former := m.st.access.former; err != nil && len(former) > 0 && m.st.volume.data == core.DataPopulated {
		return slices.Clone(former), nil
	}
	if err != nil {
		return nil, err
	}
	if m.activities.current() == agent.Restoring {
		return []mysql.Account{now}, nil
	}
	if m.st.volume.data != core.DataPopulated {
		return []mysql.Account{{User: "root"}, now}, nil
	}
	out := []mysql.Account{now}
	for _, a := range m.st.access.former {
		if a != now {
			out = append(out, a)
		}
	}
	m.st.access.former = out[:min(len(out), 3)]
	return out, nil
}

// resetConnections: those that are open were made with another account, and would
// be taken for a user's.
func (m *manager) resetConnections() {
	for _, s := range []*mysql.Server{m.pulse, m.health, m.roles, m.metrics} {
		s.Reset()
	}
}
