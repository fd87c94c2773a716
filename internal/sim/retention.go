package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/sim/judge"
)

// retention is what the Jobs of backups do once their backup is stored: they remove what has
// expired, by the product's rule, of what listings tell that lag, by clocks that are wrong, one
// thing after the other, while the cluster goes on; some die half-way. Its dice are its own.
type retention struct {
	a   *archiving
	rng *rand.Rand
	// window is how far back each moment has to be restorable.
	window time.Duration
	taken  int
	// bases are the backups that are there, and had those that ever were; removed are parts.
	bases, had []archive.Stored
	removed    map[archive.Key]*object
	gone       map[archive.Key]time.Duration // when
}

// pruning is what one Job removes.
type pruning struct {
	*retention
	id    string
	bases []string
	parts []archive.Key
	epoch int64 // of the cluster, when the Job looked
}

func newRetention(a *archiving, seed uint64) retention {
	rng := rand.New(rand.NewPCG(seed, 31))
	return retention{a: a, rng: rng, window: []time.Duration{20 * time.Second, 45 * time.Second,
		90 * time.Second}[rng.IntN(3)], removed: map[archive.Key]*object{}, gone: map[archive.Key]time.Duration{}}
}

func baseOf(b archive.Stored) archive.Base {
	return archive.Base{Epoch: b.Epoch, End: b.End, Time: b.Ended}
}

func (r *retention) between(from, to time.Duration) time.Duration {
	return from + time.Duration(r.rng.Int64N(int64(to-from)))
}

// now is what the store's clock tells, which is right.
func (r *retention) now() time.Time { return kept((&clock{}).now(r.a.w.now)) }

// copied has a backup stored whose data are those of this moment. That happens a while later, by a
// Job on some machine, whose clock may be wrong by more than that of the donor's machine; the Job
// then removes what has expired.
func (r *retention) copied(b archive.Stored, machine int) {
	off := time.Duration(0)
	if r.rng.IntN(4) == 0 {
		off = []time.Duration{-time.Hour, -r.window, -5 * time.Second, 5 * time.Second, r.window,
			time.Hour}[r.rng.IntN(6)]
		r.a.w.cover.count("archive", "the clock of a backup's Job was wrong")
	}
	local := func() time.Time { return kept(r.a.w.clockOf(machine)).Add(off) }
	r.taken++
	b.ID, b.Point = fmt.Sprintf("backup-%03d", r.taken), local()
	r.a.w.at(r.between(10*time.Millisecond, 5*time.Second), nowhere, func() {
		b.Ended, b.Written = local(), r.now()
		r.bases, r.had = append(r.bases, b), append(r.had, b)
		r.a.w.at(r.between(10*time.Millisecond, 2*time.Second), nowhere, func() { r.prune(b.ID, local()) })
	})
}

// isListed reports whether a listing goes by what was stored or removed at this time. It may leave
// out what was stored lately, and tell of what was removed lately; not for as long as a part of the
// window.
func (r *retention) isListed(since time.Duration) bool {
	return r.a.w.now-since >= min(r.a.bucket.lag, r.window/4) || r.rng.IntN(2) == 0
}

// prune looks what there is, and decides what may go.
func (r *retention) prune(id string, local time.Time) {
	a := r.a
	if a.bucket.isAway() {
		return
	}
	h := archive.Holdings{Window: r.window, Minimum: 1 + r.rng.IntN(2), Local: local}
	for _, b := range r.bases {
		if stored := b.Written.Sub(r.now()); !r.isListed(a.w.now + stored) {
			continue
		}
		if h.Bases = append(h.Bases, b); b.ID == id {
			h.Store = b.Written
		}
	}
	r.rng.Shuffle(len(h.Bases), func(i, j int) { h.Bases[i], h.Bases[j] = h.Bases[j], h.Bases[i] })
	e := r.listed().Expiry(r.rng, h, func(h archive.Holdings) archive.Expiry {
		if a.w.mut.Holdings != nil {
			a.w.mut.Holdings(&h)
		}
		e := archive.Expire(h)
		if a.w.mut.Expired != nil && len(e.Expand) == 0 {
			a.w.mut.Expired(&h, &e)
		}
		return e
	})
	p := &pruning{retention: r, id: id, bases: e.Bases, epoch: a.w.truth.highest}
	for _, span := range e.Parts {
		for n := span.First; n <= span.Last; n++ {
			p.parts = append(p.parts, archive.Key{Epoch: span.Epoch, Sequence: n})
		}
	}
	if why := e.Held; why != "" {
		a.w.cover.count("archive", "retention removes nothing: "+string(why))
	}
	wait := r.between(10*time.Millisecond, time.Second)
	if r.rng.IntN(4) == 0 { // its machine stands still
		wait = r.between(time.Second, time.Minute)
	}
	a.w.at(wait, nowhere, p.step)
}

