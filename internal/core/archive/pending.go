package archive

import (
	"time"

	"cnmsql.co/internal/gtid"
)

const minPoll, maxPoll = 50 * time.Millisecond, time.Second

// Pace is when parts are shipped.
type Pace struct {
	// RPO is how old the oldest transaction may become that is not archived.
	RPO time.Duration
	// MaxBytes of a part before compression.
	MaxBytes int64
}

// Poll is between two looks at a log that has no more.
func (p Pace) Poll() time.Duration { return min(max(p.RPO/10, minPoll), maxPoll) }

// IsDue tells whether a part is full, or its oldest transaction will be as old as it may be
// when it is stored, if that takes twice as long as it took the last time.
func (p Pace) IsDue(part *Pending, took time.Duration, now time.Time) bool {
	if part.full || p.IsFull(part) {
		return true
	}
	margin := min(2*took+2*p.Poll(), p.RPO/2)
	return part.Age(now) >= p.RPO-margin
}

// IsFull tells whether nothing more goes into a part.
func (p Pace) IsFull(part *Pending) bool { return part.Size >= p.MaxBytes }

// Takes tells whether so many bytes more go into a part. Otherwise it is full.
func (p Pace) Takes(part *Pending, size int64) bool {
	part.full = part.full || part.Size > 0 && part.Size+size > p.MaxBytes
	return !part.full
}

// Pending is a part that is being put together, of one log.
type Pending struct {
	Part Part
	// Size of its transactions, in bytes.
	Size int64
	full bool
	// oldest is when the first of it was committed, and since when it was found: when the
	// clock goes back, the one does not tell how long it waits, and the other does.
	oldest, since time.Time
}

// Pend begins a part with a transaction that was committed at a time; it takes note of what
// the reader found missing.
func (w Writer) Pend(sequence int64, r *Reader, committed, now time.Time) *Pending {
	part := Part{
		Format: Format, Cluster: w.Cluster, Epoch: w.Epoch, Sequence: sequence, ServerUUID: w.ServerUUID,
		Before: r.Seen, Missing: r.Missing, First: committed, Last: committed,
	}
	r.Missing = gtid.Set{}
	return &Pending{Part: part, oldest: committed, since: now}
}

// Add a transaction.
func (p *Pending) Add(id gtid.Set, committed time.Time, size int64) {
	p.Size += size
	p.Part.GTIDs = p.Part.GTIDs.Union(id)
	p.Part.Transactions++
	if committed.Before(p.Part.First) {
		p.Part.First = committed
	}
	if committed.After(p.Part.Last) {
		p.Part.Last = committed
	}
}

// Age is for how long it waits.
func (p *Pending) Age(now time.Time) time.Duration {
	return max(now.Sub(p.oldest), now.Sub(p.since))
}
