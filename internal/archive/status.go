package archive

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"cnmsql.co/internal/binlog"
	facts "cnmsql.co/internal/core/archive"
	"cnmsql.co/internal/gtid"
)

// Status is how far the archive is. Times are by the clock of this machine.
type Status struct {
	// Last is the part that was stored last; its sequence is 0 while there is none. Its
	// GTIDs, Last and File tell what is archived.
	Last facts.Part
	// Archived is what the archive has of the primary's line, and what it never needed.
	Archived gtid.Set
	// LastAt is when it was stored, as far as this process has done it.
	LastAt time.Time
	// CompleteUntil is the moment of the last mark: until then the store has all that was
	// acknowledged, and says so. Zero while this process has stored none.
	CompleteUntil time.Time
	// Needed is the name of the first binary log that is not archived as a whole: those before
	// it may be purged. "" while that is not known.
	Needed string
	// Pending is what stands in the logs behind the last part, whether it may be shipped or not;
	// nil while that is not known.
	Pending *Pending
	// Oldest is since when the oldest transaction waits that could be archived; zero if none
	// does.
	Oldest time.Time
	// Sought is since when it is not known what the archive lacks, for the store does not say, or
	// does not take the branch; zero once that is known.
	Sought time.Time
	// Missing is what was purged before it was archived, since this process began: a gap.
	Missing gtid.Set
	// Failure is why something failed last, and FailedAt when; it is not taken back when
	// the next attempt succeeds: LastAt is later then, or PassedAt where that stores no part.
	Failure  error
	FailedAt time.Time
	PassedAt time.Time
}

// Pending is how much of the logs is not archived, in bytes and in files.
type Pending struct {
	Bytes int64
	Files int
}

// RPO returns how much would be lost, in time, if the instance were lost now: the age of the
// oldest transaction that waits, and 0 when none does. While it is not known what the archive
// lacks, it is the time since then, which is the most that it can be.
func (s Status) RPO(now time.Time) time.Duration {
	since := s.Oldest
	if !s.Sought.IsZero() {
		since = s.Sought
	}
	if since.IsZero() {
		return 0
	}
	return max(now.Sub(since), 0)
}

// Status tells how far the archive is.
func (s *Shipper) Status() Status {
	s.mu.Lock()
	out := s.status
	s.mu.Unlock()
	out.Pending = s.behind(out)
	return out
}

// Archived is the name of the first binary log that is not archived as a whole: those
// before it may be purged. "" while that is not known: none may.
func (s *Shipper) Archived() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Needed
}

// behind sums up what is not archived, as far as the files can be seen; nil where it is not known which they are.
func (s *Shipper) behind(status Status) *Pending {
	if status.Needed == "" {
		return nil
	}
	logs, err := binlog.All(s.c.Index)
	if err != nil {
		return nil
	}
	out := &Pending{}
	first := max(slices.IndexFunc(logs, func(path string) bool { return filepath.Base(path) == status.Needed }), 0)
	for _, path := range logs[first:] {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		size := info.Size()
		if filepath.Base(path) == status.Last.File {
			size = max(size-status.Last.To, 0)
		}
		if size > 0 {
			out.Bytes, out.Files = out.Bytes+size, out.Files+1
		}
	}
	return out
}

// archived notes that a part is stored.
func (s *Shipper) archived(part facts.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part.Sequence > 0 {
		s.status.Last = part
	}
	s.status.Archived = s.source.Seen.Union(part.GTIDs)
	if isWhole := part.Piece == part.Pieces; isWhole && s.pending != nil {
		s.status.LastAt, s.status.Oldest = time.Now(), time.Time{}
	}
}

// observe notes what waits.
func (s *Shipper) observe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Needed = s.source.file()
	s.status.Oldest = time.Time{}
	if s.pending != nil {
		now := time.Now()
		s.status.Oldest = now.Add(-s.pending.Age(now))
	}
}

// noteGap notes that it is known where to go on, and which logs were purged before they were
// archived.
func (s *Shipper) noteGap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Needed = s.source.file()
	s.status.Missing, s.status.Sought = s.status.Missing.Union(s.source.Missing), time.Time{}
}

// seeks notes that it is not known what the archive lacks.
func (s *Shipper) seeks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Sought = s.c.Since
	if s.status.Sought.IsZero() {
		s.status.Sought = time.Now()
	}
}

func (s *Shipper) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Failure, s.status.FailedAt = err, time.Now()
}

// passes notes that what had failed succeeds: no part may come for long that would tell.
func (s *Shipper) passes() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.PassedAt = time.Now()
}
