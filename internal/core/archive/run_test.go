package archive

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cnmsql.co/internal/gtid"
)

// bundled is an archive with parts in bundles, which it knows as runs where they are plain.
type bundled struct {
	Archive
	bundles []Span
	parts   map[Key][]Part // of each run, by its first
	used    int            // runs that were asked for
}

// busyRun is a history of many small parts.
func busyRun(t *rapid.T) *world {
	w := newWorld(t)
	w.close = rapid.IntRange(0, 3).Draw(t, "close") > 0
	w.begin()
	w.backUp()
	for range rapid.IntRange(5, 60).Draw(t, "steps") {
		switch rapid.IntRange(0, 19).Draw(t, "step") {
		case 0:
			w.promote()
		case 1, 2:
			w.backUp()
		default:
			w.write()
			w.ship()
		}
	}
	return w
}

// bundle puts consecutive parts of a world into bundles, or into runs of parts that lie by themselves.
// Some lie beside their bundle, and some are found twice, in any order.
func bundle(t *rapid.T, a Archive) *bundled {
	b := &bundled{Archive: a, parts: map[Key][]Part{}}
	all, _ := ordered(a.Parts)
	b.Parts = nil
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Epoch == all[0].Epoch && all[n].Sequence == all[n-1].Sequence+1 {
			n++
		}
		n = rapid.IntRange(1, n).Draw(t, "bundle")
		if n > 1 && rapid.Bool().Draw(t, "bundled") {
			b.bundles = append(b.bundles, Span{all[0].Epoch, all[0].Sequence, all[n-1].Sequence})
		}
		for _, p := range RunsOf(all[:n]) {
			if b.Parts = append(b.Parts, p); p.IsRun() {
				from := p.Sequence - all[0].Sequence
				b.parts[p.Key()] = slices.Clone(all[from : from+p.Span().Count()])
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "beside") == 0 {
			b.Parts = append(b.Parts, all[rapid.IntRange(0, n-1).Draw(t, "which")])
		}
		all = all[n:]
	}
	if len(b.Parts) > 0 && rapid.Bool().Draw(t, "shuffled") {
		b.Parts = append(b.Parts, rapid.SampledFrom(b.Parts).Draw(t, "twice"))
		b.Parts = rapid.Permutation(b.Parts).Draw(t, "order")
	}
	return b
}

// expand does what a decision asks for.
func (b *bundled) expand(t *rapid.T, run Part) {
	b.used++
	if err := b.Archive.Expand(run, b.parts[run.Key()]); err != nil {
		t.Fatalf("%v is asked for: %v", run.Span(), err)
	}
}

// copied is the same once more, with all of its runs.
func (b *bundled) copied() *bundled {
	out := *b
	out.Parts, out.used = slices.Clone(b.Parts), 0
	return &out
}

// steps are those of parts, in words.
func (b *bundled) steps(t *rapid.T, steps []Step) string {
	var out strings.Builder
	for _, s := range steps {
		all := []Step{s}
		if run, is := s.Run(); is {
			var err error
			if all, err = s.Expand(b.parts[run.Key()]); err != nil {
				t.Fatalf("%v is a step: %v", run.Span(), err)
			}
		}
		for _, one := range all {
			for _, p := range one.Pieces {
				fmt.Fprintf(&out, "%v ", p.Key())
			}
			fmt.Fprintf(&out, "%s; ", one.Take)
		}
	}
	return out.String()
}

func (b *bundled) selects(t *rapid.T, w *world, base Base, target Target) string {
	known := map[Key][]Transaction{}
	for {
		got := Select(b.Archive, base, target, known)
		switch {
		case got.Expand != nil:
			b.expand(t, *got.Expand)
		case got.Read != nil:
			key := got.Read.Pieces[len(got.Read.Pieces)-1].Key()
			known[key] = w.read[key]
		case got.Refusal != nil:
			r := got.Refusal
			return fmt.Sprintf("%s %s %v %s", r.Reason, r.GTIDs, r.Parts, r.Nearest)
		default:
			return fmt.Sprintf("%s %s %s", b.steps(t, got.Plan.Steps), got.Plan.Set, got.Plan.Reached)
		}
	}
}

func (b *bundled) loses(t *rapid.T) string {
	for {
		all, run := Lost(b.Archive)
		if run != nil {
			b.expand(t, *run)
			continue
		}
		var out strings.Builder
		for _, l := range all {
			fmt.Fprintf(&out, "%d %s %s %s %s\n", l.Epoch, l.GTIDs, l.First, l.Last, b.steps(t, l.Steps))
		}
		return out.String()
	}
}

// expires is what goes, of the parts those that go by themselves and those whose bundle goes.
func (b *bundled) expires(t *rapid.T, h Holdings, bundles []Span) string {
	for {
		h.Archive = b.Archive
		e := Expire(h)
		for _, run := range e.Expand {
			b.expand(t, run)
		}
		if len(e.Expand) > 0 {
			continue
		}
		gone := keysOf(e.Parts)
		last := map[int64]int64{}
		for _, k := range gone {
			last[k.Epoch] = k.Sequence
		}
		gone = slices.DeleteFunc(gone, func(k Key) bool {
			return slices.ContainsFunc(bundles, func(s Span) bool {
				return s.Epoch == k.Epoch && s.First <= k.Sequence && k.Sequence <= s.Last && s.Last > last[k.Epoch]
			})
		})
		return fmt.Sprint(e.Bases, e.Unfinished, gone, e.Horizon, e.Anchor, e.Held, e.Since, e.Kept)
	}
}

