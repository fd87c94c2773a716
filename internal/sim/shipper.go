package sim

import (
	"slices"
	"strconv"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
	"cnmsql.co/internal/sim/judge"
)

// shipper archives what an instance writes in an epoch, as the Shipper of internal/archive
// does: what it decides are the product's rules, which are called here.
type shipper struct {
	a      *archiving
	m      *manager
	term   archive.Term
	writer archive.Writer
	start  gtid.Set
	db     *database

	sequence int64
	logs     archive.Reader
	at       int      // the position of db that is read next
	file     int      // that at which the log begins that is being read
	passed   gtid.Set // all that stands before at
	needed   string   // the first log that is not archived as a whole
	pending  *archive.Pending
	list     []judge.Written
	took     time.Duration
	pause    time.Duration
	asked    time.Time // when it was last looked whether the epoch has ended

	over  bool
	again time.Duration
}

func newShipper(a *archiving, m *manager, term archive.Term) *shipper {
	k := &shipper{a: a, m: m, term: term, db: m.proc.db, start: m.proc.db.executed}
	k.writer = archive.Writer{Cluster: "uid", Epoch: term.Epoch, Instance: m.me, ServerUUID: term.Server}
	m.at(time.Millisecond, k.begin)
	return k
}

// mayGoOn reports whether this instance still archives the same, from the same data. Once it does
// not, the shipper is over for good.
func (k *shipper) mayGoOn() bool {
	now := k.m.archives()
	if k.a.w.mut.ShipsOn && now.Epoch > k.writer.Epoch && !k.over {
		k.writer.Epoch, k.sequence, k.term = now.Epoch, k.a.bucket.last(now.Epoch).Sequence+1, now
	}
	if now == k.term && !k.over && k.m.volume.db == k.db {
		return true
	}
	k.over = true
	return false
}

// fail ends it; another is begun a while later.
func (k *shipper) fail(why string) {
	k.m.w.cover.count("archive", "archiving ended: "+why)
	k.m.tell("does not archive: %s", why)
	k.over, k.again = true, k.m.w.now+archive.BeginRetry
}

// later tries again, with growing pauses.
func (k *shipper) later(do func()) {
	k.pause = min(max(2*k.pause, archive.StoreRetryFirst), archive.StoreRetryMost)
	if k.a.w.healing {
		k.pause = min(k.pause, 5*time.Second)
	}
	k.m.at(k.pause, do)
}

// begin finds or begins the branch.
func (k *shipper) begin() {
	store := k.a.bucket
	switch o := store.objects[archive.Key{Epoch: k.writer.Epoch}]; {
	case !k.mayGoOn():
	case store.isAway() || !store.isReachable(k.m.machine): // it cannot be read
		k.later(k.begin)
	case o != nil:
		k.goOn(o.branch)
	default:
		first := len(store.branches) == 0
		if b, is := k.newBranch(); is {
			store.create(k.m, &object{key: archive.Key{Epoch: b.Epoch}, branch: b, first: first}, func(what outcome) {
				if what == failed {
					k.later(k.begin)
					return
				}
				k.begin()
			})
		}
	}
}

// newBranch by the product's rules.
func (k *shipper) newBranch() (b archive.Branch, is bool) {
	store := k.a.bucket
	listed := store.listBranches()
	k.asked = k.m.moment(k.m.w.now)
	if _, ended := archive.Superseded(listed, k.writer.Epoch); ended {
		k.fail("PromotionNotHeld")
		return b, false
	}
	before, found, _ := archive.Before(listed, k.writer.Epoch, store.branch(listed))
	var held gtid.Set
	if found {
		last := store.last(before.Epoch)
		held = k.writer.Held(before, last, k.start)
		if k.gaveTwice(last, held) {
			return b, false
		}
	} else {
		k.logs = archive.Reader{Seen: k.start}
		k.locate()
		held, k.needed = k.logs.Seen, "" // nothing may be purged before the branch is there
		k.a.w.cover.count("archive", "the first branch")
	}
	if k.a.w.mut.HeldIsStart {
		held = k.start
	}
	return k.writer.Branch(before, k.start, held, k.m.moment(k.m.w.now)), true
}

// goOn behind what the store has.
func (k *shipper) goOn(b archive.Branch) {
	last := k.a.bucket.last(b.Epoch)
	if k.writer.Owner(b.Cluster, b.ServerUUID) != archive.Own ||
		last.Sequence > 0 && k.writer.Owner(last.Cluster, last.ServerUUID) != archive.Own {
		k.fail("BranchTaken")
		return
	}
	k.pause, k.sequence, k.pending = 0, last.Sequence+1, nil
	k.list = nil
	k.logs = archive.Reader{Seen: archive.Reached(b, last)}
	if k.wasSetBack() || k.gaveTwice(last, k.logs.Seen) {
		return
	}
	k.locate()
	k.m.tell("archives epoch %d from part %d on", b.Epoch, k.sequence)
	k.step()
}

// wasSetBack reports whether the server lacks what was seen of its logs: then the shipper is over.
func (k *shipper) wasSetBack() bool {
	if k.logs.SetBack(k.db.executed).IsEmpty() {
		return false
	}
	k.fail("ServerSetBack")
	return true
}

// gaveTwice reports whether the server's logs have other transactions under the numbers that the newest part has of
// it: then the shipper is over.
func (k *shipper) gaveTwice(newest archive.Part, claimed gtid.Set) bool {
	vouched, stamps := k.writer.Vouched(newest, claimed), k.a.stamps
	for _, t := range k.db.binlog {
		if vouched.GTIDs.Contains(t.set) && !vouched.MayBe(stamps[k.db][t], stamps[t.origin][t]) {
			k.fail("ServerSetBack, it has caught up")
			return true
		}
	}
	return false
}

