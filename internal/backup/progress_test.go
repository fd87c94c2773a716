package backup

import (
	"testing"
	"testing/synctest"
)

// An API server that does not answer keeps who tells it waiting, and must not keep the parts of a backup waiting.
func TestWhoIsToldOfProgressHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Progress
		answers := make(chan struct{})
		p := &progress{report: func(now Progress) {
			told = append(told, now)
			<-answers
		}}
		go p.add(1, 4)
		synctest.Wait()
		for range 3 {
			if !p.mu.TryLock() {
				close(answers)
				t.Fatal("the next part would wait")
			}
			p.mu.Unlock()
			p.add(1, 0)
		}
		if len(told) != 1 {
			t.Errorf("while somebody is told, others tell: %v", told)
		}
		close(answers)
		synctest.Wait()
		p.end()
		if len(told) != 2 || told[1] != (Progress{Done: 4, Expected: 4}) {
			t.Errorf("told %v", told)
		}
	})
}
