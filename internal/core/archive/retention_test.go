package archive

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// longRun is a history with more backups, in which replicas are mostly not far behind.
func longRun(t *rapid.T) *world {
	w := newWorld(t)
	w.close = rapid.IntRange(0, 3).Draw(t, "close") > 0
	w.begin()
	w.backUp()
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			w.promote()
		case 1, 2:
			w.backUp()
		case 3, 4, 5:
			w.ship()
		default:
			w.write()
		}
	}
	return w
}

// stored are the backups of a world as a store has them: their clocks differ, and none is that
// of the primaries.
func (w *world) stored() (out []Stored) {
	skew := func(name string) time.Duration {
		return time.Duration(rapid.IntRange(-9, 9).Draw(w.t, name)) * time.Second
	}
	for i, b := range w.bases {
		n := len(w.orders[i])
		begin := setOf(w.orders[i][:rapid.IntRange(max(0, n-3), n).Draw(w.t, "surely")])
		s := Stored{ID: fmt.Sprintf("b%02d", i), Epoch: b.Epoch, Begin: begin, End: b.End,
			Point: b.Time.Add(skew("point"))}
		if b.Time.IsZero() { // of nothing
			s.Point = time.Unix(100000, 0).UTC()
		}
		s.Ended = s.Point.Add(time.Duration(rapid.IntRange(0, 9).Draw(w.t, "took")) * time.Second)
		s.Written = s.Ended.Add(skew("written"))
		out = append(out, s)
	}
	return out
}

// drawn is a world's store at some time, and how long things are to be kept.
func drawn(t *rapid.T, w *world) Holdings {
	now := w.at()
	clock := func(name string) time.Time {
		return now.Add(time.Duration(rapid.IntRange(-20, 20).Draw(t, name)) * time.Second)
	}
	return Holdings{Bases: w.stored(), Archive: w.a, Local: clock("local"), Store: clock("store"),
		Window: time.Duration(rapid.IntRange(0, 120).Draw(t, "window")) * time.Second, Minimum: rapid.IntRange(0,
			3).Draw(t, "minimum")}
}

// keysOf are the parts of spans.
func keysOf(spans []Span) (all []Key) {
	for _, s := range spans {
		for n := s.First; n <= s.Last; n++ {
			all = append(all, Key{s.Epoch, n})
		}
	}
	return all
}

// without is what is left when the first so many of what may go are removed.
func (h Holdings) without(e Expiry, removed int) Holdings {
	bases := e.Bases[:min(removed, len(e.Bases))]
	parts := keysOf(e.Parts)
	parts = parts[:min(removed-len(bases), len(parts))]
	h.Bases = slices.DeleteFunc(slices.Clone(h.Bases), func(s Stored) bool { return slices.Contains(bases, s.ID) })
	h.Archive.Parts = slices.DeleteFunc(slices.Clone(h.Archive.Parts), func(p Part) bool {
		return slices.Contains(parts, p.Key())
	})
	return h
}

func (h Holdings) shuffled(t *rapid.T) Holdings {
	w := &world{t: t, a: h.Archive}
	shuffle(t, w)
	h.Archive = w.a
	h.Bases = rapid.Permutation(h.Bases).Draw(t, "listed")
	return h
}

// restored is what a restore chooses, in words: the newest backup that is not too young, and
// what is replayed on it, if it holds as much as it may and if it holds as little. Times from before the horizon
// are not told.
func restored(w *world, h Holdings, target Target, horizon time.Time) string {
	bases := slices.Clone(h.Bases)
	slices.SortFunc(bases, func(a, b Stored) int { return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.ID, b.ID)) })
	for _, b := range bases {
		got := selectedOf(w, h.Archive, Base{Epoch: b.Epoch, End: b.End, Time: b.Point}, target)
		if got.Refusal != nil && got.Refusal.Reason == TargetBeforeBackup {
			continue
		}
		if got.Refusal != nil {
			return b.ID + ": " + words(got, horizon)
		}
		least := selectedOf(w, h.Archive, Base{Epoch: b.Epoch, End: b.Begin, Time: b.Point}, target)
		return b.ID + ": " + words(got, horizon) + "; " + words(least, horizon)
	}
	return "nothing"
}

