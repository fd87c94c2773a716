package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/store"
)

// run reads the parts for which a run stands: as their bundle or their indexes tell, or wherever each
// of them lies.
func (b *bundles) run(ctx context.Context, run facts.Part) ([]facts.Part, error) {
	parts, err := b.runIn(ctx, run)
	if parts != nil || err != nil && !isFinal(err) {
		return parts, err
	}
	known, err := b.indexed(ctx, run)
	if err != nil {
		return nil, err
	}
	if parts, err = b.factsOf(ctx, run, known); err != nil || len(known) == 0 || run.IsRunOf(parts) {
		return parts, err
	}
	return b.factsOf(ctx, run, nil) // an index tells something else
}

// indexed is what indexes tell of the parts of a run.
func (b *bundles) indexed(ctx context.Context, run facts.Part) (map[facts.Key]facts.Part, error) {
	s := run.Span()
	b.mu.Lock()
	all := b.listed[run.Epoch].indexes // as runIn has listed it
	b.mu.Unlock()
	atLeast := func(n int64) int {
		i, _ := slices.BinarySearchFunc(all, n, func(k facts.Key, n int64) int { return cmp.Compare(k.Sequence, n) })
		return i
	}
	known := map[facts.Key]facts.Part{}
	var mu sync.Mutex
	err := eachOf(ctx, all[atLeast(s.First):min(atLeast(s.Last)+1, len(all))], readers,
		func(ctx context.Context, last facts.Key) error {
			i, err := getIndex(ctx, b.store, b.prefix, last)
			if err != nil || i == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for _, p := range i.parts() {
				known[p.Key()] = p
			}
			return nil
		})
	return known, err
}

// factsOf reads what the parts of a run tell of themselves, besides those that are known.
func (b *bundles) factsOf(ctx context.Context, run facts.Part, known map[facts.Key]facts.Part) ([]facts.Part, error) {
	s := run.Span()
	parts := make([]facts.Part, s.Count())
	var lack []facts.Key
	for i := range parts {
		key, is := facts.Key{Epoch: s.Epoch, Sequence: s.First + int64(i)}, false
		if parts[i], is = known[key]; !is {
			lack = append(lack, key)
		}
	}
	return parts, eachOf(ctx, lack, readers, func(ctx context.Context, key facts.Key) (err error) {
		parts[key.Sequence-s.First], err = b.facts(ctx, key)
		return err
	})
}

// runIn reads them from the bundle; nil if it is not there any more.
func (b *bundles) runIn(ctx context.Context, run facts.Part) ([]facts.Part, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.list(ctx, run.Epoch, false); err != nil {
		return nil, err
	}
	s := run.Span()
	for _, one := range b.listed[run.Epoch].bundles {
		if one.First > s.First || one.Last < s.Last {
			continue
		}
		o, err := b.opened(ctx, one)
		switch {
		case err == nil:
			i := index{Parts: o.parts[s.First-one.First:][:s.Count()]}
			return i.parts(), nil
		case !errors.Is(err, store.NotFound):
			return nil, err
		}
	}
	return nil, nil
}

// facts reads what a part tells of itself.
func (b *bundles) facts(ctx context.Context, key facts.Key) (facts.Part, error) {
	body, err := b.get(ctx, key)
	if err != nil {
		return facts.Part{}, err
	}
	defer func() { _ = body.Close() }() // the rest is not wanted
	return readFacts(body, key)
}

// expand puts the parts of a run in its place.
func (p Place) expand(ctx context.Context, a *facts.Archive, run facts.Part) error {
	parts, err := p.bundles.run(ctx, run)
	if err == nil {
		err = a.Expand(run, parts)
	}
	return ofRun(run, err)
}

func ofRun(run facts.Part, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading what the parts %d to %d of epoch %d tell: %w", run.Sequence, run.Through, run.Epoch, err)
}

// steps are those of a plan, part by part. What a run stands for is read when it is come to. Behind
// an error nothing comes.
func (p Place) steps(ctx context.Context, all []facts.Step) iter.Seq2[facts.Step, error] {
	return func(yield func(facts.Step, error) bool) {
		for _, step := range all {
			these, err := []facts.Step{step}, error(nil)
			if run, is := step.Run(); is {
				var parts []facts.Part
				if parts, err = p.bundles.run(ctx, run); err == nil {
					these, err = step.Expand(parts)
				}
				err = ofRun(run, err)
			}
			if err != nil {
				yield(facts.Step{}, err)
				return
			}
			for _, one := range these {
				if !yield(one, nil) {
					return
				}
			}
		}
	}
}

// Expire decides what may be removed, see facts.Expire, and reads what it has to know for that of
// the parts that lie in bundles.
func (p Place) Expire(ctx context.Context, h *facts.Holdings) (facts.Expiry, error) {
	for {
		e := facts.Expire(*h)
		if len(e.Expand) == 0 {
			return e, nil
		}
		for _, run := range e.Expand {
			if err := p.expand(ctx, &h.Archive, run); err != nil {
				return facts.Expiry{}, err
			}
		}
	}
}

// Lost lists what failovers lost, see facts.Lost, and reads what it has to know for that of the
// parts for which runs stand.
func (p Place) Lost(ctx context.Context, a *facts.Archive) ([]facts.LostBranch, error) {
	for {
		all, run := facts.Lost(*a)
		if run == nil {
			return all, nil
		}
		if err := p.expand(ctx, a, *run); err != nil {
			return nil, err
		}
	}
}
