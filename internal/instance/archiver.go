package instance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/reason"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

const (
	// archiveLook is between two looks whether this instance archives, and how far it is.
	archiveLook = time.Second
	// archiveAgain is when archiving that has failed is started again.
	archiveAgain = 5 * time.Second
	// archiveLate is how much later than targetRPOSeconds counts as behind: an upload takes
	// its time.
	archiveLate = 2
)

// archives tells what is to be archived now; the zero value if nothing is.
func (m *manager) archives() facts.Term {
	what := get(m, func(s *state) facts.Term {
		if s.cluster.object == nil || !s.cluster.object.Spec.Backup.Archives() {
			return facts.Term{}
		}
		rpo := s.cluster.object.Spec.Backup.ContinuousArchiving.TargetRPO()
		what := facts.TermOf(true, s.cluster.view.ArchivesIn(m.opt.Instance, s.mysqld.writable), s.status.server, rpo)
		what.Limit = s.cluster.object.Spec.Backup.MaxBytesPerSecond
		return what
	})
	if what.IsNone() {
		return facts.Term{}
	}
	_, what.Store = store.Configured(m.opt.Dirs.Archive)
	return what
}

// keepArchived archives while this instance takes writes, and stops at once when it does
// not any more. mysqld knows nothing of it.
func (m *manager) keepArchived(ctx context.Context) {
	tick := time.NewTicker(archiveLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		what := m.archives()
		if what == (facts.Term{}) || !m.mayReachStore() {
			m.archivesNothing()
			continue
		}
		err := m.archive(ctx, what)
		if err == nil || ctx.Err() != nil || errors.Is(err, archive.PromotionNotHeld) {
			continue
		}
		m.log.Error("binary logs are not archived; it is tried again", "error", err)
		m.update(func(s *state) { s.archive = failing(s.archive, err, time.Now()) })
		select {
		case <-ctx.Done():
			return
		case <-time.After(archiveAgain):
		}
	}
}

// archivesNothing wakes the worker only when something was archived until now.
func (m *manager) archivesNothing() {
	if get(m, func(s *state) bool { return s.archive != nil }) {
		m.update(func(s *state) { s.archive = nil })
	}
}

// mayReachStore: the Pod was made with the place where the store's credentials are. One that
// was made before archiving was enabled is about to be recreated.
func (m *manager) mayReachStore() bool {
	_, err := os.Stat(m.opt.Dirs.Archive)
	return err == nil
}

// failing adds a failure to what is known.
func failing(known *core.Archive, err error, now time.Time) *core.Archive {
	var out core.Archive
	if known != nil {
		out = *known
	}
	out.Failure, out.Message, out.FailedAt = string(reason.Of(err, core.ReasonArchivingFailed)), err.Error(), now
	return &out
}

// archive ships until this instance does not archive any more, or cannot go on.
func (m *manager) archive(ctx context.Context, what facts.Term) error {
	var beside sync.WaitGroup
	defer beside.Wait() // who starts again is not undone by what ends
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, recoveries := m.archived()
	s, err := store.Open(m.opt.Dirs.Archive)
	if err != nil {
		return err
	}
	s = store.Limited(s, what.Limit)
	place, _ := store.Configured(m.opt.Dirs.Archive)
	if err := backup.Claim(ctx, s, identityOf(cluster)); err != nil {
		return err
	}
	if _, err := m.archiveKey(); err != nil {
		return err // and not only once a part is due
	}
	start, err := m.metrics.Executed(ctx)
	if err != nil {
		return err
	}
	shipper, err := archive.NewShipper(archive.Config{
		Store: s, Prefix: backup.LogPrefix(cluster.Name), Cluster: string(cluster.UID),
		Epoch: what.Epoch, Instance: m.opt.Instance, ServerUUID: what.Server, Group: groupOf(cluster), Start: start,
		Recoveries: recoveries, Index: m.binlogIndex(), Key: m.archiveKey, Marks: true,
		Executed: func(ctx context.Context) (gtid.Set, error) { return m.metrics.Executed(ctx) },
		May:      func(context.Context) error { return m.stillArchives(what) }, TargetRPO: what.RPO,
		MaxBytes: partBytes(memoryFor(cluster, m.opt.MemoryLimit)),
	})
	if err != nil {
		return err
	}
	m.log.Info("archives its binary logs", "epoch", what.Epoch, "to", place, "targetRPO", what.RPO.String())
	beside.Go(func() { m.watchArchive(ctx, shipper, place, what.RPO) })
	m.update(func(s *state) { s.shipper = shipper })
	defer m.update(func(s *state) { s.shipper = nil })
	return shipper.Run(ctx)
}