func selectedOf(w *world, a Archive, base Base, target Target) Selection {
	return selected(w.t, &world{t: w.t, a: a, read: w.read}, base, target)
}

func words(s Selection, horizon time.Time) string {
	told := func(at time.Time) time.Time {
		if at.Before(horizon) {
			return time.Time{}
		}
		return at
	}
	if r := s.Refusal; r != nil {
		return fmt.Sprintf("%s %s %s", r.Reason, r.GTIDs, told(r.Nearest))
	}
	return fmt.Sprintf("%s up to %s as %s", stepsText(s.Plan), told(s.Plan.Reached), s.Plan.Set)
}

// inWindow draws targets that have to stay: moments, and transactions of the window.
func inWindow(t *rapid.T, w *world, horizon time.Time) (out []Target) {
	out = append(out, Target{}, Target{Kind: Immediate}, Target{Kind: ToTime, Time: horizon})
	var all []Transaction
	for _, p := range w.a.Parts {
		for _, x := range w.read[p.Key()] {
			if !x.Committed.Before(horizon) {
				all = append(all, x)
			}
		}
	}
	if len(all) == 0 {
		return out
	}
	for range 4 {
		x := all[rapid.IntRange(0, len(all)-1).Draw(t, "x")]
		y := all[rapid.IntRange(0, len(all)-1).Draw(t, "y")]
		out = append(out, Target{Kind: ToTime, Time: x.Committed},
			Target{Kind: ToTime, Time: x.Committed.Add(time.Second)},
			Target{Kind: ToGTIDs, GTIDs: x.ID}, Target{Kind: ToGTIDs, GTIDs: x.ID.Union(y.ID)},
			Target{Kind: BeforeGTIDs, GTIDs: x.ID}, Target{Kind: BeforeGTIDs, GTIDs: x.ID.Union(y.ID)})
	}
	return out
}

// removedSoFar counts what the histories let go, so that a rule by which nothing ever goes
// does not pass.
type removedSoFar struct{ bases, parts, lost, anchors int }

func (r *removedSoFar) add(h Holdings, e Expiry) {
	r.bases += len(e.Bases)
	parts := keysOf(e.Parts)
	r.parts += len(parts)
	if e.Anchor != "" {
		r.anchors++
	}
	lost, _ := Lost(h.Archive)
	for _, b := range lost {
		for _, step := range b.Steps {
			if last := step.Pieces[len(step.Pieces)-1]; slices.Contains(parts, last.Key()) {
				r.lost++
			}
		}
	}
}

// TestWhatIsInTheWindowIsRestoredAsBefore: whatever happened, whatever the clocks tell,
// whatever an earlier removal left undone and wherever this one is cut off, each target of
// the window has the same backup and the same replay, or the same refusal. A time that a refusal names is held
// to that as well, if it lies in the window. One from before it is not promised: where the clock of a primary was set
// back, a part that may go can be what shows that a backup holds what was committed after that time.
func TestWhatIsInTheWindowIsRestoredAsBefore(t *testing.T) {
	var seen removedSoFar
	rapid.Check(t, func(t *rapid.T) {
		w := longRun(t)
		if len(w.a.Parts) > 0 && rapid.IntRange(0, 4).Draw(t, "damaged") == 0 {
			gone := rapid.IntRange(0, len(w.a.Parts)-1).Draw(t, "gone")
			w.a.Parts = slices.Delete(slices.Clone(w.a.Parts), gone, gone+1)
		}
		whole := drawn(t, w)
		earlier := whole
		back := time.Duration(rapid.IntRange(0, 60).Draw(t, "earlier")) * time.Second
		earlier.Local, earlier.Minimum = earlier.Local.Add(-back), rapid.IntRange(0, 3).Draw(t, "minimum")
		first := Expire(earlier)
		left := whole.without(first, rapid.IntRange(0, len(first.Bases)+len(keysOf(first.Parts))).Draw(t, "done"))

		second := Expire(left.shuffled(t))
		seen.add(left, second)
		after := left.without(second, rapid.IntRange(0, len(second.Bases)+len(keysOf(second.Parts))).Draw(t, "cut off"))
		for _, target := range inWindow(t, w, second.Horizon) {
			was := restored(w, whole, target, second.Horizon)
			is := restored(w, after.shuffled(t), target, second.Horizon)
			if was != is {
				t.Fatalf("%+v, horizon %s, was restored from\n%s\nand is from\n%s\nafter %+v\nof %+v", target,
					second.Horizon, was, is, second, left)
			}
		}
	})
	t.Logf("%+v", seen)
	if seen.bases == 0 || seen.parts == 0 { // what was lost goes too seldom for a hundred histories
		t.Errorf("of all histories only this went: %+v", seen)
	}
}

