package backup

import (
	"sync"
	"time"
)

// Progress is how far a backup or a restore is.
type Progress struct {
	// Done bytes are safe, of those Expected, both before compression. What a backup
	// expects is the donor's estimate; it grows while the donor is written to.
	Done, Expected int64
}

// often is how much time is at least between two reports.
const often = 300 * time.Millisecond

// progress reports, if somebody wants to know, by one goroutine at a time.
type progress struct {
	mu     sync.Mutex
	report func(Progress)
	now    Progress
	last   time.Time
}

// add counts what is done and what is expected.
func (p *progress) add(done, expected int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Done += done
	p.now.Expected += expected
	if p.report == nil || time.Since(p.last) < often {
		return
	}
	p.last = time.Now()
	p.tell()
}

// end reports what is the last.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Expected = p.now.Done
	if p.report != nil {
		p.tell()
	}
}

// tell never tells that more is done than was expected.
func (p *progress) tell() {
	now := p.now
	now.Expected = max(now.Expected, now.Done)
	p.report(now)
}