// listed is the archive by a listing.
func (r *retention) listed() *judge.Store {
	b := r.a.bucket
	out := &judge.Store{Content: r.content}
	for _, o := range b.branches {
		if r.isListed(o.at) {
			out.Branches = append(out.Branches, o.branch)
		}
	}
	for _, o := range b.parts {
		if r.isListed(o.at) {
			out.Parts = append(out.Parts, o.part)
		}
	}
	for key, o := range r.inOrder() {
		if b.objects[key] == nil && !r.isListed(r.gone[key]) {
			out.Parts = append(out.Parts, o.part)
		}
	}
	return out
}

func (r *retention) content(key archive.Key) []judge.Written {
	if o := r.a.bucket.objects[key]; o != nil {
		return o.list
	}
	return r.removed[key].list
}

// step removes the next few things, the backups first.
func (p *pruning) step() {
	w, all := p.a.w, len(p.bases)+len(p.parts)
	if all == 0 {
		return
	}
	if w.truth.highest != p.epoch {
		w.cover.count("archive", "a failover between a listing and a removal")
	}
	if p.a.bucket.isAway() || p.rng.IntN(12) == 0 {
		w.cover.count("archive", "retention ended half-way")
		w.tell("the Job of %s dies, and leaves %d things that may go", p.id, all)
		return
	}
	for n := 1 + p.rng.IntN(8); n > 0 && len(p.bases)+len(p.parts) > 0; n-- {
		if len(p.bases) > 0 {
			id := p.bases[0]
			p.bases = p.bases[1:]
			p.retention.bases = slices.DeleteFunc(p.retention.bases, func(b archive.Stored) bool { return b.ID == id })
			w.tell("the Job of %s removes %s", p.id, id)
			w.cover.count("archive", "a backup expired")
			continue
		}
		p.remove(p.parts[0])
		p.parts = p.parts[1:]
	}
	if why := p.lacks(); why != "" {
		w.fail("archive", "%s", why)
		return
	}
	w.at(p.between(50*time.Millisecond, 2*time.Second), nowhere, p.step)
}

func (p *pruning) remove(key archive.Key) {
	b := p.a.bucket
	o := b.objects[key]
	if o == nil {
		return
	}
	p.removed[key], p.gone[key] = o, p.a.w.now
	delete(b.objects, key)
	b.parts = slices.DeleteFunc(b.parts, func(other *object) bool { return other == o })
	p.a.w.tell("the Job of %s removes part %d of epoch %d: %s", p.id, key.Sequence, key.Epoch, o.part.GTIDs)
	p.a.w.cover.count("archive", "a part expired")
}

// lacks says what retention has removed too much, "" if nothing: whatever it has removed, each
// moment of the window and each transaction in it is restored as if nothing ever had been.
func (r *retention) lacks() string {
	if r.a.w.truth.lied || len(r.had) == len(r.bases) && len(r.removed) == 0 {
		return ""
	}
	is, was := &judge.Store{Content: r.content}, &judge.Store{Content: r.content}
	for _, o := range r.a.bucket.branches {
		is.Branches = append(is.Branches, o.branch)
	}
	for _, o := range r.a.bucket.parts {
		is.Parts = append(is.Parts, o.part)
	}
	was.Branches, was.Parts = is.Branches, slices.Clone(is.Parts)
	for key, o := range r.inOrder() {
		if r.a.bucket.objects[key] == nil {
			was.Parts = append(was.Parts, o.part)
		}
	}
	why := is.Lacks(r.rng, r.bases, was, r.had, r.now().Add(-r.window), r.now())
	if why != "" {
		why = "retention has removed too much: " + why
	}
	return why
}

// inOrder is what was removed, in an order that does not change.
func (r *retention) inOrder() func(func(archive.Key, *object) bool) {
	return func(yield func(archive.Key, *object) bool) {
		keys := make([]archive.Key, 0, len(r.removed))
		for key := range r.removed {
			keys = append(keys, key)
		}
		slices.SortFunc(keys, func(a, b archive.Key) int {
			if a.Epoch != b.Epoch {
				return int(a.Epoch - b.Epoch)
			}
			return int(a.Sequence - b.Sequence)
		})
		for _, key := range keys {
			if !yield(key, r.removed[key]) {
				return
			}
		}
	}
}
