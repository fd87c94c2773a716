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

// Durability is the wish, with its numbers.
type Durability struct {
	Mode DurabilityMode
	// Min and Max acknowledgements, as in spec.minSyncReplicas and
	// spec.maxSyncReplicas; 0 when the user did not say.
	Min, Max int
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
	var w int
	switch d.Mode {
	case DurabilityPreferred, DurabilityRequired:
		w = max(d.Min, 1)
	case DurabilityQuorum:
		w = max(n/2, d.Min)
	default:
		return 0
	}
	if d.Max > 0 && d.Mode != DurabilityQuorum {
		w = min(w, d.Max)
	}
	return min(w, n-1)
}

// Acks is the number of acknowledgements to apply now, when `attached` healthy
// replicas of n-1 acknowledge and the primary waits for `applied` already. It is
// raised from one on only so far that another replica may go away and commits still get
// theirs, unless all are attached; below that a write is on the primary alone, which is
// worse. It is lowered below the wish under "preferred" only.
func (d Durability) Acks(n, attached, applied int) int {
	wished := d.Wished(n)
	if wished == 0 || attached == 0 && applied == 0 {
		return 0
	}
	if d.Mode == DurabilityPreferred {
		return max(1, min(wished, attached))
	}
	spare := attached - 1
	if attached >= n-1 {
		spare = attached
	}
	return min(wished, max(1, applied, spare))
}

// AtPromotion is the number of acknowledgements that a new primary's very first
// commit waits for, when the former primary applied `applied`.
func (d Durability) AtPromotion(n, applied int) int {
	switch d.Mode {
	case DurabilityQuorum, DurabilityRequired:
		return min(applied, d.Wished(n))
	case DurabilityPreferred:
		return min(1, d.Wished(n))
	default:
		return 0
	}
}
