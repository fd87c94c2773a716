package archive

import (
	"cmp"
	"slices"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/gtid"
)

// Branch is what one promotion began: the line of transactions of one epoch.
type Branch struct {
	Format int `json:"format"`
	// Cluster is the UID of the cluster that writes the archive.
	Cluster string `json:"cluster"`
	Epoch   int64  `json:"epoch"`
	// Instance and ServerUUID are of the primary of the epoch.
	Instance   string `json:"instance"`
	ServerUUID string `json:"serverUUID"`
	// Start is what the primary had executed when it was promoted, or a while later in its
	// epoch. What earlier branches hold beyond it is lost.
	Start gtid.Set `json:"start"`
	// Held is what of Start needs no part of this branch: the archive held it already, or
	// it was there before the archive was begun.
	Held gtid.Set `json:"held"`
	// After is the epoch of the branch behind which this one goes on, and of which Held is
	// told; 0 for that before it in order, if there is one. One in between came to be known
	// later: it is on no line.
	After int64 `json:"after,omitempty"`
	// Numbers is whose numbers the primary gives its transactions: OwnNumbers, or the name of
	// the group, which any primary gives again after they were lost. Empty in branches of
	// before 2026-11-24.
	Numbers string `json:"numbers,omitempty"`
	// Recoveries of the group. What earlier branches hold beyond them is lost, too, although the
	// primary may have the same numbers: it has given them to other transactions.
	Recoveries []core.GroupRecovery `json:"recoveries,omitempty"`
	CreatedAt  time.Time            `json:"createdAt"`
}

// OwnNumbers are those of the server that writes, which nobody else gives.
const OwnNumbers = "own"

// Key names a part: its branch, and its number therein, from 1.
type Key struct{ Epoch, Sequence int64 }

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Epoch, other.Epoch), cmp.Compare(k.Sequence, other.Sequence))
}

// Part is what is known of one part of a branch: some transactions that follow one another
// in the primary's binary log. Times are by the clock of the primary, in microseconds.
type Part struct {
	Format     int    `json:"format"`
	Cluster    string `json:"cluster"`
	Epoch      int64  `json:"epoch"`
	Sequence   int64  `json:"sequence"`
	ServerUUID string `json:"serverUUID"`
	// File is the binary log they stand in, From and To the offsets in it of the first
	// byte and behind the last one.
	File string `json:"file"`
	From int64  `json:"from"`
	To   int64  `json:"to"`
	// Before is what the primary's binary logs held before the first of the transactions,
	// whether the archive has it or not; GTIDs are the transactions.
	Before gtid.Set `json:"before"`
	GTIDs  gtid.Set `json:"gtids"`
	// Missing is what of Before was purged before it was archived: a gap.
	Missing gtid.Set `json:"missing,omitzero"`
	// First and Last are the earliest and the latest commit; the order in the log is
	// another one when the clock went back.
	First        time.Time `json:"first"`
	Last         time.Time `json:"last"`
	Transactions int64     `json:"transactions"`
	// Piece is set, from 1, when the transaction is too large for one part. All but the last
	// piece hold no transaction; the last one has Pieces, and they are consecutive.
	Piece  int64 `json:"piece,omitempty"`
	Pieces int64 `json:"pieces,omitempty"`
	// Size, in bytes, and SHA256, in hexadecimal digits, are those of the part decompressed.
	// Of a part that is encrypted SHA256 is of what stands behind the facts: one of the log
	// would let guesses of what is in it be confirmed.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Recipient of age to which the log is encrypted; "" if it is not.
	Recipient string `json:"recipient,omitempty"`
	// Through is the number of the last part of a run, see RunsOf; 0 of a part.
	Through int64 `json:"-"`
}

// Key of the part, or of the first one of a run.
func (p Part) Key() Key { return Key{p.Epoch, p.Sequence} }

// Transaction is one of a part.
type Transaction struct {
	ID        gtid.Set
	Committed time.Time
}

// Archive is all that was found, in any order; what was found twice counts once.
type Archive struct {
	Branches []Branch
	// Parts, and runs of them.
	Parts []Part
	// Unreadable is what is there, or is listed at least, and nobody knows what it holds.
	Unreadable []Unreadable
	// Mark of the newest branch; nil if there is none.
	Mark *Mark
}

// Spoil tells of a part that it is damaged: it is there, and cannot be read.
func (a *Archive) Spoil(key Key, message string) {
	a.Parts = slices.DeleteFunc(a.Parts, func(p Part) bool { return p.Key() == key && !p.IsRun() })
	a.Unreadable = append(a.Unreadable, Unreadable{Key: key, Reason: PartDamaged, Message: message})
}

// Unreadable is an object that is damaged, of a format that this release does not know, or listed and not
// found.
type Unreadable struct {
	// Key of the part; its sequence is 0 if it is a branch.
	Key Key
	// Reason names what is wrong with it, and Message says it.
	Reason  core.Reason
	Message string
}

// Base is a base backup.
type Base struct {
	// Epoch in which it was begun.
	Epoch int64
	// End is what it holds. Of a backup that was not restored yet it is known to be between
	// two sets; a plan for the larger one may leave out what the backup lacks, so that it
	// says only what is refused.
	End gtid.Set
	// Time at which it ended, by the clock of its Job: another one than by which commits are
	// dated, and maybe behind it.
	Time time.Time
}

// Target is where to replay to.
type Target struct {
	Kind Kind
	// Time of ToTime: what was committed then, or before, is replayed.
	Time time.Time
	// GTIDs of ToGTIDs and BeforeGTIDs.
	GTIDs gtid.Set
}

// Kind of a target.
type Kind int

const (
	// Latest is all that was archived and not lost.
	Latest Kind = iota
	// Immediate is the base backup alone.
	Immediate
	// ToTime ends before the first transaction that was committed later than Time.
	ToTime
	// ToGTIDs ends when all of GTIDs are replayed.
	ToGTIDs
	// BeforeGTIDs ends before the first of GTIDs.
	BeforeGTIDs
)