// locate finds the log to go on in: the newest before which all was seen, or the oldest.
func (k *shipper) locate() {
	d := k.db
	starts, before := []int{d.base}, []gtid.Set{d.purged}
	set := d.purged
	for i, t := range d.binlog {
		if at := d.base + i; i > 0 && d.isLogStart(at) {
			starts, before = append(starts, at), append(before, set)
		}
		set = set.Union(t.set)
	}
	if d.lastFile == d.end() && d.end() > d.base {
		starts, before = append(starts, d.end()), append(before, set)
	}
	for i := len(starts) - 1; i >= 0; i-- {
		if i == 0 || k.logs.Begins(before[i]) {
			k.enter(starts[i], before[i])
			return
		}
	}
}

func (k *shipper) enter(at int, before gtid.Set) {
	k.logs.Enter(before)
	k.at, k.file, k.passed, k.needed = at, at, before, logName(at)
	if !k.logs.Missing.IsEmpty() {
		k.m.tell("was without %s before it was archived", k.logs.Missing)
		k.a.w.cover.count("archive", "a gap")
	}
}

// step reads on, and ships what is due.
func (k *shipper) step() {
	if !k.mayGoOn() {
		return
	}
	s := k.m.proc
	if s == nil || s.dead || k.m.volume.stalled {
		k.m.at(k.a.pace.Poll(), k.step)
		return
	}
	if k.at > k.db.end() { // its disk has lost what was read
		k.fail("BinaryLogUnreadable")
		return
	}
	if s.answers() && k.wasSetBack() {
		return
	}
	atEnd := k.at < k.db.base || k.collect(s)
	switch {
	case k.pending != nil && k.a.pace.IsDue(k.pending, k.took, k.m.moment(k.m.w.now)):
		k.ship()
	case atEnd && k.turn():
	default:
		k.m.at(k.a.pace.Poll(), k.step)
	}
}

// collect takes executed transactions from the log until a part is full, or there are no
// more now.
func (k *shipper) collect(s *mysqld) (atEnd bool) {
	d := k.db
	end := d.logEnd(k.file)
	for k.pending == nil || !k.a.pace.IsFull(k.pending) {
		if k.at >= end {
			return true
		}
		t := d.binlog[k.at-d.base]
		if k.logs.Wants(t.set) {
			if (!s.answers() || !archive.MayShip(t.set, d.executed)) && !k.a.w.mut.ShipsUnexecuted {
				return false
			}
			committed := k.a.stamps[d][t]
			if k.pending == nil {
				k.pending = k.writer.Pend(k.sequence, &k.logs, committed, k.m.moment(k.m.w.now))
				k.pending.Part.File, k.pending.Part.From = k.needed, int64(k.at)
			}
			if !k.a.pace.Takes(k.pending, 1) {
				return false
			}
			k.pending.Add(t.set, committed, 1)
			k.pending.Part.To = int64(k.at + 1)
			k.list = append(k.list, judge.Written{
				Transaction: archive.Transaction{ID: t.set, Committed: committed}, After: t.after})
			k.logs.Pass(t.set)
		}
		k.passed = k.passed.Union(t.set)
		k.at++
	}
	return false
}

// turn goes to the next log, when what was taken from this one is shipped; false when there
// is none, or not now.
func (k *shipper) turn() bool {
	d := k.db
	purged := k.at < d.base // this one is not in the index any more
	hasNext := k.at > k.file && (k.at < d.end() || k.at == d.lastFile)
	switch {
	case !purged && !hasNext:
		return false
	case k.pending != nil:
		k.ship()
		return true
	case purged:
		k.locate()
	default:
		k.enter(k.at, k.passed)
	}
	k.m.at(time.Millisecond, k.step)
	return true
}

// ship stores the part, however often that has to be tried.
func (k *shipper) ship() {
	p := k.pending.Part
	p.SHA256 = p.GTIDs.String() + " " + p.File + " " + strconv.FormatInt(p.From, 10)
	if early := p.GTIDs.Subtract(k.db.executed); !early.IsEmpty() && !k.a.w.truth.lied {
		k.a.w.fail("archive", "%s archives %s, which it has not executed", k.m.me, early)
	}
	o := &object{key: p.Key(), part: p, list: k.list}
	began := k.m.w.now
	k.create(o, func(what outcome) {
		if there := k.a.bucket.objects[o.key]; what == exists && !there.part.IsSame(p) {
			k.fail("PartConflict")
			return
		}
		k.took, k.pause = k.m.w.now-began, 0
		k.sequence++
		k.pending, k.list = nil, nil
		k.step()
	})
}

// hasEnded reports whether another epoch has begun meanwhile, by which this one has ended: then the shipper
// is over. It asks now and then, and believes that it has not while the store cannot be asked.
func (k *shipper) hasEnded() bool {
	store, now := k.a.bucket, k.m.moment(k.m.w.now)
	if !archive.AsksForEnd(k.asked, now) || store.isAway() || !store.isReachable(k.m.machine) {
		return false
	}
	k.asked = now
	has := func(epoch int64) bool { return store.objects[archive.Key{Epoch: epoch}] != nil }
	if !slices.ContainsFunc(archive.Beyond(k.writer.Epoch), has) {
		return false
	}
	k.fail("PromotionNotHeld")
	return true
}

// create stores an object, or finds one there, if this instance still may.
func (k *shipper) create(o *object, done func(outcome)) {
	if !k.mayGoOn() || o.key.Sequence > 0 && k.hasEnded() {
		return
	}
	k.a.bucket.create(k.m, o, func(what outcome) {
		switch {
		case k.over:
		case what == failed:
			k.later(func() { k.create(o, done) })
		default:
			done(what)
		}
	})
}
