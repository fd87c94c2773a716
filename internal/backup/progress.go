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

// progress reports, if somebody wants to know, by one goroutine at a time. Whoever is told may take
// long, as when it writes down what it is told: that holds up nobody but the one who tells.
type progress struct {
	mu     sync.Mutex
	report func(Progress)
	now    Progress
	last   time.Time
	tells  bool // somebody does
}

// add counts what is done and what is expected.
func (p *progress) add(done, expected int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Done += done
	p.now.Expected += expected
	if p.report == nil || p.tells || time.Since(p.last) < often {
		return
	}
	p.last = time.Now()
	p.tell()
}

// end reports what is the last; nobody adds any more.
func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Expected = p.now.Done
	if p.report != nil {
		p.tell()
	}
}

// tell never tells that more is done than was expected. The caller has locked mu, which is open
// meanwhile.
func (p *progress) tell() {
	now := p.now
	now.Expected = max(now.Expected, now.Done)
	p.tells = true
	p.mu.Unlock()
	p.report(now)
	p.mu.Lock()
	p.tells = false
}