// TestWhatStaysAndWhatGoes holds each expiry against what it may not do, however it comes to
// its decision, and against itself.
func TestWhatStaysAndWhatGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := longRun(t)
		h := drawn(t, w)
		e := Expire(h)
		if again := Expire(h.shuffled(t)); fmt.Sprint(again) != fmt.Sprint(e) {
			t.Fatalf("another order of the same gives %+v, not %+v", again, e)
		}
		if len(e.Bases)+len(e.Kept) != len(h.Bases) {
			t.Fatalf("%d go and %d stay of %d", len(e.Bases), len(e.Kept), len(h.Bases))
		}
		if e.Anchor == "" && (len(e.Bases) > 0 || len(e.Parts) > 0 || e.Held == "") {
			t.Fatalf("without an anchor %+v goes", e)
		}
		usable, stay := 0, 0
		for _, b := range h.Bases {
			if lineOf(h.Archive).offLine(Base{Epoch: b.Epoch, End: b.End}).IsEmpty() {
				usable++
				stay += len(e.Kept) - len(slices.DeleteFunc(slices.Clone(e.Kept), func(k Kept) bool {
					return k.ID == b.ID
				}))
			}
		}
		if stay < min(max(h.Minimum, 1), usable) {
			t.Fatalf("only %d of %d that can be used stay, and %d have to", stay, usable, h.Minimum)
		}
		gone := keysOf(e.Parts)
		isOrdered := slices.IsSortedFunc(gone, Key.compare)
		last := map[int64]int64{}
		for _, p := range h.Archive.Parts {
			last[p.Epoch] = max(last[p.Epoch], p.Sequence)
		}
		for _, k := range gone {
			stays := slices.ContainsFunc(h.Archive.Parts, func(p Part) bool {
				return p.Epoch == k.Epoch && p.Last.Before(e.Horizon) && !slices.Contains(gone, p.Key())
			})
			if !isOrdered || k.Sequence == last[k.Epoch] || !stays {
				t.Fatalf("part %v goes, and is none of the oldest, or none stays that a listing surely has: %v", k,
					gone)
			}
		}
		left := h.without(e, len(e.Bases)+len(gone))
		if again := Expire(left); len(again.Bases)+len(again.Parts) > 0 || again.Anchor != e.Anchor ||
			!again.Since.Equal(e.Since) {
			t.Fatalf("a second look removes more: %+v after %+v", again, e)
		}
	})
}

