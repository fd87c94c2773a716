package core

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// EarlierKept is how many reports before the last are kept, to find pairs that may be held against
// each other.
const EarlierKept = 3

// Heard is what was heard of one instance.
type Heard struct {
	// Report is its manager's last word while it can be reached, Latest however old it is.
	Report, Latest Fact[Report]
	// Executed is what its mysqld was last known to have executed.
	Executed Fact[gtid.Set]
	// earlier are the reports before the last, newest first: an array, for a report comes each
	// second, and is seldom looked at.
	earlier [EarlierKept]Fact[Report]
}

// Take takes a report that was read after readAt, and came now.
func (h *Heard) Take(r Report, readAt, now time.Time) {
	if h.Report.Known() {
		copy(h.earlier[1:], h.earlier[:])
		h.earlier[0] = h.Report
	}
	h.Report = Known(r, readAt, now)
	h.Latest = h.Report
	if r.Server != nil {
		h.Executed = Known(r.Server.Executed, readAt, now)
	}
}

// Lose takes that its manager can be heard no more. What it said last stays; nothing is held against
// what was heard before the gap.
func (h *Heard) Lose() {
	h.Report, h.earlier = Fact[Report]{}, [EarlierKept]Fact[Report]{}
}

// Earlier are the reports before Report, newest first.
func (h *Heard) Earlier() []Fact[Report] {
	known := 0
	for known < EarlierKept && h.earlier[known].Known() {
		known++
	}
	return append([]Fact[Report](nil), h.earlier[:known]...)
}

// Heard is what an observation has of it.
func (in *Instance) Heard() Heard {
	h := Heard{Report: in.Report, Latest: in.Latest, Executed: in.LastExecuted}
	copy(h.earlier[:], in.Earlier)
	return h
}

// Put puts it into an observation.
func (h *Heard) Put(in *Instance) {
	in.Report, in.Earlier, in.Latest, in.LastExecuted = h.Report, h.Earlier(), h.Latest, h.Executed
}
