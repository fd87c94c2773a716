package writer

import (
	"slices"
	"sort"
	"sync"
	"time"
)

// attempt is one insert; its sequence number is its place in its connection's list, counted from
// 1. Times count from the start.
type attempt struct {
	start, end time.Duration
	outcome    Outcome
}

// record is everything that happened. It keeps every attempt (24 bytes, 8 more if acknowledged:
// about 90 MB for an hour of the default pace), so that whatever is asked afterwards is answered
// exactly.
type record struct {
	mu          sync.Mutex
	started     time.Time
	stopped     time.Time // zero while running
	attempts    [][]attempt
	acks        []time.Duration // ascending: taken under mu
	unconnected int
	counts      [Refused + 1]int
	samples     map[string]*ErrorSample
	waiters     []*waiter
	over        bool // no attempt will be added any more
}

type waiter struct {
	after time.Duration
	found chan time.Duration // closed without a value when the writer stops
}

// ErrorSample is one kind of error, and how often and when it was seen.
type ErrorSample struct {
	What        string // an outcome, or "unconnected"
	Text        string
	Count       int
	First, Last time.Time
}

// maxSamples bounds the report, not the counts.
const maxSamples = 20

func newRecord(connections int) *record {
	return &record{started: time.Now(), attempts: make([][]attempt, connections), samples: map[string]*ErrorSample{}}
}

// add takes the time of the end itself, under the lock, so that acknowledgements have one order.
func (r *record) add(connection int, start time.Time, err error) {
	outcome := outcomeOf(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	a := attempt{start.Sub(r.started), now.Sub(r.started), outcome}
	r.attempts[connection] = append(r.attempts[connection], a)
	r.counts[outcome]++
	if outcome == Acknowledged {
		r.acks = append(r.acks, a.end)
		r.tellWaiters(a)
		return
	}
	r.sample(outcome.String(), err, now)
}

func (r *record) addUnconnected(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unconnected++
	r.sample("unconnected", err, time.Now())
}

func (r *record) sample(what string, err error, now time.Time) {
	text := sampleText(err)
	s := r.samples[what+text]
	if s == nil {
		if len(r.samples) == maxSamples {
			return
		}
		s = &ErrorSample{What: what, Text: text, First: now}
		r.samples[what+text] = s
	}
	s.Count++
	s.Last = now
}

func (r *record) tellWaiters(a attempt) {
	r.waiters = slices.DeleteFunc(r.waiters, func(w *waiter) bool {
		if a.start <= w.after {
			return false
		}
		w.found <- a.end
		return true
	})
}

// stop ends the last gap and lets nobody wait any longer. The workers may still finish what they had begun.
func (r *record) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped.IsZero() {
		r.stopped = time.Now()
	}
}

func (r *record) dismissWaiters() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.waiters {
		close(w.found)
	}
	r.waiters, r.over = nil, true
}

func (r *record) isStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.stopped.IsZero()
}

// await gives a channel with the end of the first acknowledged attempt that started after the
// given time, be it past or to come.
func (r *record) await(after time.Time) *waiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &waiter{after: after.Sub(r.started), found: make(chan time.Duration, 1)}
	end, ok := r.firstAckStartedAfter(w.after)
	switch {
	case ok:
		w.found <- end
	case r.over:
		close(w.found)
	default:
		r.waiters = append(r.waiters, w)
	}
	return w
}

func (r *record) forget(w *waiter) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiters = slices.DeleteFunc(r.waiters, func(other *waiter) bool { return other == w })
}

func (r *record) firstAckStartedAfter(after time.Duration) (first time.Duration, found bool) {
	for _, attempts := range r.attempts {
		from := sort.Search(len(attempts), func(i int) bool { return attempts[i].start > after })
		for _, a := range attempts[from:] {
			if a.outcome != Acknowledged {
				continue
			}
			if !found || a.end < first {
				first, found = a.end, true
			}
			break
		}
	}
	return first, found
}
