package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
)

// dataMaker makes a data directory, and a cluster's first accounts and database in it. How far it
// is stands on the volume.
type dataMaker struct {
	dirs       Dirs
	log        *slog.Logger
	launcher   *launcher
	configurer *configurer
	activities *activities
	accounts   *accountKeeper
	by         making
	// record is what stands on the volume, and asks mysqld.
	record func() *recordFile
	asks   func() *mysql.Server
}

// making is what a dataMaker asks of its manager.
type making interface {
	// launch starts a mysqld that is seen through its life, and killMysqld ends it; that is no crash.
	launch(args ...string) error
	killMysqld() error
	// server is the mysqld that runs, or ran last; nil if none did.
	server() *process
	// getsNewData notes that the data directory was made from nothing, and setData what it is.
	getsNewData()
	setData(as core.DataState)
	// resetConnections has the manager log in again.
	resetConnections()
}

func newDataMaker(m *manager, c concerns) *dataMaker {
	return &dataMaker{dirs: m.opt.Dirs, log: m.log, launcher: c.launcher, configurer: c.configurer,
		activities: c.activities, accounts: c.keeper, by: m,
		record: func() *recordFile { return m.record }, asks: func() *mysql.Server { return m.roles }}
}

// makeData makes a data directory. Until it is finished, the volume remembers
// that it is not, and a crash in between starts from nothing again.
func (d *dataMaker) makeData(cluster *v1alpha1.Cluster, from core.DataOrigin) error {
	return d.activities.begin(agent.Initializing, func(ctx context.Context) error {
		if err := d.makeDataDir(ctx, cluster); err != nil {
			return err
		}
		d.by.getsNewData()
		if from == core.OriginCloned {
			return d.finishData(stageScratch, core.DataScratch)
		}
		if err := d.bootstrap(ctx, cluster); err != nil {
			_ = d.by.killMysqld()
			return err
		}
		return d.finishData(stagePopulated, core.DataPopulated)
	})
}

func (d *dataMaker) finishData(s stage, as core.DataState) error {
	if err := d.record().change(func(r *volumeRecord) { r.Stage = s }); err != nil {
		return err
	}
	d.by.setData(as)
	d.by.resetConnections()
	return nil
}

// forgetData records that what is on the volume is of no use to anybody, and ends mysqld. The data
// are removed when the next data directory is made.
func (d *dataMaker) forgetData() error {
	if err := d.finishData(stageInitializing, core.DataEmpty); err != nil {
		return err
	}
	_ = d.by.killMysqld()
	return nil
}

// makeDataDir runs mysqld --initialize. Only a directory of an unfinished stage,
// or of scratch data, is ever removed.
func (d *dataMaker) makeDataDir(ctx context.Context, c *v1alpha1.Cluster) error {
	if err := d.clearDataDir(); err != nil {
		return err
	}
	// A parameter that the first start would refuse is refused before anything is made.
	if err := d.configurer.prepareConfig(ctx, c); err != nil {
		return err
	}
	if err := d.configurer.writeConfig(c, mysql.ToInitialize); err != nil {
		return err
	}
	return d.runInitialize(ctx)
}

// clearDataDir removes what an unfinished attempt has left.
func (d *dataMaker) clearDataDir() error {
	if s := d.record().get().Stage; s == stagePopulated {
		entries, err := os.ReadDir(d.dirs.Data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making a data directory: %w", err)
		}
		if len(entries) > 0 {
			return errors.New("making a data directory: the volume holds populated data, which is never replaced")
		}
	}
	if err := d.launcher.idle(); err != nil {
		return err
	}
	if err := d.record().change(func(r *volumeRecord) {
		r.Stage = stageInitializing
		r.setCached(r.cached().Replaced())
	}); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dirs.Data); err != nil {
		return fmt.Errorf("removing an unfinished data directory: %w", err)
	}
	return nil
}

func (d *dataMaker) runInitialize(ctx context.Context) error {
	d.log.Info("the manager initialises a data directory")
	began := time.Now()
	p, err := d.launcher.spawn("--initialize-insecure")
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
		return p.diagnose(core.InstanceInitializeFailed, "making a data directory failed")
	}
	d.log.Info("the data directory is initialised", "after", time.Since(began).String())
	return nil
}

// bootstrap makes the cluster's first accounts and database. The server runs in
// offline mode meanwhile: nobody but us can log in, let alone write.
func (d *dataMaker) bootstrap(ctx context.Context, c *v1alpha1.Cluster) error {
	if err := d.record().change(func(r *volumeRecord) { r.Stage = stageBootstrapping }); err != nil {
		return err
	}
	first, err := d.firstData(c)
	if err != nil {
		return err
	}
	if err := d.configurer.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	d.by.resetConnections()
	if err := d.by.launch(append(d.accounts.restoring(c), "--super-read-only=OFF", "--read-only=OFF",
		"--offline-mode=ON")...); err != nil {
		return err
	}
	if err := d.awaitAnswer(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := d.asks().Populate(ctx, first); err != nil {
		return err
	}
	if err := d.asks().RefuseWrites(ctx); err != nil {
		return err
	}
	return d.asks().AcceptClients(ctx)
}

// doorPatience is for how long a server that answers may refuse its manager: it has executed
// what lets the manager in by then, or will not.
const doorPatience = 2 * time.Second

// awaitAnswer waits until the server lets its manager in, refuses it, or has ended.
func (d *dataMaker) awaitAnswer(ctx context.Context) error {
	proc := d.by.server()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var refused time.Time
	for {
		err := d.asks().Ping(ctx)
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
			return proc.diagnose(core.InstanceStartFailed, "mysqld did not start on the new data directory")
		case <-tick.C:
		}
	}
}

// firstData gathers what the first server begins with.
func (d *dataMaker) firstData(c *v1alpha1.Cluster) (mysql.First, error) {
	var f mysql.First
	dirs := d.dirs
	for dir, into := range map[string]*mysql.Account{dirs.Control: &f.Manager, dirs.Root: &f.Root,
		dirs.App: &f.Owner} {
		a, err := readAccount(dir)
		if err != nil {
			return f, err
		}
		*into = a
	}
	f.Backup, _ = dirs.backupAccount() // it can be made later; secrets tells why it is of no use
	var err error
	if f.Replication, err = dirs.replicationAccount(); err != nil {
		return f, err
	}
	if f.Database, err = readKey(dirs.App, "dbname"); err != nil {
		return f, err
	}
	f.RootEverywhere = c.Spec.EnableSuperuserAccess
	if b := c.Spec.Bootstrap; b != nil && b.InitDB != nil {
		f.CharacterSet, f.Collation, f.Statements = b.InitDB.CharacterSet, b.InitDB.Collation, b.InitDB.PostInitSQL
	}
	return f, nil
}

// What a dataMaker asks of its manager, besides.

func (m *manager) getsNewData() { m.update(func(s *state) { s.mysqld.getsNewData() }) }

func (m *manager) setData(as core.DataState) {
	m.update(func(s *state) {
		if s.volume.data = as; as == core.DataPopulated {
			s.mysqld.populates()
		}
	})
}
