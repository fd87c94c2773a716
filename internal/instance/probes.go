package instance

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"cnmsql.co/internal/core/agent"
)

// stateWait is how long the manager's state may be held at most.
const stateWait = 3 * time.Second

// prober answers the kubelet's probes.
type prober struct {
	isolator *isolator
	worker   *worker
	by       probed
}

// probed is what a prober asks of its manager.
type probed interface {
	facts() *agent.Facts
	topology() topology
	// touch returns once the manager's state could be held.
	touch()
}

func newProber(m *manager) *prober { return &prober{isolator: m.isolator, worker: m.worker, by: m} }

// notAlive says why this manager could not isolate itself; "" if it could. Nothing that
// takes its time for a reason counts: making data, cloning, recovering, a volume that stalls.
func (p *prober) notAlive() string {
	if silent := p.isolator.silentFor(); silent > isolationSilence {
		return fmt.Sprintf("it has not been looked for %s whether this instance has to isolate itself",
			silent.Round(time.Second))
	}
	free := make(chan struct{})
	go func() {
		p.by.touch()
		close(free)
	}()
	select {
	case <-free:
		return ""
	case <-time.After(stateWait):
		return fmt.Sprintf("the manager's state has been held for %s", stateWait)
	}
}

// handler answers the kubelet. Startup depends on nothing but that the manager answers,
// liveness on its being able to isolate itself: initialising, cloning and recovering take as
// long as they take, and maxStartDelay is the manager's to keep. Readiness is about serving
// clients.
func (p *prober) handler() http.Handler {
	mux := http.NewServeMux()
	alive := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if why := p.notAlive(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		alive(w, nil)
	})
	mux.HandleFunc("GET /startupz", alive)
	r := &readiness{}
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		f := p.by.facts()
		if why := p.notReady(r, f, p.worker.said().decision); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		alive(w, nil)
	})
	return mux
}

// readiness is what the probes remember; they are asked side by side.
type readiness struct {
	mu sync.Mutex
	agent.Readiness
}

// notReady says why clients should not be sent here; "" if they may.
func (p *prober) notReady(r *readiness, f *agent.Facts, d agent.Decision) string {
	if why := f.NotReady(d); why != "" {
		return why
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return p.by.topology().notReady(&r.Readiness, f, d)
}

// What a prober asks of its manager, besides.

func (m *manager) touch() { get(m, func(*state) any { return nil }) }
