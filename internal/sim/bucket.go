package sim

import (
	"slices"
	"time"

	"cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/sim/judge"
)

// bucket is the object store. It is slow and away at times, its listings lag, and an answer
// may be lost; what it acknowledged it has.
type bucket struct {
	a *archiving
	// byAPI: it is where the API server is, and who cannot reach that cannot reach it.
	byAPI bool
	// lag of listings.
	lag      time.Duration
	objects  map[archive.Key]*object
	branches []*object // by arrival
	parts    []*object
	outages  []burst
}

// object is a branch, of sequence 0, or a part and what is in it, in order.
type object struct {
	key    archive.Key
	branch archive.Branch
	part   archive.Part
	list   []judge.Written
	// first: there was no branch when it was begun.
	first bool
	at    time.Duration
}

// outcome of a request.
type outcome int

const (
	stored outcome = iota
	exists
	failed // it is not known whether it was stored
)

// putTimeout bounds an attempt.
const putTimeout = 10 * time.Second

func newBucket(a *archiving) *bucket {
	b := &bucket{a: a, objects: map[archive.Key]*object{}, byAPI: a.oneIn(2)}
	b.lag = []time.Duration{0, 2 * time.Second, 20 * time.Second, 5 * time.Minute}[a.rnd.IntN(4)]
	for range a.rnd.IntN(4) {
		from := a.between(5*time.Second, 2*time.Minute)
		b.outages = append(b.outages, burst{from, from + a.between(time.Second, 50*time.Second)})
	}
	return b
}

// isAway reports whether the store answers nobody. All is well once the faults have ended.
func (b *bucket) isAway() bool {
	for _, o := range b.outages {
		if o.from <= b.a.w.now && b.a.w.now < o.to && !b.a.w.healing {
			return true
		}
	}
	return false
}

func (b *bucket) isReachable(machine int) bool {
	return !b.byAPI || b.a.w.connected(machine, apiMachine)
}

// create stores an object, if there is none of its key; done is told what came of it, if
// the manager still lives.
func (b *bucket) create(m *manager, o *object, done func(outcome)) {
	a, w := b.a, b.a.w
	took := a.between(20*time.Millisecond, 200*time.Millisecond)
	answers := true
	if !w.healing && a.oneIn(25) {
		took = a.between(time.Second, 2*putTimeout)
		a.w.cover.count("archive", "the store was slow")
	}
	if !w.healing && a.oneIn(25) {
		answers = false
		a.w.cover.count("archive", "the answer of the store was lost")
	}
	if b.isAway() || !b.isReachable(m.machine) {
		if !a.oneIn(4) { // else it was on its way before
			m.at(putTimeout, func() { done(failed) })
			return
		}
		took, answers = a.between(time.Second, 6*putTimeout), false
		a.w.cover.count("archive", "an object came late")
	}
	switch { // what is owed waits behind it
	case !answers:
		a.troubled = max(a.troubled, w.now+putTimeout)
	case took > time.Second:
		a.troubled = max(a.troubled, w.now+min(took, putTimeout))
	}
	over := false
	end := func(what outcome) {
		if !over {
			over = true
			done(what)
		}
	}
	m.at(putTimeout, func() { end(failed) })
	w.at(took, nowhere, func() {
		what := b.put(o)
		if answers {
			m.at(0, func() { end(what) })
		}
	})
}

// put is the moment in which an object is stored.
func (b *bucket) put(o *object) outcome {
	if b.objects[o.key] != nil {
		return exists
	}
	o.at = b.a.w.now
	b.objects[o.key] = o
	if o.key.Sequence == 0 {
		b.branches = append(b.branches, o)
		if o.first {
			b.a.spared = b.a.spared.Union(o.branch.Held)
		}
	} else {
		b.parts = append(b.parts, o)
		b.a.shipped = b.a.shipped.Union(o.part.GTIDs)
	}
	return stored
}

// isListed reports whether a listing shows the object. It may leave out what was stored lately.
func (b *bucket) isListed(o *object) bool {
	return b.a.w.now-o.at >= b.lag || b.a.oneIn(2)
}

func (b *bucket) listBranches() (epochs []int64) {
	for _, o := range b.branches {
		if b.isListed(o) {
			epochs = append(epochs, o.key.Epoch)
		}
	}
	return epochs
}

func (b *bucket) listParts(epoch int64) (sequences []int64) {
	for _, o := range b.parts {
		if o.key.Epoch == epoch && b.isListed(o) {
			sequences = append(sequences, o.key.Sequence)
		}
	}
	return sequences
}

// branch reads one; listed are those that a listing told.
func (b *bucket) branch(listed []int64) func(epoch int64) (archive.Branch, bool, error) {
	return func(epoch int64) (archive.Branch, bool, error) {
		o := b.objects[archive.Key{Epoch: epoch}]
		if o == nil || b.a.w.mut.BelievesListings && !slices.Contains(listed, epoch) {
			return archive.Branch{}, false, nil
		}
		return o.branch, true, nil
	}
}

// last is the last part of a branch, by the product's rule.
func (b *bucket) last(epoch int64) archive.Part {
	listed := b.listParts(epoch)
	last, _ := archive.Last(listed, func(n int64) (archive.Part, bool, error) {
		o := b.objects[archive.Key{Epoch: epoch, Sequence: n}]
		if o == nil || b.a.w.mut.BelievesListings && !slices.Contains(listed, n) {
			return archive.Part{}, false, nil
		}
		return o.part, true, nil
	})
	return last
}
