package agent

import (
	"strings"
	"time"

	"cnmsql.co/internal/core"
)

// Pauses between attempts at the same actions: each failure doubles the pause.
const (
	retryFirst = 250 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Key names what a decision has done: two with the same key do the same. "" is nothing.
func (d Decision) Key() string {
	parts := make([]string, len(d.Actions))
	for i, a := range d.Actions {
		parts[i] = a.String()
	}
	return strings.Join(parts, ", ")
}

// RetryAfter is how long actions that fail are left, after they had failed so often before.
func RetryAfter(failed int) time.Duration { return min(retryFirst<<min(failed, 5), retryMost) }

// WasFenced reports whether an instance was fenced when it last was fenced or running, with this decision
// after what was so before it.
func (d Decision) WasFenced(before bool) bool {
	switch d.State {
	case core.Fenced:
		return true
	case core.Running:
		return false
	}
	return before
}

// IsSteady reports whether a mysqld has run for long enough to forget the failures to start before it.
func IsSteady(ran time.Duration) bool { return ran > SteadyAfter }

// IsFailedStart reports whether the end of a mysqld is a failure to start.
func IsFailedStart(accepted bool, ran time.Duration) bool { return !accepted || ran < SteadyAfter }

// StopLimit is how long after it was asked to stop an instance that may take limit kills its mysqld: a
// little before the kubelet would.
func StopLimit(limit time.Duration) time.Duration { return max(limit-StopMargin, limit/2) }

// StopMargin is kept of the time to stop, to say goodbye.
const StopMargin = 5 * time.Second
