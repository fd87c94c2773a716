package judge

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// Written is a transaction as it stands in a part.
type Written struct {
	archive.Transaction
	// After is what stood before it in its server's binary log.
	After gtid.Set
	// Number is that of a transaction of a group, and What tells apart those that were given the same; 0
	// where no number is given twice.
	Number, What int
	epoch        int64 // in which it was written, as far as it was replayed
}

// Store is what is archived, and what is in it.
type Store struct {
	archive.Archive
	// Content of a part, in order.
	Content func(archive.Key) []Written
	whole   map[archive.Key]archive.Part // of runs
}

// Select asks the product as often as it wants to know what is in a part or in a run.
func (s *Store) Select(base archive.Base, target archive.Target) archive.Selection {
	read := map[archive.Key][]archive.Transaction{}
	for {
		got := archive.Select(s.Archive, base, target, read)
		switch {
		case got.Read != nil:
			key := got.Read.Pieces[len(got.Read.Pieces)-1].Key()
			read[key] = []archive.Transaction{}
			for _, w := range s.Content(key) {
				read[key] = append(read[key], w.Transaction)
			}
		case got.Expand != nil:
			s.expand(*got.Expand)
		default:
			return got
		}
	}
}

// Merged is the same archive, of which stretches of parts are in bundles.
func (s *Store) Merged(rng *rand.Rand) *Store {
	out := &Store{Archive: s.Archive, Content: s.Content, whole: map[archive.Key]archive.Part{}}
	parts := s.ordered()
	out.Parts = nil
	for len(parts) > 0 {
		n := 1
		for limit := 1 + rng.IntN(6); n < min(limit, len(parts)) && parts[n].Epoch == parts[0].Epoch &&
			parts[n].Sequence == parts[n-1].Sequence+1; {
			n++
		}
		out.Parts = append(out.Parts, archive.RunsOf(parts[:n])...)
		for _, p := range parts[:n] {
			out.whole[p.Key()] = p
		}
		parts = parts[n:]
	}
	return out
}

// ordered are all parts, by epoch and sequence.
func (s *Store) ordered() []archive.Part {
	return slices.SortedFunc(slices.Values(s.Parts), func(a, b archive.Part) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence))
	})
}

func (s *Store) expand(run archive.Part) {
	var parts []archive.Part
	for span, n := run.Span(), run.Sequence; n <= span.Last; n++ {
		parts = append(parts, s.whole[archive.Key{Epoch: run.Epoch, Sequence: n}])
	}
	if err := s.Expand(run, parts); err != nil {
		panic(fmt.Sprintf("%d of epoch %d cannot be expanded: %s", run.Sequence, run.Epoch, err))
	}
}

// Replayed is what a plan replays, in order.
func (s *Store) Replayed(plan archive.Plan) (all []Written) {
	for _, step := range plan.Steps {
		for n, span := step.Pieces[0].Sequence, step.Pieces[len(step.Pieces)-1].Span(); n <= span.Last; n++ {
			for _, w := range s.Content(archive.Key{Epoch: span.Epoch, Sequence: n}) {
				if w.epoch = span.Epoch; step.Take.Contains(w.ID) {
					all = append(all, w)
				}
			}
		}
	}
	return all
}
