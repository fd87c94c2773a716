package archive

import "cnmsql.co/internal/gtid"

// Reader is how far a server's binary logs were read.
type Reader struct {
	// Seen is what needs not be read any more: what the archive had, what was read and
	// passed, and what was purged before.
	Seen gtid.Set
	// Missing is what was purged before it was read, until a part has taken note of it.
	Missing gtid.Set
}

// Begins tells whether all was seen that stands before a log, which begins with previous:
// the newest such log is where to go on. When there is none, what lacks was purged, and the
// oldest log is.
func (r *Reader) Begins(previous gtid.Set) bool { return r.Seen.Contains(previous) }

// Enter a log. What stood before it and was not seen is a gap.
func (r *Reader) Enter(previous gtid.Set) {
	r.Missing = r.Missing.Union(previous.Subtract(r.Seen))
	r.Seen = r.Seen.Union(previous)
}

// Wants tells whether a transaction has to be shipped.
func (r *Reader) Wants(id gtid.Set) bool { return !r.Seen.Contains(id) }

// Pass a transaction that was read.
func (r *Reader) Pass(id gtid.Set) { r.Seen = r.Seen.Union(id) }

// SetBack is what a server lacks of what was seen, by what it said later that it has executed. All
// that is seen of a server's logs was executed by it once, so a sound one lacks nothing. One that
// does was set back within its epoch, as by a snapshot of its volume or RESET BINARY LOGS AND GTIDS:
// it gives the numbers of what it lacks again, and those new transactions would pass for seen.
func (r *Reader) SetBack(executed gtid.Set) gtid.Set { return r.Seen.Subtract(executed) }

// MayShip tells whether a transaction may leave the server: it is executed. What is only
// written may never be: under quorum it waits for its acknowledgements.
func MayShip(id, executed gtid.Set) bool { return executed.Contains(id) }
