package group

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core/agent"
	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/sim/judge"
)

// logged is a transaction in a binary log; number is 0 for what was written beside the group. When it was
// written, by the clock of its server, and what stood before it, the archive's look at it tells.
type logged struct {
	id     gtid.Set
	number int
	at     time.Time
	after  gtid.Set
	// applied: it was committed, and so flushed, and no more only received.
	applied bool
}

// archiving is the archive of the group, and backups of its members. Its dice are its own, and
// nothing of it moves the rest.
type archiving struct {
	s   *sim
	rng *rand.Rand
	// judge has dice for what is looked at, which changes nothing, and server those of mysqld.
	judge, server *rand.Rand
	// holds: mysqld was told to purge nothing by itself, for it archived since it takes writes.
	holds    map[string]bool
	pace     archive.Pace
	expire   time.Duration // binlogExpireSeconds
	branches map[int64]archive.Branch
	parts    map[archive.Key]*archived
	shippers map[string]*shipper
	backups  []backedUp
	taken    int // backups were begun so often
	running  *running
	// ahead is how far the clock of each instance, by its ordinal, is ahead of the store's.
	ahead [9]time.Duration
	owing
	// gaps is what was purged before it was archived, spared what was there before anything was.
	gaps, spared gtid.Set
	away         bool // the store is
	calm         bool
}

// owing is what the archive owes: what was acknowledged, by numbers, and when.
type owing struct {
	acked map[int]acknowledged
	// stored is what is archived, or was until it expired.
	stored map[int]bool
	// troubled is when something was wrong last that keeps transactions from being archived. Of how many
	// looks there were it tells, for at times minutes pass between two.
	looks, troubled int
	writer          string
}

// acknowledged is a transaction, and when it was seen to be.
type acknowledged struct {
	what, at int
}

// archived is a part, and what is in it.
type archived struct {
	archive.Part
	list []judge.Written
}

// shipper archives what a member writes in an epoch, by the rules of the product.
type shipper struct {
	term     archive.Term
	writer   archive.Writer
	start    gtid.Set
	begun    bool
	reader   archive.Reader
	at       int // the entry of the log that is read next, of all that there ever were
	from     int // that with which the pending part begins
	sequence int64
	pending  *archive.Pending
	list     []judge.Written
	trying   bool // to store it; nothing is added any more
}

func newArchiving(s *sim, seed uint64) *archiving {
	a := &archiving{s: s, rng: rand.New(rand.NewPCG(seed, 41)), judge: rand.New(rand.NewPCG(seed, 43)),
		server: rand.New(rand.NewPCG(seed, 47)), holds: map[string]bool{},
		branches: map[int64]archive.Branch{}, parts: map[archive.Key]*archived{}, shippers: map[string]*shipper{},
		owing: owing{acked: map[int]acknowledged{}, stored: map[int]bool{}}}
	a.pace = archive.Pace{RPO: []time.Duration{time.Second, 3 * time.Second}[a.rng.IntN(2)], MaxBytes: 4}
	a.expire = []time.Duration{4 * time.Second, 12 * time.Second}[a.rng.IntN(2)]
	for i := range a.ahead {
		a.ahead[i] = []time.Duration{0, 0, -time.Second, time.Second, 3 * time.Second}[a.rng.IntN(5)]
	}
	return a
}

// clock is that of an instance.
func (a *archiving) clock(in *instance) time.Time {
	return a.s.now.Add(a.ahead[in.ordinal%len(a.ahead)])
}

// term is what an instance archives now.
func (a *archiving) term(in *instance) archive.Term {
	if !in.pod.Exists || !in.answers() {
		return archive.Term{}
	}
	server := a.s.server(in)
	view := in.m.view
	if change := a.s.mut.archives; change != nil && view != nil {
		again, group := *view, *view.Group
		again.Group = &group
		view = &again
		change(in, view)
	}
	epoch := view.ArchivesIn(in.name, agent.MemberWrites(server, in.m.seen))
	return archive.TermOf(true, epoch, server, a.pace.RPO)
}

// look has whoever takes writes archive, and takes a backup now and then.
func (a *archiving) look() {
	if !a.calm && a.rng.IntN(20) == 0 {
		a.away = !a.away
	}
	for _, in := range a.s.all {
		a.stamp(in)
		term, k := a.term(in), a.shippers[in.name]
		switch {
		case term.IsNone():
			delete(a.shippers, in.name)
			a.purgeByItself(in)
			continue
		case k == nil || k.term != term || k.at > in.logEnd():
			k = &shipper{term: term, start: in.executed, writer: archive.Writer{Cluster: "uid", Epoch: term.Epoch,
				Instance: in.name, ServerUUID: term.Server, Group: groupUUID}}
			a.shippers[in.name], a.holds[in.name] = k, true
		}
		// Who is cut off from all others may reach the store.
		if a.calm || !a.away && a.rng.IntN(4) > 0 {
			a.ship(in, k)
		}
		if a.rng.IntN(6) == 0 {
			a.purge(in, k)
		}
	}
	a.owe()
	a.backUp()
	if a.rng.IntN(16) == 0 && len(a.backups) > 1 {
		a.retain()
	}
}

