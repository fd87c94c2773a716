package archive

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cnmsql.co/internal/gtid"
)

// world is a cluster whose primaries write, are replaced and archive.
type world struct {
	t       *rapid.T
	now     int64
	ahead   int64 // is the clock of the primary
	epoch   int64
	log     []Transaction // what the primary has executed, in order
	own     int           // how many of it were there when it was promoted
	numbers map[int64]int // of each epoch's server
	a       Archive
	read    map[Key][]Transaction
	held    gtid.Set // what the archive has of the primary's line
	shipped int      // so many of log
	seq     int64
	bases   []Base
	orders  [][]Transaction // of each base, what it holds in order
	belated map[Key]bool
	close   bool // replicas are never far behind
}

func setOf(list []Transaction) (s gtid.Set) {
	for _, t := range list {
		s = s.Union(t.ID)
	}
	return s
}

// tick: the clock goes on, and now and then back.
func (w *world) tick() time.Time {
	w.now += int64(rapid.IntRange(1, 5).Draw(w.t, "tick"))
	if rapid.IntRange(0, 15).Draw(w.t, "back") == 0 {
		w.now -= int64(rapid.IntRange(0, 20).Draw(w.t, "by"))
	}
	return w.at()
}

func (w *world) at() time.Time { return time.Unix(100000+w.now+w.ahead, 0).UTC() }

func (w *world) write() {
	for range rapid.IntRange(1, 6).Draw(w.t, "writes") {
		w.numbers[w.epoch]++
		id := gtid.MustParse(fmt.Sprintf("%s:%d", w.server(), w.numbers[w.epoch]))
		w.log = append(w.log, Transaction{id, w.tick()})
	}
}

// server is the UUID of the primary: none takes writes a second time.
func (w *world) server() string { return fmt.Sprintf("%08d-0000-0000-0000-000000000000", w.epoch) }

// ship makes a part of some of what was written.
func (w *world) ship() {
	for w.shipped < len(w.log) && w.held.Contains(w.log[w.shipped].ID) {
		w.shipped++
	}
	n := rapid.IntRange(0, len(w.log)-w.shipped).Draw(w.t, "part")
	if n == 0 {
		return
	}
	w.seq++
	list := slices.Clone(w.log[w.shipped : w.shipped+n])
	p := Part{Epoch: w.epoch, Sequence: w.seq, Before: setOf(w.log[:w.shipped]), GTIDs: setOf(list),
		Transactions: int64(n), First: list[0].Committed}
	for _, t := range list {
		if t.Committed.Before(p.First) {
			p.First = t.Committed
		}
		if t.Committed.After(p.Last) {
			p.Last = t.Committed
		}
	}
	w.a.Parts, w.read[p.Key()] = append(w.a.Parts, p), list
	w.held, w.shipped = w.held.Union(p.GTIDs), w.shipped+n
}

// promote a replica that holds the beginning of what the primary has. A part that the former
// primary was storing may come to be there before the new branch is begun, or after that.
func (w *world) promote() {
	former := *w
	former.log = slices.Clone(w.log)
	for i := former.shipped; i < len(former.log) && rapid.Bool().Draw(w.t, "committed late"); i++ {
		former.log[i].Committed = former.log[i].Committed.Add(30 * time.Second) // others had it before
	}
	if rapid.IntRange(0, 2).Draw(w.t, "just in time") == 0 {
		former.ship()
		w.a.Parts, w.held = former.a.Parts, former.held
	}
	w.promoted()
	if rapid.IntRange(0, 2).Draw(w.t, "belated") == 0 {
		n := len(w.a.Parts)
		former.a.Parts = w.a.Parts
		former.ship()
		w.a.Parts = former.a.Parts
		for _, p := range w.a.Parts[n:] {
			w.belated[p.Key()] = true
		}
	}
}

func (w *world) promoted() {
	w.log = slices.Clone(w.log[:len(w.log)-rapid.IntRange(0, min(len(w.log), 8)).Draw(w.t, "lost")])
	for i := range w.log { // it applied them itself, later, and in its own log
		if i >= w.own && rapid.IntRange(0, 9).Draw(w.t, "late") == 0 {
			w.log[i].Committed = w.log[i].Committed.Add(time.Second)
		}
	}
	w.begin()
}

