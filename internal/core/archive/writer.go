package archive

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Format of branches and parts.
const Format = 1

// LookBeyond is how many epochs are tried beside those that a listing tells: it may not know
// yet of what was written last.
const LookBeyond = 8

// lookBehind is how many epochs that a listing does not tell are tried for the branch before one
// that is to be begun. Most are those of promotions that archived nothing. A branch that is taken for
// the first claims all that the server holds.
const lookBehind = 256

// Term is what an instance archives: the binary logs of an epoch in which it takes writes.
// The zero value is nothing.
type Term struct {
	Epoch int64
	// Server is its UUID.
	Server string
	// RPO is targetRPO.
	RPO time.Duration
	// Store tells one configuration of the store from another, and Limit is how many bytes
	// go there in a second: who archives opens the store once, and begins again when they change.
	Store string
	Limit int64
}

// IsNone reports whether nothing is archived.
func (t Term) IsNone() bool { return t.Epoch == 0 }

// TermOf tells what an instance archives that takes writes in an epoch, 0 for none, and
// whose server is known, or nil.
func TermOf(archives bool, writable int64, server *core.Server, rpo time.Duration) Term {
	if !archives || writable == 0 || server == nil {
		return Term{}
	}
	return Term{Epoch: writable, Server: server.UUID, RPO: rpo}
}

// Writer is who writes a branch.
type Writer struct {
	// Cluster is the UID of the cluster.
	Cluster string
	// Epoch of the promotion that Instance, whose server has ServerUUID, holds.
	Epoch                int64
	Instance, ServerUUID string
	// Group is the name of the group in which it is primary, "" in none, and Recoveries are those
	// of the group.
	Group      string
	Recoveries []core.GroupRecovery
}

// Owner is whose something in the archive is.
type Owner int

const (
	// Own is the writer's own.
	Own Owner = iota
	// OfCluster is another cluster's.
	OfCluster
	// OfServer is another server's.
	OfServer
)

// Owner tells whose a branch or a part of the writer's epoch is, by what it says of itself.
// The writer goes on with nothing but its own.
func (w Writer) Owner(cluster, server string) Owner {
	switch {
	case cluster != w.Cluster:
		return OfCluster
	case server != w.ServerUUID:
		return OfServer
	}
	return Own
}

// Branch that the writer begins behind another one, the zero value if there is none. start is
// what its server has executed, held what of that needs no part of the branch.
func (w Writer) Branch(before Branch, start, held gtid.Set, now time.Time) Branch {
	return Branch{
		Format: Format, Cluster: w.Cluster, Epoch: w.Epoch, Instance: w.Instance, ServerUUID: w.ServerUUID,
		Start: start, Held: held, After: before.Epoch, Numbers: cmp.Or(w.Group, OwnNumbers), Recoveries: w.Recoveries,
		CreatedAt: now.UTC(),
	}
}

// Same is what of a set stands for the same transactions now as it did in an epoch: a group that
// was recovered since gives the numbers again of what was lost.
func Same(set gtid.Set, epoch int64, recoveries []core.GroupRecovery) gtid.Set {
	for _, r := range recoveries {
		if r.Epoch > epoch {
			set = set.Intersect(r.Held)
		}
	}
	return set
}

// IsSame tells whether a part that is there already is the one that was to be written: an
// attempt of which no answer came has succeeded.
func (p Part) IsSame(other Part) bool {
	return p.SHA256 == other.SHA256 && p.Cluster == other.Cluster && p.ServerUUID == other.ServerUUID &&
		p.GTIDs.Equal(other.GTIDs)
}

// Superseded tells by which epoch, if by any, one has ended, of those that a listing tells.
func Superseded(listed []int64, epoch int64) (by int64, is bool) {
	if len(listed) == 0 {
		return 0, false
	}
	by = slices.Max(listed)
	return by, by > epoch
}

// endPause is for how long a writer goes on to store parts without asking whether its epoch has ended.
const endPause = 10 * time.Second

// AsksForEnd tells whether a writer is to ask whether its epoch has ended before it stores the next part,
// last asked at a moment or never. A primary that was cut off may not know yet that it was replaced: what
// it commits late is better not stored.
func AsksForEnd(last, now time.Time) bool { return last.IsZero() || now.Sub(last) >= endPause }

// Beyond are the epochs behind one whose branches are looked for to know whether it has ended.
func Beyond(epoch int64) (epochs []int64) {
	for e := epoch + 1; e <= epoch+LookBeyond; e++ {
		epochs = append(epochs, e)
	}
	return epochs
}

// Before finds the newest branch before that of an epoch which is to be begun. listed are
// the epochs that a listing tells; those that it may not know of yet are tried. get reads a
// branch, and says whether there is one.
func Before(listed []int64, epoch int64,
	get func(epoch int64) (Branch, bool, error)) (b Branch, found bool, err error) {
	newest := int64(-1)
	for _, e := range listed {
		newest = max(newest, e)
	}
	for e := epoch - 1; e >= max(newest, 0, epoch-lookBehind); e-- {
		if b, found, err = get(e); found || err != nil {
			return b, found, err
		}
	}
	if newest < 0 {
		return Branch{}, false, nil
	}
	return get(newest)
}

// ErrListedAbsent says that the last part of a branch that is listed, or a branch, is not there.
// Nobody removes those; the store has not got it together.
var ErrListedAbsent = errors.New("the store lists it, and says that it is not there; it is asked again")

// Last finds the last part of a branch, with sequence 0 when there is none. listed are the
// sequences that a listing tells; what follows them is tried. get reads a part's facts, and
// says whether there is one. Numbers must not be given twice: ErrListedAbsent is to be tried again.
func Last(listed []int64, get func(sequence int64) (Part, bool, error)) (last Part, err error) {
	newest := slices.Max(append(listed, 0))
	for next := max(newest, 1); ; next++ {
		part, found, err := get(next)
		if err == nil && !found && next == newest {
			err = fmt.Errorf("part %d: %w", next, ErrListedAbsent)
		}
		if err != nil || !found {
			return last, err
		}
		last = part
	}
}

// Reached is what of a primary's line needs no other part of its branch, of which last is
// the last part: it is in the archive, was there before that was begun, or is a gap.
func Reached(b Branch, last Part) gtid.Set {
	return b.Held.Union(last.Before).Union(last.GTIDs)
}

// Held is what a new branch behind such a one needs no part of. What the former primary
// has executed and not archived, the new one archives, from its own logs.
func (w Writer) Held(before Branch, last Part, start gtid.Set) gtid.Set {
	return Same(Reached(before, last).Intersect(start), before.Epoch, w.Recoveries)
}
