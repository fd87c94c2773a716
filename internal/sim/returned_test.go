package sim

import (
	"testing"
	"time"

	"cnmsql.co/internal/control"
)

// TestAnOrderToStartIsAWordThatBindsNobody does not count what mysqld recovers that an operator had started, where
// another was promoted before an operator heard of that, and counts it where an operator had heard.
func TestAnOrderToStartIsAWordThatBindsNobody(t *testing.T) {
	tried := 0
	for seed := uint64(0); tried < 5; seed++ {
		w := newWorld(seed, &mutation{}, nil, &story{})
		w.bursts = []burst{{0, time.Hour}}
		w.runUntil(2 * time.Minute)
		if !w.isHealthy() {
			continue
		}
		tried++
		p := w.api.cluster().status.Promotion
		m := w.managerOf(p.Instance)
		m.proc.end(true)
		if m.startsOn() != (word{}) {
			t.Errorf("seed %d: a word that nobody gave: %v", seed, m.startsOn())
		}
		m.order(control.RestartInPlace{Epoch: p.Epoch}, func(string) {})
		given := m.startsOn()
		if given != (word{w.now, p.Epoch}) {
			t.Errorf("seed %d: mysqld is started on the word %v", seed, given)
		}
		recovered := &txn{vouched: given, recoveredAt: given.at + time.Second}
		for _, c := range []struct {
			granted, heard time.Duration
			inVain         bool
		}{
			{1500 * time.Millisecond, time.Second, true},
			{4 * time.Second, 0, true},
			{4 * time.Second, 3 * time.Second, false},
		} {
			w.truth.granted = map[int64]grant{p.Epoch: {given.at - time.Minute, nil},
				p.Epoch + 1: {given.at + c.granted, map[string]time.Duration{p.Instance: given.at + c.heard}}}
			if got := w.truth.wasInVain(p.Instance, recovered); got != c.inVain {
				t.Errorf("seed %d: another is promoted after %s, it was heard after %s: in vain is %t", seed, c.granted,
					c.heard, got)
			}
		}
	}
}