func (w *world) begin() {
	w.epoch += int64(rapid.IntRange(1, 3).Draw(w.t, "epoch"))
	w.ahead = int64(rapid.SampledFrom([]int{0, 0, 0, -10, 10}).Draw(w.t, "ahead"))
	start := setOf(w.log)
	w.held, w.seq, w.shipped, w.own = w.held.Intersect(start), 0, 0, len(w.log)
	w.a.Branches = append(w.a.Branches, Branch{Epoch: w.epoch, ServerUUID: w.server(), Start: start, Held: w.held,
		Numbers: OwnNumbers, CreatedAt: w.at()})
}

// least is how much of the log a replica has that is backed up.
func (w *world) least() int {
	if !w.close {
		return 0
	}
	return max(0, len(w.log)-4)
}

// back up a replica that holds the beginning of what the primary has.
func (w *world) backUp() {
	list := w.log[:rapid.IntRange(w.least(), len(w.log)).Draw(w.t, "base")]
	b := Base{Epoch: w.epoch, End: setOf(list)}
	for _, t := range list {
		if t.Committed.After(b.Time) {
			b.Time = t.Committed
		}
	}
	off := rapid.SampledFrom([]int{0, 0, 0, 0, -20, 20, 1000}).Draw(w.t, "clock of the Job")
	b.Time = b.Time.Add(time.Duration(off) * time.Second)
	w.bases, w.orders = append(w.bases, b), append(w.orders, slices.Clone(list))
}

func newWorld(t *rapid.T) *world {
	return &world{t: t, numbers: map[int64]int{}, read: map[Key][]Transaction{}, belated: map[Key]bool{}}
}

func run(t *rapid.T) *world {
	w := newWorld(t)
	w.begin()
	w.backUp()
	for range rapid.IntRange(1, 30).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			w.promote()
		case 1:
			w.backUp()
		case 2, 3, 4, 5:
			w.ship()
		default:
			w.write()
		}
	}
	return w
}

// hideNewest: a listing does not know yet of the last parts of the last branch.
func (w *world) hideNewest() {
	for range rapid.IntRange(0, 3).Draw(w.t, "hidden") {
		if n := len(w.a.Parts); n > 0 && w.a.Parts[n-1].Epoch == w.epoch {
			w.a.Parts = w.a.Parts[:n-1]
		}
	}
}

// expected are the transactions that survive and were archived, in the order in which they
// are replayed, without those of the base.
func (w *world) expected(base Base) []Transaction {
	all, _ := w.until(base, func(Transaction) bool { return true })
	return all
}

// until is the beginning of it, and the epoch in which something stands that ends it, 0 if nothing does: what
// came belated counts while it is wanted, and from then on as the next primary archived it.
func (w *world) until(base Base, wanted func(Transaction) bool) (out []Transaction, ends int64) {
	have, seen, left := setOf(w.log), base.End, int64(0)
	parts := slices.SortedFunc(slices.Values(w.a.Parts), func(a, b Part) int { return a.Key().compare(b.Key()) })
	for _, p := range parts {
		for _, t := range w.read[p.Key()] {
			switch {
			case !have.Contains(t.ID) || seen.Contains(t.ID) || w.belated[p.Key()] && left == p.Epoch:
			case wanted(t):
				out, seen = append(out, t), seen.Union(t.ID)
			case w.belated[p.Key()]:
				left = p.Epoch
			default:
				return out, p.Epoch
			}
		}
	}
	return out, 0
}

func (w *world) untilTime(base Base, at time.Time) ([]Transaction, int64) {
	return w.until(base, func(x Transaction) bool { return !x.Committed.After(at) })
}