// archived is the Cluster of which is archived, and the recoveries of its group.
func (m *manager) archived() (cluster *v1alpha1.Cluster, recoveries []core.GroupRecovery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.st.cluster
	if c.view != nil && c.view.Group != nil {
		recoveries = c.view.Group.Recoveries
	}
	return c.object, recoveries
}

// archiveKey is what the archive is encrypted with now. A Cluster that wants it encrypted
// archives nothing until the key has come.
func (m *manager) archiveKey() (seal.Key, error) {
	key, err := seal.Read(m.opt.Dirs.Archive)
	wanted := get(m, func(s *state) bool { return s.cluster.object.Spec.Backup.Encrypts() })
	if err == nil && wanted && key.Recipient() == "" {
		err = fmt.Errorf("spec.backup.objectStore.encryption is set, and its key has not come to this instance: %w",
			seal.KeyMissing)
	}
	return key, err
}

// groupOf is the name of the cluster's group; "" in none.
func groupOf(c *v1alpha1.Cluster) string {
	if g := c.Status.GroupReplication; g != nil && c.Spec.Replication.Mode == v1alpha1.ReplicationGroup {
		return g.GroupName
	}
	return ""
}

// partBytes is how large a part of the archive becomes: shipping takes four times as much
// memory, which mysqld must not miss. Without a limit it is the largest.
func partBytes(memory int64) int64 {
	const least, most = 1 << 20, 16 << 20
	if memory == 0 {
		return most
	}
	return min(max(memory/64, least), most)
}

func (m *manager) stillArchives(what facts.Term) error {
	if m.archives() != what {
		return fmt.Errorf("epoch %d of this instance has ended, or it archives to another store, or otherwise, "+
			"now", what.Epoch)
	}
	return nil
}

func identityOf(c *v1alpha1.Cluster) backup.Identity {
	return backup.Identity{Cluster: c.Name, Namespace: c.Namespace, UID: string(c.UID),
		CreatedAt: c.CreationTimestamp.UTC()}
}

// watchArchive reports how far the shipper is.
func (m *manager) watchArchive(ctx context.Context, s *archive.Shipper, place string, target time.Duration) {
	tick := time.NewTicker(archiveLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := archiveOf(s.Status(), target, time.Now())
		now.Place = place
		m.update(func(s *state) { s.archive = now })
	}
}

// failureLasts is how long a failure is told though nothing waits to be archived.
const failureLasts = 30 * time.Second

// maxArchivedSet is how many intervals of a set are reported.
const maxArchivedSet = 8

// shortSet is a set for a report; "" when it is empty.
func shortSet(set gtid.Set) string {
	if set.IsEmpty() {
		return ""
	}
	return set.Abbreviate(maxArchivedSet)
}

// archiveOf is a shipper's state as it is reported.
func archiveOf(s archive.Status, target time.Duration, now time.Time) *core.Archive {
	rpo := s.RPO(now)
	out := &core.Archive{File: s.Last.File, GTIDs: shortSet(s.Last.GTIDs), At: s.LastAt, CompleteUntil: s.CompleteUntil,
		EncryptedTo: s.Last.Recipient, PendingFiles: s.PendingFiles, PendingBytes: s.PendingBytes,
		RPO: rpo.Seconds(), Behind: rpo > archiveLate*target+archiveLook, Missing: shortSet(s.Missing)}
	// A failure is over once a part is stored, or after a while in which none waits.
	if s.Failure != nil && s.FailedAt.After(s.LastAt) && (rpo > 0 || now.Sub(s.FailedAt) < failureLasts) {
		return failing(out, s.Failure, s.FailedAt)
	}
	return out
}
