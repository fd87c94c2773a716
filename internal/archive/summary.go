package archive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

const (
	summarySuffix = ".summary.zst"
	// summaryFormat changes with what a run is, as RunsOf makes it, too.
	summaryFormat = 1
	// summaryRuns are the most runs of a bundle that a summary tells. One that has more is read.
	summaryRuns = 16
)

// summaryBundles is how many bundles a summary tells of. Tests have less.
var summaryBundles = 64

// summary repeats the runs of many bundles, so that one object is read instead of what each of them
// tells of a thousand parts. Nothing is lost with it: a bundle of which it tells nothing, or that has
// another size than it says, or is younger, is read.
type summary struct {
	Format  int          `json:"format"`
	Epoch   int64        `json:"epoch"`
	Bundles []summarized `json:"bundles"`
}

// summarized is one bundle.
type summarized struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Stored is how many bytes its object has.
	Stored int64 `json:"stored"`
	// Runs are absent where the bundle has to be read.
	Runs []writtenRun `json:"runs,omitempty"`
}

// writtenRun is a run, or a part that is in none.
type writtenRun struct {
	facts.Part
	Through int64 `json:"through,omitempty"`
}

func summaryKey(prefix string, s facts.Span) string { return spanKey(prefix, s, summarySuffix) }

// readSummaryKey tells where the bundles lie of which a summary tells; false for any other object.
func readSummaryKey(prefix, key string) (facts.Span, bool) {
	return readSpanKey(prefix, key, summarySuffix)
}

// getSummary reads one; nil if there is none that says anything.
func getSummary(ctx context.Context, s store.Store, prefix string, of facts.Span) (*summary, error) {
	body, err := s.Get(ctx, summaryKey(prefix, of))
	if errors.Is(err, store.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out summary
	is, err := decodeText(body, &out)
	if err = errors.Join(err, body.Close()); err != nil || !is || !out.isOf(of) {
		return nil, err
	}
	return &out, nil
}

// isOf reports whether a summary tells of bundles of this span, in order, and of each all parts or
// nothing.
func (s *summary) isOf(of facts.Span) bool {
	n := len(s.Bundles)
	if s.Format != summaryFormat || s.Epoch != of.Epoch || n == 0 || s.Bundles[0].First != of.First ||
		s.Bundles[n-1].Last != of.Last {
		return false
	}
	end := int64(0)
	for _, b := range s.Bundles {
		if b.First <= end || b.Last < b.First || !b.isWhole(s.Epoch) {
			return false
		}
		end = b.Last
	}
	return true
}

// isWhole reports whether its runs are all of its parts, or there is none. It completes the parts
// of the runs on the way.
func (s *summarized) isWhole(epoch int64) bool {
	next := s.First
	for i := range s.Runs {
		r := &s.Runs[i]
		r.Part.Through = r.Through
		share(&r.Part)
		is := r.Span()
		isPart := r.Through == 0 || r.Through > is.First
		if is.Epoch != epoch || is.First != next || !isPart || checkFormat(r.Part) != nil {
			return false
		}
		next = is.Last + 1
	}
	return len(s.Runs) == 0 || next == s.Last+1
}

// told is what summaries tell of bundles.
type told map[facts.Span]toldBundle

type toldBundle struct {
	stored int64
	// at is when the store took the summary, by its clock.
	at   time.Time
	runs []facts.Part
}

// read reads the summaries of a piece of a listing. They are listed before most of what they tell of.
func (t told) read(ctx context.Context, s store.Store, prefix string, piece *listing) error {
	var mu sync.Mutex
	return eachOf(ctx, piece.summaries, readers, func(ctx context.Context, l listedSummary) error {
		got, err := getSummary(ctx, s, prefix, l.Span)
		if err != nil || got == nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, b := range got.Bundles {
			of := facts.Span{Epoch: got.Epoch, First: b.First, Last: b.Last}
			if before, is := t[of]; is && before.at.After(l.written) {
				continue
			}
			now := toldBundle{stored: b.Stored, at: l.written}
			for _, r := range b.Runs {
				now.runs = append(now.runs, r.Part)
			}
			t[of] = now
		}
		return nil
	})
}

// knows reports whether a summary tells of a bundle as it is listed. One that was written behind the
// summary is another one.
func (t told) knows(b facts.Bundle) bool {
	is, known := t[b.Span()]
	return known && !b.Written.IsZero() && !b.Written.After(is.at) && b.Stored == is.stored
}

// runs of a bundle; nil if it has to be read.
func (t told) runs(b facts.Bundle) []facts.Part {
	if !t.knows(b) {
		return nil
	}
	return t[b.Span()].runs
}

// pass forgets what was told of bundles that are listed no more behind a piece.
func (t told) pass(piece *listing) {
	maps.DeleteFunc(t, func(s facts.Span, _ toldBundle) bool {
		return piece.last || s.Epoch != piece.epoch || s.Last <= piece.reach
	})
}

// summarize writes the summaries that the bundles of a piece complete. What is there already, and says
// something else, is damaged, or of before: it is replaced.
func (m *merger) summarize(ctx context.Context, deciding *facts.Summarizing, isOver bool) error {
	if err := m.told.read(ctx, m.store, m.prefix, m.all); err != nil {
		return fmt.Errorf("reading a summary of epoch %d: %w", m.all.epoch, err)
	}
	plan := deciding.Add(m.all.bundles, m.told.knows, m.all.hasBeside)
	if m.all.last {
		plan = append(plan, deciding.End(isOver)...)
	}
	m.told.pass(m.all)
	for _, bundles := range plan {
		of := facts.Span{Epoch: m.all.epoch, First: bundles[0].First, Last: bundles[len(bundles)-1].Last}
		if err := m.writeSummary(ctx, of, bundles); err != nil {
			return fmt.Errorf("writing the summary of the parts %d to %d of epoch %d: %w", of.First, of.Last, of.Epoch,
				err)
		}
		m.done.Summaries++
	}
	return nil
}

func (m *merger) writeSummary(ctx context.Context, of facts.Span, bundles []facts.Bundle) error {
	out := summary{Format: summaryFormat, Epoch: of.Epoch, Bundles: make([]summarized, len(bundles))}
	all := make([]int, len(bundles))
	for i, b := range bundles {
		all[i], out.Bundles[i] = i, summarized{First: b.First, Last: b.Last, Stored: b.Stored}
	}
	err := eachOf(ctx, all, headReaders, func(ctx context.Context, i int) error {
		head, err := getBundleHead(ctx, m.store, m.prefix, bundles[i])
		if errors.Is(err, store.NotFound) || isFinal(err) {
			return nil // whoever needs it finds that out
		}
		if err != nil {
			return err
		}
		runs := facts.RunsOf(head.parts())
		if len(runs) > summaryRuns {
			return nil
		}
		for _, r := range runs {
			out.Bundles[i].Runs = append(out.Bundles[i].Runs, writtenRun{r, r.Through})
		}
		return nil
	})
	if err != nil {
		return err
	}
	object, err := m.compress.text(out)
	if err != nil {
		return err
	}
	return m.store.Put(ctx, summaryKey(m.prefix, of), object)
}