// upTo is a target, and what of the expected is up to it.
func upTo(t *rapid.T, w *world, base Base) (Target, []Transaction) {
	kind := Kind(rapid.IntRange(0, 4).Draw(t, "kind"))
	all := w.expected(base)
	if kind == Immediate {
		return Target{Kind: kind}, nil
	}
	if kind == Latest || len(all) == 0 {
		return Target{Kind: Latest}, all
	}
	i := rapid.IntRange(0, len(all)-1).Draw(t, "target")
	switch kind {
	case ToGTIDs:
		return Target{Kind: kind, GTIDs: all[i].ID}, all[:i+1]
	case BeforeGTIDs:
		return Target{Kind: kind, GTIDs: all[i].ID}, all[:i]
	}
	target := Target{Kind: ToTime, Time: all[i].Committed.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t,
		"beside")) * time.Second)}
	all, _ = w.untilTime(base, target.Time)
	return target, all
}

// selected calls Select as often as it asks for what is in a part.
func selected(t *rapid.T, w *world, base Base, target Target) Selection {
	known := map[Key][]Transaction{}
	for {
		got := Select(w.a, base, target, known)
		if got.Read == nil {
			return got
		}
		key := got.Read.Pieces[len(got.Read.Pieces)-1].Key()
		if _, again := known[key]; again {
			t.Fatalf("it asks for %v twice", key)
		}
		known[key] = w.read[key]
	}
}

// replay does what a plan says.
func replay(w *world, p Plan) (out []Transaction) {
	for _, s := range p.Steps {
		for _, t := range w.read[s.Pieces[len(s.Pieces)-1].Key()] {
			if s.Take.Contains(t.ID) {
				out = append(out, t)
			}
		}
	}
	return out
}

// TestWhatIsReplayed: whatever happened, and in whatever order it is listed, what is
// replayed is the surviving line up to the target, in its order, and nothing else.
func TestWhatIsReplayed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := run(t)
		w.hideNewest()
		base := w.bases[rapid.IntRange(0, len(w.bases)-1).Draw(t, "backup")]
		target, want := upTo(t, w, base)
		shuffle(t, w)
		got := selected(t, w, base, target)
		if lost := base.End.Subtract(setOf(w.log)); target.Kind != Immediate && !lost.IsEmpty() {
			if got.Refusal == nil || got.Refusal.Reason != BackupNotOnBranch {
				t.Fatalf("a backup with %s is lost: %+v", lost, got)
			}
			return
		}
		if got.Refusal != nil {
			refusedRightly(t, w, base, target, *got.Refusal)
			return
		}
		if target.Kind == ToTime && w.isOvertaken(base, target.Time) {
			t.Fatalf("replayed %s, and a later primary had committed more by %s", got.Plan.Set, target.Time)
		}
		if target.Kind == ToTime && w.holdsLater(base, target.Time) {
			t.Fatalf("the backup, %s, holds what was committed after %s", base.End, target.Time)
		}
		have := replay(w, got.Plan)
		if !slices.EqualFunc(have, want, func(a, b Transaction) bool { return a.ID.Equal(b.ID) }) ||
			!got.Plan.Set.Equal(base.End.Union(setOf(want))) {
			t.Fatalf("replayed %d: %s\nwant %d: %s", len(have), setOf(have), len(want), setOf(want))
		}
	})
}

// refusedRightly: only times are refused here, and those that are said to be near are not.
func refusedRightly(t *rapid.T, w *world, base Base, target Target, r Refusal) {
	var newest time.Time
	if !target.Time.Before(base.Time) {
		newest = base.Time
	}
	all, ends := w.untilTime(base, target.Time)
	for _, x := range all {
		if x.Committed.After(newest) {
			newest = x.Committed
		}
	}
	early := r.Reason == TargetBeforeBackup && (target.Time.Before(base.Time) || w.holdsLater(base, target.Time))
	late := r.Reason == TargetAfterArchive && ends == 0 && target.Time.After(newest)
	unclear := r.Reason == TargetAmbiguous && w.isOvertaken(base, target.Time)
	if target.Kind != ToTime || !early && !late && !unclear {
		t.Fatalf("%+v is refused: %v", target, &r)
	}
	for _, at := range []time.Time{r.Nearest, r.Later} {
		if at.IsZero() {
			continue
		}
		if again := selected(t, w, base, Target{Kind: ToTime, Time: at}); again.Refusal != nil {
			t.Fatalf("%s is said to be near, and refused: %v", at, again.Refusal)
		}
	}
	nearestOf(t, w, base, target.Time, r)
}

