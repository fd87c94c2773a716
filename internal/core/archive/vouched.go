package archive

import (
	"time"

	"cnmsql.co/internal/gtid"
)

// Vouched is what the newest part of an archive tells of the numbers that its server gives: a server that was set back
// gives them again, and what it has executed does not tell of it once it has caught up.
type Vouched struct {
	// GTIDs are some that the archive is to go on from: the server's logs have to hold the very transactions that
	// were archived, if they hold the numbers.
	GTIDs gtid.Set
	// since and until is when they were committed.
	since, until time.Time
}

// Vouched is what a part tells the writer of its own numbers, where the archive is to go on from claimed; nothing if
// another server wrote the part, or it does not tell when that was. A server that lacks some of the part was set
// back: what it gave again are the last that it has, and it gave them later than all that is archived.
func (w Writer) Vouched(p Part, claimed gtid.Set) Vouched {
	if w.Owner(p.Cluster, p.ServerUUID) != Own || p.First.IsZero() || p.Last.IsZero() {
		return Vouched{}
	}
	own := p.GTIDs.Of(w.ServerUUID)
	if claimed.Contains(own) {
		return Vouched{own, p.First, p.Last}
	}
	return Vouched{GTIDs: claimed.Of(w.ServerUUID).Last(), until: p.Last}
}

// MayBe tells whether a transaction may be the one that was archived under its number. It was committed at a time,
// and at another one at its origin if the server received it: so does one that was set back what it had lost.
func (v Vouched) MayBe(committed, origin time.Time) bool {
	within := func(at time.Time) bool { return !at.Before(v.since) && !at.After(v.until) }
	return within(committed) || within(origin)
}
