package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/recovery"
	"cnmsql.co/internal/store"
)

const (
	// restoreAgain is when a restore that failed is begun anew.
	restoreAgain = 30 * time.Second
	// takeOverLimit bounds what is done with restored data before they are the cluster's.
	takeOverLimit = 10 * time.Minute
)

// restoreBackup makes the cluster's first data from a backup. As with data that are made
// from nothing, the volume remembers until the end that they are not finished.
func (m *manager) restoreBackup() error {
	cluster := get(m, func(s *state) *v1alpha1.Cluster { return s.cluster })
	return m.begin(agent.Restoring, func(ctx context.Context) error {
		err := m.restoreFrom(ctx, cluster)
		m.update(func(s *state) { s.clone = nil })
		var named *hindrance
		if err != nil && !errors.As(err, &named) {
			return &hindrance{core.Problem{Reason: core.InstanceRestoreFailed, Message: err.Error()}, restoreAgain}
		}
		return err
	})
}

func (m *manager) restoreFrom(ctx context.Context, c *v1alpha1.Cluster) error {
	// A server or a parameter that cannot be used is told before anything is fetched.
	if err := m.prepareConfig(ctx, c); err != nil {
		return err
	}
	s, manifest, err := m.findBackup(ctx)
	if err != nil {
		return err
	}
	if err := m.clearDataDir(); err != nil {
		return err
	}
	if err := m.fetchBackup(ctx, s, manifest); err != nil {
		return err
	}
	if err := m.ownData(ctx, c); err != nil {
		m.killServer()
		return err
	}
	return m.finishData(stagePopulated, core.DataPopulated)
}

// findBackup finds the backup that the operator has named, and looks whether this server
// can have it.
func (m *manager) findBackup(ctx context.Context) (store.Store, *backup.Manifest, error) {
	t, err := recovery.Read(m.opt.Dirs.Store)
	if err != nil {
		return nil, nil, err
	}
	s, err := store.Open(m.opt.Dirs.Store)
	if err != nil {
		return nil, nil, err
	}
	s = store.Limited(s, t.MaxBytesPerSecond)
	var found *backup.Manifest
	if t.BackupID == "" {
		found, err = backup.Latest(ctx, s, t.Cluster)
	} else {
		found, err = backup.Read(ctx, s, t.Cluster, t.BackupID)
	}
	if err != nil {
		return nil, nil, err
	}
	return s, found, found.Fits(m.bin.version.String())
}

// fetchBackup writes the backup's files.
func (m *manager) fetchBackup(ctx context.Context, s store.Store, b *backup.Manifest) error {
	m.log.Info("restores a backup", "cluster", b.Cluster.Cluster, "id", b.ID, "of", b.Point.UTC().Format(time.RFC3339), "bytes", b.RawSize)
	began := time.Now()
	if err := os.MkdirAll(m.opt.Dirs.Data, 0o750); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	root, err := os.OpenRoot(m.opt.Dirs.Data)
	if err != nil {
		return fmt.Errorf("opening the data directory: %w", err)
	}
	defer func() { _ = root.Close() }()
	err = backup.Restore(ctx, s, b, root, backup.RestoreOptions{Server: m.bin.version.String(), Progress: func(p backup.Progress) {
		now := &core.Clone{Donor: "backup " + b.ID, Stage: "restore"}
		if p.Expected > 0 {
			now.Percent = int(100 * p.Done / p.Expected)
		}
		m.update(func(s *state) { s.clone = now })
	}})
	if err != nil {
		return err
	}
	m.log.Info("the backup's files are there", "after", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// ownData starts mysqld on the restored data, with nobody else let in, and makes them this
// cluster's own.
func (m *manager) ownData(ctx context.Context, c *v1alpha1.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	if err := m.memory.change(func(r *remembered) { r.Stage = stageBootstrapping }); err != nil {
		return err
	}
	first, err := m.firstData(c)
	if err != nil {
		return err
	}
	if err := os.WriteFile(m.initFilePath(), []byte(first.TakeOverFile()), 0o600); err != nil {
		return fmt.Errorf("writing the first statements: %w", err)
	}
	defer m.dropInitFile()
	if err := m.writeConfig(c, mysql.ToServe); err != nil {
		return err
	}
	m.resetConnections()
	// The events of the restored data wait until it has a primary.
	if err := m.launch("--super-read-only=OFF", "--read-only=OFF", "--offline-mode=ON", "--event-scheduler=OFF", "--init-file="+m.initFilePath()); err != nil {
		return err
	}
	if err := m.awaitAnswer(ctx); err != nil {
		return err
	}
	if err := m.root.TakeOver(ctx, first); err != nil {
		return err
	}
	if err := m.roles.RefuseWrites(ctx); err != nil {
		return err
	}
	if eventsRun(c) {
		if err := m.root.RunEvents(ctx); err != nil {
			return err
		}
	}
	return m.roles.AcceptClients(ctx)
}

// eventsRun: the user has not switched the server's events off.
func eventsRun(c *v1alpha1.Cluster) bool {
	for name, value := range c.Spec.MySQL.Parameters {
		if mysql.NormalParameter(name) == "event_scheduler" {
			return strings.EqualFold(value, "ON") || value == "1"
		}
	}
	return true
}
