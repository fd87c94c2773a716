package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"cnmsql.co/api/v1alpha1"
	"cnmsql.co/internal/archive"
	"cnmsql.co/internal/backup"
	"cnmsql.co/internal/core"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/cores"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/mysql"
	"cnmsql.co/internal/reason"
	"cnmsql.co/internal/seal"
	"cnmsql.co/internal/store"
)

const (
	// archiveLate is how much later than targetRPOSeconds counts as behind: an upload takes
	// its time.
	archiveLate = 2
	// replacedTold is for how long the store may say that this instance was replaced, without it having heard of
	// that, before that is told: word of a failover takes seconds.
	replacedTold = time.Minute
)

// archiver ships the binary log while this instance takes writes, and lets those logs go that are
// archived. It keeps what is known of that; what it goes by, it asks its manager.
type archiver struct {
	opt Options
	log *slog.Logger
	// by tells what it goes by.
	by archiving
	// asks is mysqld, as it is asked, and root purges.
	asks, root func() *mysql.Server
	// ships is archive.
	ships func(ctx context.Context, what facts.Term, since time.Time) (unknown time.Time, err error)

	mu sync.Mutex
	// said is how far it is; nil while nothing is archived.
	said *core.Archive
	// shipper archives now; nil while nothing does.
	shipper *archive.Shipper
}

// archiving is what an archiver asks of its manager.
type archiving interface {
	// archives tells what is to be archived now; the zero value if nothing is.
	archives() facts.Term
	// archived is the Cluster of which is archived, and the recoveries of its group.
	archived() (*v1alpha1.Cluster, []core.GroupRecovery)
	// server is the mysqld that runs, or ran last; nil if none did.
	server() *process
	// mayPurgeByItself is agent.Facts.MayPurge, and keepsLogs its KeepsLogs where the Cluster archives.
	mayPurgeByItself() bool
	keepsLogs() bool
	// accountsLocked: a statement that changes an account waits, and what asks for a privilege waits for it.
	accountsLocked() bool
	// retell has the report made again.
	retell()
}

func newArchiver(m *manager) *archiver {
	a := &archiver{opt: m.opt, log: m.log, by: m, asks: func() *mysql.Server { return m.metrics },
		root: func() *mysql.Server { return m.root }}
	a.ships = a.archive
	return a
}

// report is how far it is; nil while nothing is archived.
func (a *archiver) report() *core.Archive {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said
}

// say has it reported how far it is.
func (a *archiver) say(now *core.Archive) {
	a.mu.Lock()
	a.said = now
	a.mu.Unlock()
	a.by.retell()
}

func (a *archiver) setShipper(s *archive.Shipper) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shipper = s
}

// keepArchived archives while this instance takes writes, and stops at once when it does
// not any more. mysqld knows nothing of it.
func (a *archiver) keepArchived(ctx context.Context) {
	tick := newTicker(facts.LookEvery)
	defer tick.Stop()
	var past attempts
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		what := a.by.archives()
		if what == (facts.Term{}) || !a.mayReachStore() {
			past = attempts{}
			a.archivesNothing()
			continue
		}
		if !a.fails(ctx, what, &past) {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(facts.BeginRetry):
		}
	}
}

// attempts is what is known of the attempts to archive before the next one.
type attempts struct {
	// since: it is not known what the archive lacks.
	since time.Time
	// replaced is since when the store says that this instance was replaced, of which it has not heard;
	// zero while the store does not.
	replaced time.Time
}

// fails archives until that ends, and reports whether it has failed: then it is tried again after a while.
// Whoever was replaced and knows it has not failed.
func (a *archiver) fails(ctx context.Context, what facts.Term, past *attempts) bool {
	if past.since.IsZero() {
		past.since = time.Now()
	}
	var err error
	past.since, err = a.ships(ctx, what, past.since)
	isReplaced := errors.Is(err, archive.PromotionNotHeld)
	if err == nil || ctx.Err() != nil || isReplaced && a.by.archives() != what {
		past.replaced = time.Time{}
		return false
	}
	now := time.Now()
	switch {
	case !isReplaced:
		past.replaced = time.Time{}
	case past.replaced.IsZero():
		past.replaced = now
	}
	if isReplaced && now.Sub(past.replaced) < replacedTold {
		return true
	}
	if isReplaced {
		err = fmt.Errorf("the store says that a later primary archives, and this instance has not heard of one: look "+
			"whether it reaches the API server, and who else archives there: %w", err)
	}
	a.log.Error("cannot archive binary logs; the manager tries again", "error", err)
	said := failing(a.report(), err, now)
	said.PendingFiles, said.PendingBytes = nil, nil // nobody counts them until the next attempt knows where it goes on
	said.RPO = now.Sub(past.since).Seconds()
	a.say(said)
	return true
}

// archivesNothing wakes the worker only when something was archived until now.
func (a *archiver) archivesNothing() {
	if a.report() != nil {
		a.say(nil)
	}
}

