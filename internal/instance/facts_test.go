package instance

import (
	"io"
	"testing"
	"time"

	"cnmsql.co/internal/core/agent"
)

// A stall that ends while facts are gathered is one or none. A mysqld that is silent without one counts as hung, and
// is killed.
func TestAStallThatEndsIsNoHangOfMysqld(t *testing.T) {
	m := managerIn(t.TempDir(), io.Discard)
	m.update(func(s *state) { s.mysqld.accepted = true })
	ended, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		stalled := time.Now().Add(-2 * diskStallLimit)
		for {
			select {
			case <-stop:
				return
			default:
			}
			m.disk.tries(stalled)
			m.disk.completes()
		}
	}()
	for range 2_000_000 {
		p := get(m, func(*state) agent.Mysqld { return m.process() })
		if p.Answers == p.DiskStalled {
			t.Errorf("it answers: %t, and the volume stalls: %t", p.Answers, p.DiskStalled)
			break
		}
	}
	close(stop)
	<-ended
}