// logEnd is behind the last entry of the log, counted from the first that there ever was.
func (in *instance) logEnd() int { return in.dropped + len(in.log) }

// stamp notes when what is new in a log was written, and behind what.
func (a *archiving) stamp(in *instance) {
	first := len(in.log)
	for first > 0 && in.log[first-1].at.IsZero() {
		first--
	}
	for i := first; i < len(in.log); i++ {
		in.log[i].at, in.log[i].after = a.clock(in), in.purged
		if i > 0 {
			in.log[i].after = in.log[i-1].after.Union(in.log[i-1].id)
		}
	}
}

// ship goes on with what is due.
func (a *archiving) ship(in *instance, k *shipper) {
	if !k.begun && !a.begin(in, k) {
		return
	}
	for a.collect(in, k) {
		if !a.store(k) {
			return
		}
	}
}

// begin finds or begins the branch; false if that is not to be.
func (a *archiving) begin(in *instance, k *shipper) bool {
	listed := slices.Collect(maps.Keys(a.branches))
	get := func(epoch int64) (archive.Branch, bool, error) {
		b, found := a.branches[epoch]
		return b, found, nil
	}
	b, found, _ := get(k.term.Epoch)
	if !found {
		if _, ended := archive.Superseded(listed, k.term.Epoch); ended {
			return false
		}
		before, follows, _ := archive.Before(listed, k.term.Epoch, get)
		k.writer.Recoveries = in.m.view.Group.Recoveries
		if a.s.mut.writer != nil {
			a.s.mut.writer(&k.writer)
		}
		held := k.writer.Held(before, a.last(before.Epoch), k.start)
		if !follows {
			first := archive.Reader{Seen: k.start}
			first.Enter(in.purged)
			held, a.spared = first.Seen, first.Seen
		}
		b = k.writer.Branch(before, k.start, held, a.s.now)
		a.branches[b.Epoch] = b
	}
	last := a.last(b.Epoch)
	if k.writer.Owner(b.Cluster, b.ServerUUID) != archive.Own {
		return false
	}
	k.begun, k.sequence, k.pending = true, last.Sequence+1, nil
	k.reader = archive.Reader{Seen: archive.Reached(b, last)}
	a.enter(in, k)
	return true
}

// enter the oldest log.
func (a *archiving) enter(in *instance, k *shipper) {
	k.at, k.from = in.dropped, in.dropped
	k.reader.Enter(in.purged)
	a.gaps = a.gaps.Union(k.reader.Missing)
}

func (a *archiving) last(epoch int64) (last archive.Part) {
	for key, p := range a.parts {
		if key.Epoch == epoch && key.Sequence > last.Sequence {
			last = p.Part
		}
	}
	return last
}

// collect takes what was executed from the log, and reports whether a part is due.
func (a *archiving) collect(in *instance, k *shipper) (due bool) {
	now := a.clock(in)
	switch isPurged := k.at < in.dropped; {
	case isPurged && k.pending != nil:
		return true
	case isPurged:
		a.enter(in, k)
	}
	for ; k.at < in.logEnd() && !k.trying; k.at++ {
		t := in.log[k.at-in.dropped]
		if !k.reader.Wants(t.id) {
			continue
		}
		if k.pending == nil {
			k.pending, k.list, k.from = k.writer.Pend(k.sequence, &k.reader, t.at, now), nil, k.at
		}
		if a.pace.IsFull(k.pending) {
			break
		}
		k.pending.Add(t.id, t.at, 1)
		k.list = append(k.list, judge.Written{Transaction: archive.Transaction{ID: t.id, Committed: t.at},
			After: t.after, Number: t.number, What: in.content[t.number]})
		k.reader.Pass(t.id)
	}
	if k.pending == nil {
		k.from = k.at
	}
	return k.pending != nil && (a.calm || k.trying || a.pace.IsDue(k.pending, 0, now))
}

// store stores the part, or does not: an attempt of which no answer comes may have succeeded.
func (a *archiving) store(k *shipper) bool {
	k.trying = true
	if !a.calm && a.rng.IntN(6) == 0 {
		return false
	}
	p := &archived{k.pending.Part, k.list}
	if there, is := a.parts[p.Key()]; is && !there.GTIDs.Equal(p.GTIDs) {
		a.s.wrong = fmt.Sprintf("archive: %s and %s stand for part %d of epoch %d", there.GTIDs, p.GTIDs, p.Sequence,
			p.Epoch)
		return false
	}
	a.parts[p.Key()] = p
	for _, w := range p.list {
		a.stored[w.What] = true
	}
	if !a.calm && a.rng.IntN(6) == 0 {
		return false
	}
	k.sequence, k.pending, k.trying, k.from = k.sequence+1, nil, false, k.at
	return true
}
