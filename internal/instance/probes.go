package instance

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"cnmsql.co/internal/core"
	"cnmsql.co/internal/core/agent"
)

// followGrace is how long a replica stays ready without a source: while a primary
// is replaced, its followers still answer reads.
const followGrace = 10 * time.Second

// probes answer the kubelet. Liveness and startup depend on nothing but the
// manager: initialising, cloning and recovering take as long as they take, and
// maxStartDelay is the manager's to keep. Readiness is about serving clients.
func (m *manager) probes() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	mux.HandleFunc("GET /livez", alive)
	mux.HandleFunc("GET /startupz", alive)
	r := &readiness{}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		f := m.facts()
		if why := m.notReady(r, f, get(m, func(s *state) agent.Decision { return s.decision })); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		alive(w, nil)
	})
	return mux
}

// readiness remembers when replication was last seen healthy.
type readiness struct {
	mu      sync.Mutex
	healthy time.Time
}

// notReady says why clients should not be sent here; "" if they may.
func (m *manager) notReady(r *readiness, f *agent.Facts, d agent.Decision) string {
	switch {
	case f.Server == nil:
		return "mysqld does not answer"
	case f.Data != core.DataPopulated:
		return "there is no data yet"
	case !d.Errant.IsEmpty():
		return "diverged"
	}
	return m.topology().notReady(r, f, d)
}

func (r *readiness) notReplicating(f *agent.Facts, d agent.Decision) string {
	if f.WritableEpoch != 0 {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := f.Server.Replication
	if c != nil && c.SQLRunning && c.IORunning || f.Permitted() && c == nil && d.Reason == "Promoting" {
		r.healthy = f.Now
	}
	if c != nil && c.SQLError != "" && !c.SQLRunning {
		return "the applier has stopped: " + c.SQLError
	}
	if f.Now.Sub(r.healthy) > followGrace {
		return "it is neither primary nor does it replicate"
	}
	return ""
}
