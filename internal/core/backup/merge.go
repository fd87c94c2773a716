package backup

import "time"

const (
	// mergeParts is after how many small parts merging is worth a Job of its own, at one part each
	// targetRPOSeconds, within these bounds.
	mergeParts      = 16 << 10
	leastMergePause = 24 * time.Hour
	mostMergePause  = 7 * leastMergePause
	// A Job that failed is followed by another after a quarter of the time for which nothing had been
	// merged when it ended, which is hours: that time began leastMergePause before the Job.
	mostMergeFailedPause = leastMergePause
)

// Merging is what is known of the merging of a Cluster's archive. The Job of each Backup merges; where
// none is taken for long, a Job of its own does.
type Merging struct {
	// Since is when there was an archive at the earliest; zero as long as nothing is known to be
	// archived. Then there is nothing to be merged, and a Job would fail.
	Since time.Time
	// RPO is how old what is not archived may become.
	RPO time.Duration
	// Taken are the Backups that lie where the archive does.
	Taken []Taken
	// Job of its own that is there; nil if none is.
	Job *MergeJob
}

// MergeJob is the last Job of its own.
type MergeJob struct {
	// Ended is zero while it goes on.
	Ended  time.Time
	Failed bool
}

// MergeStep is what is to be done for the merging.
type MergeStep string

// The steps.
const (
	// MergeWaits does nothing, for now.
	MergeWaits MergeStep = "wait"
	// MergeClears takes away the Job that has ended, to make room for the next one.
	MergeClears MergeStep = "clear"
	// MergeBegins has a Job made.
	MergeBegins MergeStep = "begin"
)

// Next is what is to be done now, or when to look again; 0 if something else will tell. Two that merge at
// once do no harm, but do everything twice: while a Backup is taken, whose Job merges, none begins.
func (m Merging) Next(now time.Time) (step MergeStep, wake time.Duration) {
	if m.Since.IsZero() || m.Job != nil && m.Job.Ended.IsZero() {
		return MergeWaits, 0
	}
	last := m.Since
	for _, b := range m.Taken {
		switch {
		case !b.Started.IsZero() && b.Ended.IsZero():
			return MergeWaits, 0
		case b.Completed:
			last = latest(last, b.Ended)
		}
	}
	if m.Job != nil && !m.Job.Failed {
		last = latest(last, m.Job.Ended)
	}
	due := last.Add(min(max(mergeParts*m.RPO, leastMergePause), mostMergePause))
	if m.Job != nil && m.Job.Failed {
		due = latest(due, m.Job.Ended.Add(min(m.Job.Ended.Sub(last)/4, mostMergeFailedPause)))
	}
	switch {
	case now.Before(due):
		return MergeWaits, due.Sub(now)
	case m.Job != nil:
		return MergeClears, 0
	}
	return MergeBegins, 0
}
