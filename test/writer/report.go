package writer

import (
	"math"
	"slices"
	"strings"
	"time"
)

// Snapshot is what has happened so far.
type Snapshot struct {
	Run     string
	Started time.Time
	At      time.Time // now, or when the writer was stopped

	Acknowledged, Unknown, Refused int
	Unconnected                    int // connections that could not be made

	FirstAck, LastAck time.Time // zero: none yet
	LongestGap        Gap
}

// SinceLastAck is how long nothing has been acknowledged, or 0 if nothing ever was.
func (s Snapshot) SinceLastAck() time.Duration {
	if s.LastAck.IsZero() {
		return 0
	}
	return max(0, s.At.Sub(s.LastAck)) // a statement that was in flight at Stop is acknowledged after it
}

// Report is the result of a run.
type Report struct {
	Snapshot
	Latency Latency
	Errors  []ErrorSample // the most frequent first
}

// Latency is of acknowledged inserts, from sending the statement to having read its OK.
type Latency struct{ P50, P99, Max time.Duration }

func (r *record) snapshot(run string) Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Snapshot{
		Run: run, Started: r.started, At: r.started.Add(r.now()), Acknowledged: r.counts[Acknowledged],
		Unknown: r.counts[Unknown], Refused: r.counts[Refused], Unconnected: r.unconnected, LongestGap: r.gapSince(0),
	}
	if n := len(r.acks); n > 0 {
		s.FirstAck, s.LastAck = r.started.Add(r.acks[0]), r.started.Add(r.acks[n-1])
	}
	return s
}

func (r *record) report(run string) Report {
	report := Report{Snapshot: r.snapshot(run)}
	r.mu.Lock()
	defer r.mu.Unlock()
	report.Latency = r.latency()
	for _, s := range r.samples {
		report.Errors = append(report.Errors, *s)
	}
	slices.SortFunc(report.Errors, func(a, b ErrorSample) int {
		if a.Count != b.Count {
			return b.Count - a.Count
		}
		return strings.Compare(a.What+a.Text, b.What+b.Text)
	})
	return report
}

func (r *record) latency() Latency {
	var all []time.Duration
	for _, attempts := range r.attempts {
		for _, a := range attempts {
			if a.outcome == Acknowledged {
				all = append(all, a.end-a.start)
			}
		}
	}
	slices.Sort(all)
	return Latency{P50: quantile(all, 0.5), P99: quantile(all, 0.99), Max: quantile(all, 1)}
}

// quantile is the smallest value that at least the share q of all is not above (nearest rank).
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}
