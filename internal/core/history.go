package core

import (
	"slices"
	"time"
)

// PastOperation is an operation that has ended, for those who ask afterwards what happened.
type PastOperation struct {
	Kind   OperationKind
	Reason Reason
	// From is the primary before, To the wished one; "" where nobody was named.
	From, To string
	// Primary is who takes writes since it ended, in Epoch; "" when nobody did, as when a
	// switchover became a failover. Proof is why the former primary could take no writes
	// any more; "" when nobody was promoted, and in a group.
	Primary string
	Epoch   int64
	Proof   Proof
	// StoppedAt is when writes stopped, as far as the operator saw it; zero when it did not.
	StartedAt, StoppedAt, EndedAt time.Time
}

// remembered is how many operations the status remembers.
const remembered = 10

// Remember adds to the operations of before what ended between two statuses, newest last.
// A group elects by itself: its election is an operation that began when the primary was
// seen to fail.
func Remember(before, after *Status, now time.Time) []PastOperation {
	past := PastOperation{Epoch: after.Epoch, EndedAt: now}
	if after.Diagnosis.TakesWrites() || after.Diagnosis == PrimaryFollows {
		past.Primary = after.CurrentPrimary
	}
	op, next := before.Operation, after.Operation
	switch {
	case op != nil && (next == nil || next.Kind != op.Kind || !next.StartedAt.Equal(op.StartedAt)):
		past.Kind, past.Reason, past.From, past.To, past.StartedAt = op.Kind, op.Reason, op.From, op.To, op.StartedAt
		past.StoppedAt = op.PausedAt
	case op == nil && before.CurrentPrimary != "" && after.CurrentPrimary != before.CurrentPrimary:
		past.Kind, past.Reason, past.From, past.To = OperationFailover, Reason(before.Diagnosis),
			before.CurrentPrimary, after.CurrentPrimary
		past.StartedAt = now
	default:
		return before.Past
	}
	if past.Kind == OperationFailover && !before.FailingSince.IsZero() {
		past.StoppedAt = before.FailingSince
		past.StartedAt = earlier(past.StartedAt, before.FailingSince)
	}
	if p := after.Promotion; p != nil && !p.GrantedAt.Before(past.StartedAt) {
		past.Proof = p.Proof
	}
	all := append(slices.Clone(before.Past), past)
	return all[max(0, len(all)-remembered):]
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