// TestWhatWasLostStaysAsLongAsTheRest: since the loss, not since it was written.
func TestWhatWasLostStaysAsLongAsTheRest(t *testing.T) {
	h := month(10)
	h.Archive.Branches = append(h.Archive.Branches, branch(2, "a1-3 a5-40", "a1-3 a5-40")) // a4 was lost
	for i := range h.Bases {
		h.Bases[i].Begin, h.Bases[i].End = h.Bases[i].Begin.Subtract(set("a4")), h.Bases[i].End.Subtract(set("a4"))
	}
	h.Archive.Branches[1].CreatedAt = at(601)
	if e := Expire(h); len(keysOf(e.Parts)) != 23 {
		t.Errorf("lost before the window: %+v", e)
	}
	h.Archive.Parts[3].Last = at(602)
	if e := Expire(h); len(keysOf(e.Parts)) != 2 {
		t.Errorf("written in the window: %+v", e)
	}
	h.Archive.Parts[3].Last = at(80)
	h.Archive.Branches[1].CreatedAt = at(602)
	if e := Expire(h); len(keysOf(e.Parts)) != 2 {
		t.Errorf("lost in the window: %+v", e)
	}
}

// TestTheNextLookFindsTheSameAnchor although the clock of the primary was set back, so that the newest part looks old:
// of those before it, the one right before a young one stays.
func TestTheNextLookFindsTheSameAnchor(t *testing.T) {
	h := month(10)
	h.Archive.Parts[len(h.Archive.Parts)-1].Last = at(500)
	e := Expire(h)
	if gone := keysOf(e.Parts); e.Anchor != "day6" || len(gone) != 23 {
		t.Errorf("%d parts go: %+v", len(gone), e)
	}
	if again := Expire(h.without(e, len(e.Bases)+len(keysOf(e.Parts)))); again.Anchor != "day6" || again.Held != "" {
		t.Errorf("the next look finds %+v", again)
	}
}

func TestWhatIsUnfinishedGoesOnceNobodyCanTakeIt(t *testing.T) {
	now := at(0)
	h := Holdings{Local: now, Store: now, Bases: []Stored{{ID: "done", Point: now, Ended: now, Written: now}}}
	for i, age := range []time.Duration{time.Hour, unfinishedKept, unfinishedKept + time.Second} {
		h.Unfinished = append(h.Unfinished, Unfinished{fmt.Sprint(i), now.Add(-age)})
	}
	if e := Expire(h); fmt.Sprint(e.Unfinished) != "[2]" {
		t.Errorf("%+v", e)
	}
	h.Bases[0].Written = now.Add(-unfinishedKept - time.Second)
	if e := Expire(h); len(e.Unfinished) > 0 {
		t.Errorf("it may be going on since the last complete one: %+v", e)
	}
	h.Bases[0].Written, h.Store = now, time.Time{}
	if e := Expire(h); len(e.Unfinished) > 0 {
		t.Errorf("without the store's time: %+v", e)
	}
}

// TestAGapIsToldAsOneAfterTheBeginningOfItsBranchIsGone, and what is missing as missing.
func TestAGapIsToldAsOneAfterTheBeginningOfItsBranchIsGone(t *testing.T) {
	h := month(3)
	old := Base{Epoch: 1, End: set("a1-4"), Time: at(100)}
	h.Archive.Parts = h.Archive.Parts[4:] // expired
	h.Archive.Parts[2].Before, h.Archive.Parts[2].Missing = set("a1-6 c1"), set("c1")
	got := Select(h.Archive, old, Target{}, nil)
	if got.Refusal == nil || got.Refusal.Reason != ArchiveGap {
		t.Errorf("%+v", got)
	}
	h.Archive.Parts[2].Missing = set("")
	if got := Select(h.Archive, old, Target{}, nil); got.Refusal == nil || got.Refusal.Reason != ArchiveGap {
		t.Errorf("%+v", got)
	}
	if got := Select(h.Archive, Base{Epoch: 1, Time: at(0)}, Target{}, nil); got.Refusal == nil ||
		got.Refusal.Reason != PartMissing || len(got.Refusal.Parts) != 4 {
		t.Errorf("%+v", got)
	}
	first := Archive{Branches: h.Archive.Branches, Parts: h.Archive.Parts[2:]}
	first.Parts[0].Missing = set("c1")
	if got := Select(first, Base{Epoch: 1, End: set("a1-6"), Time: at(100)}, Target{}, nil); got.Refusal == nil ||
		got.Refusal.Reason != ArchiveGap {
		t.Errorf("%+v", got)
	}
}