// mayReachStore reports whether the Pod was made with the place where the store's credentials are.
// One that was made before archiving was enabled is about to be recreated.
func (a *archiver) mayReachStore() bool {
	_, err := os.Stat(a.opt.Dirs.Archive)
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

// archive ships until this instance does not archive any more, or cannot go on. since is since
// when it is not known what the archive lacks, and unknown what it is then.
func (a *archiver) archive(ctx context.Context, what facts.Term, since time.Time) (unknown time.Time, err error) {
	var beside sync.WaitGroup
	defer beside.Wait() // who starts again is not undone by what ends
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, recoveries := a.by.archived()
	s, err := store.Open(a.opt.Dirs.Archive)
	if err != nil {
		return since, err
	}
	s = store.Limited(s, what.Limit)
	place, _ := store.Configured(a.opt.Dirs.Archive)
	if err := backup.Claim(ctx, s, identityOf(cluster)); err != nil {
		return since, err
	}
	if _, err := a.archiveKey(); err != nil {
		return since, err // and not only once a part is due
	}
	start, err := a.asks().Executed(ctx)
	if err != nil {
		return since, err
	}
	shipper, err := archive.NewShipper(archive.Config{
		Store: s, Prefix: backup.LogPrefix(cluster.Name), Cluster: string(cluster.UID),
		Epoch: what.Epoch, Instance: a.opt.Instance, ServerUUID: what.Server, Group: groupOf(cluster), Start: start,
		Recoveries: recoveries, Index: a.opt.Dirs.binlogIndex(), Key: a.archiveKey, Marks: true,
		Executed: func(ctx context.Context) (gtid.Set, error) { return a.asks().Executed(ctx) },
		May:      func(context.Context) error { return a.stillArchives(what) }, TargetRPO: what.RPO,
		Since:    since,
		MaxBytes: partBytes(memoryFor(cluster, a.opt.MemoryLimit)),
	})
	if err != nil {
		return since, err
	}
	a.log.Info("this instance archives its binary logs",
		"epoch", what.Epoch, "to", place, "targetRPO", what.RPO.String())
	beside.Go(func() {
		a.watchArchive(ctx, shipper, place, what)
		cancel() // which breaks off an upload
	})
	a.setShipper(shipper)
	defer a.setShipper(nil)
	defer cores.UseAll()()
	err = shipper.Run(ctx)
	now := time.Now()
	return now.Add(-shipper.Status().RPO(now)), err
}

// archiveKey is what the archive is encrypted with now. A Cluster that wants it encrypted
// archives nothing until the key has come.
func (a *archiver) archiveKey() (seal.Key, error) {
	key, err := seal.Read(a.opt.Dirs.Archive)
	cluster, _ := a.by.archived()
	if err == nil && cluster.Spec.Backup.Encrypts() && key.Recipient() == "" {
		err = fmt.Errorf("spec.backup.objectStore.encryption is set, and its key has not come to this instance: %w",
			seal.KeyMissing)
	}
	return key, err
}

// groupOf is the name of the cluster's group; "" in none.
func groupOf(c *v1alpha1.Cluster) string {
	if g := c.Status.GroupReplication; g != nil && topologyOf(c).RunsGroup() {
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

func (a *archiver) stillArchives(what facts.Term) error {
	if a.by.archives() != what {
		return fmt.Errorf("epoch %d of this instance has ended, or it archives to another store, or otherwise, "+
			"now", what.Epoch)
	}
	return nil
}

func identityOf(c *v1alpha1.Cluster) backup.Identity {
	return backup.Identity{Cluster: c.Name, Namespace: c.Namespace, UID: string(c.UID),
		CreatedAt: c.CreationTimestamp.UTC()}
}

// watchArchive reports how far the shipper is, for as long as this is what is archived.
func (a *archiver) watchArchive(ctx context.Context, s *archive.Shipper, place string, what facts.Term) {
	before := a.report()
	tick := newTicker(facts.LookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			tick.again()
		}
		if a.stillArchives(what) != nil {
			return
		}
		now := archiveOf(s.Status(), before, what.RPO, time.Now())
		if now.Failure == "" {
			before = nil // it is over, however old what waits becomes
		}
		if s.Archived() != "" { // its branch is there: what begins later goes with it
			now.Place = place
		}
		a.say(now)
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

// archiveOf is a shipper's state as it is reported. before is what was reported when it began: a failure that ended
// the shipper before this one is not over because this one has not met it yet: as long as it looks what the archive
// lacks, or a part is due.
func archiveOf(s archive.Status, before *core.Archive, target time.Duration, now time.Time) *core.Archive {
	rpo := s.RPO(now)
	out := &core.Archive{File: s.Last.File, GTIDs: shortSet(s.Last.GTIDs), At: s.LastAt, CompleteUntil: s.CompleteUntil,
		EncryptedTo: s.Last.Recipient, RPO: rpo.Seconds(), Behind: rpo > archiveLate*target+facts.LookEvery,
		Missing: shortSet(s.Missing)}
	if p := s.Pending; p != nil {
		out.PendingFiles, out.PendingBytes = &p.Files, &p.Bytes
	}
	// A failure is over once a part is stored, or what failed succeeds, or after a while in which none waits.
	lasts := func(at time.Time) bool { return at.After(s.LastAt) && (rpo > 0 || now.Sub(at) < failureLasts) }
	switch {
	case s.Failure != nil && lasts(s.FailedAt) && s.FailedAt.After(s.PassedAt):
		return failing(out, s.Failure, s.FailedAt)
	case before != nil && before.Failure != "" && lasts(before.FailedAt) &&
		(!s.Sought.IsZero() || rpo >= target/2 || now.Sub(before.FailedAt) < failureLasts):
		out.Failure, out.Message, out.FailedAt = before.Failure, before.Message, before.FailedAt
	}
	return out
}

// What an archiver asks of its manager.

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

func (m *manager) archived() (cluster *v1alpha1.Cluster, recoveries []core.GroupRecovery) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &m.st.cluster
	return c.object, c.view.Recoveries()
}

func (m *manager) server() *process { return get(m, func(s *state) *process { return s.mysqld.proc }) }

func (m *manager) mayPurgeByItself() bool { return m.facts().MayPurge(m.clusterArchives()) }

func (m *manager) keepsLogs() bool { return m.clusterArchives() && m.facts().KeepsLogs() }

func (m *manager) clusterArchives() bool {
	return get(m, func(s *state) bool { return s.cluster.object != nil && s.cluster.object.Spec.Backup.Archives() })
}

func (m *manager) retell() { m.update(func(*state) {}) }