// nearestOf fails the test if a time between the target and that before it which is said to be near can be
// restored to.
func nearestOf(t *rapid.T, w *world, base Base, target time.Time, r Refusal) {
	works := func(at time.Time) bool { return selected(t, w, base, Target{Kind: ToTime, Time: at}).Refusal == nil }
	if r.Reason != TargetAmbiguous {
		return
	}
	for at := target; at.After(r.Nearest) && !at.Before(base.Time); at = at.Add(-time.Second) {
		if works(at) {
			t.Fatalf("%s is refused with %s as the nearest, and %s is nearer: %v", target, r.Nearest, at, &r)
		}
	}
}

// holdsLater tells whether the archive has something of a backup as committed after a time.
func (w *world) holdsLater(base Base, at time.Time) bool {
	for _, p := range w.a.Parts {
		for _, t := range w.read[p.Key()] {
			if !w.belated[p.Key()] && base.End.Contains(t.ID) && t.Committed.After(at) {
				return true
			}
		}
	}
	return false
}

// isOvertaken reports whether a replay to a time ends at what was committed later, and lacks what a later
// primary had committed by then.
func (w *world) isOvertaken(base Base, at time.Time) bool {
	replayed, ends := w.untilTime(base, at)
	lacks := setOf(w.log).Subtract(base.End).Subtract(setOf(replayed))
	return ends > 0 && slices.ContainsFunc(w.a.Parts, func(p Part) bool {
		return p.Epoch > ends && slices.ContainsFunc(w.read[p.Key()], func(t Transaction) bool {
			return lacks.Contains(t.ID) && !t.Committed.After(at)
		})
	})
}

func shuffle(t *rapid.T, w *world) {
	random := rand.New(rand.NewSource(int64(rapid.IntRange(0, 1000).Draw(t, "order"))))
	if n := len(w.a.Parts); n > 0 {
		w.a.Parts = append(slices.Clone(w.a.Parts), w.a.Parts[random.Intn(n)])
	}
	w.a.Branches = append(slices.Clone(w.a.Branches), w.a.Branches[0])
	random.Shuffle(len(w.a.Parts), func(i, j int) { w.a.Parts[i], w.a.Parts[j] = w.a.Parts[j], w.a.Parts[i] })
	random.Shuffle(len(w.a.Branches), func(i, j int) {
		w.a.Branches[i],
			w.a.Branches[j] = w.a.Branches[j], w.a.Branches[i]
	})
}

// TestNothingIsReplayedAcrossAMissingPart: if any part lacks that is needed, what is
// replayed without a refusal is still a beginning of the surviving line.
func TestNothingIsReplayedAcrossAMissingPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := run(t)
		base := w.bases[0]
		if len(w.a.Parts) == 0 {
			return
		}
		gone := rapid.IntRange(0, len(w.a.Parts)-1).Draw(t, "gone")
		whole := &world{t: t, a: Archive{Parts: w.a.Parts}, log: w.log, read: w.read, belated: w.belated}
		isNewest := gone == len(w.a.Parts)-1 && w.a.Parts[gone].Epoch == w.epoch || w.belated[w.a.Parts[gone].Key()]
		w.a.Parts = slices.Delete(slices.Clone(w.a.Parts), gone, gone+1)
		target, _ := upTo(t, whole, base)
		all := whole.expected(base)
		got := selected(t, w, base, target)
		if got.Refusal != nil {
			return
		}
		have := replay(w, got.Plan)
		if len(have) > len(all) || !slices.EqualFunc(have, all[:len(have)], func(a, b Transaction) bool {
			return a.ID.Equal(b.ID)
		}) {
			t.Fatalf("replayed %s, which is no beginning of %s", setOf(have), setOf(all))
		}
		if target.Kind == Latest && !isNewest && len(have) < len(all) {
			t.Fatalf("replayed %s of %s, and nobody is told", setOf(have), setOf(all))
		}
	})
}