// oddities are what an archive may have besides: parts that are pieces, behind a gap, gone or
// unreadable, or odd in what they tell, and a mark.
func oddities(t *rapid.T, w *world) {
	w.a.Parts = slices.Clone(w.a.Parts)
	for range rapid.IntRange(0, 4).Draw(t, "oddities") {
		if len(w.a.Parts) == 0 {
			return
		}
		i := rapid.IntRange(0, len(w.a.Parts)-1).Draw(t, "odd")
		p := &w.a.Parts[i]
		strange := gtid.MustParse(w.server() + ":998")
		switch rapid.IntRange(0, 9).Draw(t, "how") {
		case 0:
			p.Piece = 1
		case 1:
			p.Before, p.Missing = p.Before.Union(strange), strange
		case 2:
			w.a.Parts = slices.Delete(w.a.Parts, i, i+1)
		case 3:
			w.a.Unreadable = append(w.a.Unreadable, Unreadable{Key: p.Key(), Reason: PartDamaged})
			if rapid.Bool().Draw(t, "gone") {
				w.a.Parts = slices.Delete(w.a.Parts, i, i+1)
			}
		case 4:
			p.First = p.First.Add(-time.Minute)
		case 5:
			p.First = p.Last.Add(time.Minute)
		case 6:
			p.Before = p.Before.Union(strange)
		case 7:
			p.GTIDs = p.GTIDs.Union(p.Before)
		case 8:
			p.Pieces, p.Piece = 2, 2
		default:
			w.a.Mark = &Mark{Epoch: p.Epoch, ServerUUID: fmt.Sprintf("%08d-0000-0000-0000-000000000000", p.Epoch),
				Until: w.at().Add(time.Hour), Executed: p.Before.Union(p.GTIDs)}
		}
	}
}

// targetFor is any target, of what was archived or not.
func targetFor(t *rapid.T, w *world) Target {
	target := Target{Kind: Kind(rapid.IntRange(0, 4).Draw(t, "kind"))}
	target.Time = w.at().Add(-time.Duration(rapid.IntRange(-10, max(0, int(w.now))).Draw(t, "ago")) * time.Second)
	if len(w.a.Parts) > 0 {
		target.GTIDs = w.drawnID()
	}
	return target
}

// TestRunsDecideAsTheirParts: whatever happened, and whatever lies in bundles, the same is replayed,
// refused, lost and removed as if each part were known.
func TestRunsDecideAsTheirParts(t *testing.T) {
	var runs, selects, loses, expires int
	rapid.Check(t, func(t *rapid.T) {
		w := busyRun(t)
		oddities(t, w)
		whole, some := &bundled{Archive: w.a}, bundle(t, w.a)
		check := func(what string, decide func(b *bundled) string) (left int) {
			b := some.copied()
			if want, got := decide(whole), decide(b); got != want {
				t.Fatalf("%s: with runs\n%s\nand with all parts\n%s\nof %v", what, got, want, some.bundles)
			}
			return len(some.parts) - b.used
		}
		base, target := rapid.SampledFrom(w.bases).Draw(t, "backup"), targetFor(t, w)
		base.Time = base.Time.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, "slow")) * time.Second)
		h := drawn(t, w)
		runs += len(some.parts)
		selects += check("Select", func(b *bundled) string { return b.selects(t, w, base, target) })
		loses += check("Lost", func(b *bundled) string { return b.loses(t) })
		expires += check("Expire", func(b *bundled) string { return b.expires(t, h, some.bundles) })
	})
	t.Logf("of %d runs Select took %d as they are, Lost %d and Expire %d", runs, selects, loses, expires)
	if least := runs / 3; min(selects, loses, expires) < least {
		t.Errorf("too many of %d runs are expanded: Select took %d as they are, Lost %d and Expire %d", runs, selects,
			loses, expires)
	}
}

// drawnID is a transaction of a part, or one that nobody archived.
func (w *world) drawnID() gtid.Set {
	p := rapid.SampledFrom(w.a.Parts).Draw(w.t, "part")
	list := append(slices.Clone(w.read[p.Key()]), Transaction{ID: gtid.MustParse(w.server() + ":999")})
	return rapid.SampledFrom(list).Draw(w.t, "id").ID
}

// TestWhatOnlyPartsTellIsAsked for, and what a run tells is not.
func TestWhatOnlyPartsTellIsAsked(t *testing.T) {
	parts := []Part{part(1, 1, "", "a1", 10, 10), part(1, 2, "a1", "a2", 11, 11), part(1, 3, "a1-2", "a3", 12, 12),
		part(1, 4, "a1-3", "a4", 13, 13)}
	all := Archive{Branches: []Branch{branch(1, "", "")}, Parts: RunsOf(parts)}
	some := Archive{Branches: all.Branches, Parts: append(slices.Clone(parts[:1]), RunsOf(parts[1:])...)}
	if len(all.Parts) != 1 || len(some.Parts) != 2 {
		t.Fatalf("%d and %d parts and runs", len(all.Parts), len(some.Parts))
	}
	held := Base{Epoch: 1, End: set("a1-2"), Time: at(1)}
	if got := Select(all, held, Target{Kind: ToTime, Time: at(11)}, nil); got.Expand == nil {
		t.Errorf("which of the parts that a backup holds are later than the target: %+v", got)
	}
	some.Parts[0].Transactions = 1
	if got := Select(some, held, Target{Kind: ToTime, Time: at(5)}, nil); got.Expand == nil {
		t.Errorf("when the last part was written that a backup holds: %+v", got)
	}
	all.Unreadable = []Unreadable{{Key: Key{1, 3}, Reason: PartDamaged}}
	got := Select(all, Base{Epoch: 1}, Target{}, nil)
	if got.Expand != nil || got.Refusal != nil || got.Plan.Parts() != 4 {
		t.Errorf("what cannot be read is not behind the last part: %+v", got)
	}
}
