package sim

import (
	"math/rand/v2"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// archiving is what a run has besides when its cluster archives its binary logs: an object
// store, backups, and what is true of both. Its dice are its own, and nothing of it moves
// the rest, but that binary logs are purged.
type archiving struct {
	w    *world
	rnd  *rand.Rand
	dice *rand.Rand // what is looked at, which changes nothing
	pace archive.Pace
	// expire is binlogExpireSeconds.
	expire time.Duration
	bucket *bucket
	// careless: backups are taken of instances that the operator does not hear any more.
	careless bool
	retention

	acked []acknowledged
	// stamps are when each server wrote a transaction into its binary log, by its own clock.
	stamps map[*database]map[*txn]time.Time
	// errant is what somebody wrote to a replica.
	errant gtid.Set
	due    gtid.Set // of acked, what was acknowledged long enough ago
	// shipped is what is in the store; spared is what the archive never owed, for it was
	// there before it was begun; gaps is what was purged before it was archived.
	shipped, spared, gaps gtid.Set
	// troubled is when something was wrong last that keeps transactions from being archived.
	troubled time.Duration
	writer   *mysqld // who took writes at the last look
}

// acknowledged is a write of which a client has read success.
type acknowledged struct {
	t  *txn
	at time.Duration
}

// hasArchive reports whether the run of the seed archives: one seed of four does.
func hasArchive(seed uint64) bool { return seed%4 == 3 }

const (
	// partSize is how many transactions, all of one byte here, go into a part.
	partSize = 60
	// logSize is how many transactions a binary log gets.
	logSize = 50
)

func newArchiving(w *world, seed uint64) *archiving {
	a := &archiving{w: w, rnd: rand.New(rand.NewPCG(seed, 23)),
		dice: rand.New(rand.NewPCG(seed, 29)), stamps: map[*database]map[*txn]time.Time{}}
	rpo := []time.Duration{2 * time.Second, 5 * time.Second, 20 * time.Second, 60 * time.Second}[a.rnd.IntN(4)]
	a.pace = archive.Pace{RPO: rpo, MaxBytes: partSize}
	a.expire = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute}[a.rnd.IntN(3)]
	a.bucket, a.careless = newBucket(a), seed%16 == 7
	a.retention = newRetention(a, seed)
	w.at(archive.LookEvery, nowhere, a.look)
	w.at(a.between(20*time.Second, time.Minute), nowhere, a.backUp)
	w.at(a.between(30*time.Second, 2*time.Minute), nowhere, a.sample)
	w.at(archive.PurgeEvery, nowhere, a.purge)
	return a
}

func (a *archiving) between(from, to time.Duration) time.Duration {
	return from + time.Duration(a.rnd.Int64N(int64(to-from)))
}

func (a *archiving) oneIn(n int) bool { return a.rnd.IntN(n) == 0 }

// archives tells what an instance has to archive now.
func (m *manager) archives() archive.Term {
	a := m.w.archive
	if a == nil || m.dead || m.view == nil {
		return archive.Term{}
	}
	term := archive.TermOf(true, m.writable, m.server, a.pace.RPO)
	if m.w.mut.ShipsOn && m.shipper != nil && !m.shipper.over { // it believes to hold whatever epoch there is
		term = m.shipper.term
		term.Epoch = max(term.Epoch, m.view.Epoch)
	}
	return term
}

// look has whoever takes writes archive, and sees whether something keeps it from that.
func (a *archiving) look() {
	w := a.w
	w.at(archive.LookEvery, nowhere, a.look)
	var writer *mysqld
	for _, s := range w.servers() {
		m := s.manager
		if m.dead || w.machines[m.machine].pausedUntil > w.now {
			continue
		}
		term := m.archives()
		if term == (archive.Term{}) {
			m.shipper = nil
			continue
		}
		if s.epoch == w.truth.highest && m.writable == s.epoch {
			writer = s
		}
		if m.shipper == nil || m.shipper.over && w.now >= m.shipper.again {
			m.shipper = newShipper(a, m, term)
		}
	}
	if a.isTroubled(writer) {
		a.troubled = w.now
	}
	a.writer = writer
	a.noteGaps(writer)
}

func (a *archiving) isTroubled(s *mysqld) bool {
	if s == nil || s != a.writer || !s.answers() || s.volume.stalled {
		return true
	}
	paused := a.w.machines[s.machine].pausedUntil
	return paused+archive.LookEvery > a.w.now || a.bucket.isAway() || !a.bucket.isReachable(s.machine)
}

// noteGaps notes what the writer's logs have lost and nobody has archived. It notes nothing before
// the archive was begun.
func (a *archiving) noteGaps(s *mysqld) {
	if s != nil && len(a.bucket.branches) > 0 {
		a.gaps = a.gaps.Union(s.db.purged.Subtract(a.shipped).Subtract(a.spared))
	}
}

// logged notes when a server writes a transaction into its binary log.
func (a *archiving) logged(d *database, t *txn) {
	if a == nil {
		return
	}
	if a.stamps[d] == nil {
		a.stamps[d] = map[*txn]time.Time{}
	}
	a.stamps[d][t] = kept(a.w.clockOf(d.machine))
}

// born notes what its server had written before a transaction.
func (a *archiving) born(t *txn) {
	if a != nil {
		t.after = t.origin.logged
	}
}

// strayed notes that somebody has written to a replica. It does nothing in a run that does not
// archive.
func (a *archiving) strayed(t *txn) {
	if a != nil {
		a.errant = a.errant.Union(t.set)
	}
}

// heard notes that a client has read success. It does nothing in a run that does not archive.
func (a *archiving) heard(t *txn) {
	if a != nil {
		a.acked = append(a.acked, acknowledged{t, a.w.now})
	}
}
