package core

import "fmt"

// DurabilityMode decides how many replicas acknowledge a commit, and what
// happens when they are missing.
type DurabilityMode string

// Durability modes; see the table in docs/durability.md.
const (
	DurabilityAsync     DurabilityMode = "async"
	DurabilityPreferred DurabilityMode = "preferred"
	DurabilityRequired  DurabilityMode = "required"
	DurabilityQuorum    DurabilityMode = "quorum"
)

// promise is what a mode promises of a commit: a row of the table in docs/durability.md.
type promise struct {
	// awaits tells whether a commit waits for acknowledgements of replicas.
	awaits bool
	// lowers tells whether it waits for fewer while replicas are missing.
	lowers bool
	// forEver tells whether it waits until they come, and is acknowledged to no client before.
	// Under the other modes it waits for spec.mysql.semiSync.timeoutMillis.
	forEver bool
}

// promises of the modes. All that follows from a mode is asked of the methods below, and
// tools/lint lets no other code compare modes: another mode is another row.
var promises = map[DurabilityMode]promise{
	DurabilityAsync:     {},
	DurabilityPreferred: {awaits: true, lowers: true},
	DurabilityRequired:  {awaits: true},
	DurabilityQuorum:    {awaits: true, forEver: true},
}

// Awaits reports whether a commit waits for acknowledgements of replicas.
func (m DurabilityMode) Awaits() bool { return promises[m].awaits }

// LowersAcks reports whether a commit waits for fewer acknowledgements while replicas are
// missing.
func (m DurabilityMode) LowersAcks() bool { return promises[m].lowers }

// WaitsForEver reports whether a commit waits for its acknowledgements until they come.
func (m DurabilityMode) WaitsForEver() bool { return promises[m].forEver }

// IsOnReplicas reports whether each acknowledged write is on as many replicas as a commit
// waits for, and never on the primary alone. Elections count on that, so replicas must not
// lose what they have acknowledged. It is so when a commit waits for ever.
func (m DurabilityMode) IsOnReplicas() bool { return m.WaitsForEver() }

// KeepsRelayLogs reports whether a replica keeps its relay logs when its mysqld ends. It is so
// where a commit waits for acknowledgements: what was acknowledged may be in them alone, once
// the primary is gone. Otherwise they are received again.
func (m DurabilityMode) KeepsRelayLogs() bool { return m.Awaits() }

// Durability is the wish, with its numbers.
type Durability struct {
	Mode DurabilityMode
	// Min and Max acknowledgements, as in spec.minSyncReplicas and
	// spec.maxSyncReplicas; 0 when the user did not say.
	Min, Max int
}

// Starves reports whether commits wait for ever for acknowledgements that too few replicas can give, when so
// many are attached.
func (s SemiSync) Starves(attached int) bool {
	return s.SourceEnabled && s.Blocks && attached < s.Acks
}

// Acknowledgements puts a number of them in words.
func Acknowledgements(n int) string { return Plural(n, "acknowledgement") }

// Plural puts a number of things in words, of which the plural ends on s.
func Plural[T int | uint64](n T, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Wished is the number of acknowledgements that each commit should wait for in a
// cluster of n members.
func (d Durability) Wished(n int) int {
	if !d.Mode.Awaits() {
		return 0
	}
	w := max(d.Min, 1)
	if d.Mode.IsOnReplicas() {
		w = max(d.Min, n/2)
	} else if d.Max > 0 {
		w = min(w, d.Max)
	}
	return min(w, n-1)
}

// Acks is the number of acknowledgements to apply now, when `attached` healthy
// replicas of n members acknowledge and the primary waits for `applied` already. Of the
// members only `left` are left: the others do not come back. It is raised from one on only so
// far that another replica may go away and commits still get theirs, unless all that are
// left are attached; below that a write is on the primary alone, which is worse. It is
// lowered below the wish only under a mode that lowers it.
func (d Durability) Acks(n, left, attached, applied int) int {
	wished := d.Wished(n)
	if wished == 0 || attached == 0 && applied == 0 {
		return 0
	}
	if d.Mode.LowersAcks() {
		return max(1, min(wished, attached))
	}
	spare := attached - 1
	if attached >= left-1 {
		spare = attached
	}
	return min(wished, max(1, applied, spare))
}

// AtPromotion is the number of acknowledgements that a new primary's very first
// commit waits for, when the former primary applied `applied`.
func (d Durability) AtPromotion(n, applied int) int {
	if d.Mode.LowersAcks() {
		applied = 1
	}
	return min(applied, d.Wished(n))
}

// CountsOnReplicas reports whether each write that was acknowledged in the promotion p (nil for none) is on
// replicas: as much is wished, or was promised and is not taken back. The mode may have been changed while nobody
// can tell the primary, or ask it.
func (d Durability) CountsOnReplicas(p *Promotion) bool {
	return d.Mode.IsOnReplicas() || p.IsLossless()
}

// Positions is of how many of n members an election has to know the positions, to be sure
// that it misses no acknowledged write: all but as many as each write is on. p is the
// promotion in which the writes were acknowledged; nil for none. It is 0 where a write may
// be on the primary alone, for no election is sure there. mayElect is false when no number is
// enough: the mode promises more, but the primary did not wait for replicas yet.
func (d Durability) Positions(n int, p *Promotion) (need int, mayElect bool) {
	if !d.CountsOnReplicas(p) {
		return 0, true
	}
	promised := d
	promised.Mode = DurabilityQuorum
	on := promised.Wished(n)
	if p != nil {
		on = min(on, p.RequiredAcks)
	}
	if on == 0 || p != nil && p.LosslessSince == 0 {
		return 0, false
	}
	return n - on, true
}
