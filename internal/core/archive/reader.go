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

// MayShip tells whether a transaction may leave the server: it is executed. What is only
// written may never be: under quorum it waits for its acknowledgements.
func MayShip(id, executed gtid.Set) bool { return executed.Contains(id) }
